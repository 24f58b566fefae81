"""The unix socket that the CLI and the console use, both ends."""
