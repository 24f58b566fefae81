"""What is sealed on the wire, byte for byte."""
