"""Tenants, their settings and their users."""
