"""Asking other nodes through relays: whom, through whom, and what it says of them."""
