"""The HTTP client for other nodes: strangers, dialed only where it is allowed."""
