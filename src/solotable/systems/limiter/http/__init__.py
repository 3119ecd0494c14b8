"""The limiter over HTTP: the app, middleware, and dependencies for FastAPI."""
