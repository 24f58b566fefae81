"""Checks of this machine, with the next step for each that fails. Needs no node and changes nothing."""
