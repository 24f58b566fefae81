"""The certificate authority, the leaf, and the context a listener uses."""
