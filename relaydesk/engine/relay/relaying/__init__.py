"""Relaying for others: one sealed hop, within its limits."""
