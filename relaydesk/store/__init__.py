"""What survives a restart: SQLite on one thread, and secrets as files."""
