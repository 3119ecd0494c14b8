"""Pages of the community for browsers: server-rendered HTML with sessions, and no script."""
