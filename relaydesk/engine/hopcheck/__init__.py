"""The check of what stands in front of a node, carried out."""
