"""What every front sees of a node: frozen sections, replaced whole."""
