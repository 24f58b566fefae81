"""The demo: a small network of real nodes on loopback, used from outside as clients would use it."""
