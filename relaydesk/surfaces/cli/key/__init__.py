"""``relaydesk key``: named keys."""
