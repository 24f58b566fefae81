"""relaydesk: a terminal console with a node inside it, for people who run language models at home."""

__version__ = "0.1.0"
