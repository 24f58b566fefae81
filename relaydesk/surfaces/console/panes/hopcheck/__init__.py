"""The wizard that finds what in front of the node takes its marker away."""
