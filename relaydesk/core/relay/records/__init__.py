"""Signed records of the wire."""
