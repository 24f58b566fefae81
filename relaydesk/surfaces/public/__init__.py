"""The HTTP listener that clients use."""
