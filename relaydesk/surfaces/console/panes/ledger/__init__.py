"""The ledger: credit here and elsewhere, tickets, earnings."""
