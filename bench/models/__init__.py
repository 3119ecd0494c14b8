"""Measurements of the modelling layer and its import."""
