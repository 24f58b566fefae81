"""This node as a target: what it offers, whom it lets in, and how it answers (wire §4.3, §4.6 to §4.8)."""
