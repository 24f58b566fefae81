"""Engines: child processes and the wire to them."""
