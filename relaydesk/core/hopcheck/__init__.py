"""Findings about what stands in front of a node, and what to change there. Pure."""
