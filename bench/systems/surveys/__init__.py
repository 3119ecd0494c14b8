"""Surveys as granular items beside the layout before: requests, units, dollars and latency."""
