"""What keeps accounts."""
