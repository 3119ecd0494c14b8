"""Pages, their versions, routes and links."""
