"""Who may ask: keys."""
