"""The console: a Textual application over `NodeApi` and nothing else."""
