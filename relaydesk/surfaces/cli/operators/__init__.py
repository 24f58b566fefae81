"""``relaydesk operators``."""
