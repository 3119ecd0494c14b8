"""Measurements against what users have today, as ratios within one run. `make bench` runs them."""
