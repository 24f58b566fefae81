"""Widgets drawn line by line, for everything that ticks."""
