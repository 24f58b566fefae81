"""The public dialects: checking a request, rebuilding it for an engine, and shaping what comes back."""
