"""What to change, by product, as text of configuration."""
