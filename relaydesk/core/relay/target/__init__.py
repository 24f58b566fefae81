"""Which node serves a request."""
