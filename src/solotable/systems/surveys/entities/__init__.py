"""The entities of the surveys."""
