"""The nodes of the relay network, and this one among them."""
