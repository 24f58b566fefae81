"""The wire of the relay network and the rules of its clients, relays and targets."""
