"""``relaydesk directory``."""
