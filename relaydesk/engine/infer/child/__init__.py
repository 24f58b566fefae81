"""What runs inside an engine's own process."""
