"""Fetching, keeping and serving directories."""
