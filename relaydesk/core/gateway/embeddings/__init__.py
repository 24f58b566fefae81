"""``/v1/embeddings``: texts as vectors."""
