"""Pure rules: values in, values out. No clock, randomness, files, sockets or event loop in here."""
