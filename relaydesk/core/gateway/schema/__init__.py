"""JSON Schema: what a client may ask for, as the schema that an engine really keeps to."""
