"""Surveys for clients that work offline: the mutators that they call, and the spaces that they see."""
