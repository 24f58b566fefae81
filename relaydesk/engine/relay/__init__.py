"""What runs the rules of the relay network."""
