"""Builds: sites become static files, which a worker publishes and `serve` sends at their subdomains."""
