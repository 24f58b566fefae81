"""The whole node as one picture."""
