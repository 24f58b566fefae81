"""Units for systemd."""
