"""One folder for each pane: a presenter (plain functions), a widget, its style and its help."""
