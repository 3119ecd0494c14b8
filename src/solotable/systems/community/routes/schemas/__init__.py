"""Bodies of requests and responses, and their examples."""
