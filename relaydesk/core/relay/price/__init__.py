"""Rates, charges and their checks."""
