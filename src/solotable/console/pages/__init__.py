"""The pages of the console: each returns a View, whose data is also its answer as JSON."""
