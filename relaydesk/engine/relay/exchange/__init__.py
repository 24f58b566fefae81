"""The asking side of a whole exchange: choose, reserve, pay, ask sealed, open, settle."""
