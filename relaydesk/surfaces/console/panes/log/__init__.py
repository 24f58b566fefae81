"""The node's own log, newest line last."""
