"""The models, what they need, and why one does not fit."""
