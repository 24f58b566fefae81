"""The keys that open this hub, and what a client needs."""
