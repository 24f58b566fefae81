"""The rules of accounts between payers and targets."""
