"""Measurements of the CMS and the limiter."""
