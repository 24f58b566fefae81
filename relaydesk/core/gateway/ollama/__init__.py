"""The Ollama dialect: its requests as work, its answers as NDJSON."""
