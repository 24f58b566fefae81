"""A certificate from an ACME server: asked for, kept, renewed."""
