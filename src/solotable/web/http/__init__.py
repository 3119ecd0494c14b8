"""HTTP conventions: problems, entity tags, pages, middleware."""
