"""Who may use this hub."""
