"""Settings, their layers, and where each value came from."""
