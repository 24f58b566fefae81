"""The network listener: what other nodes and their clients speak to."""
