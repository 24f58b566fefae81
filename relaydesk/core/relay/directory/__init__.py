"""Signed directories of operators and their nodes."""
