"""Meters: the arithmetic of each kind of limit, in whole numbers; exact and pure."""
