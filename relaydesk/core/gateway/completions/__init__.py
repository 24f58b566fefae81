"""``/v1/completions``: bare prompts, continued."""
