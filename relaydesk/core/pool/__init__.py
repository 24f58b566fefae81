"""What a model needs, what a machine has, and what follows from the two."""
