"""One request's way from the queue to the engine and back."""
