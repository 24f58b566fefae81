"""Who asked what of which model, and what came of it."""
