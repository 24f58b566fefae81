"""How large a request may be by its bytes."""
