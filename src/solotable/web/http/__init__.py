"""HTTP conventions: problems, entity tags, pages of lists, middleware, documentation."""
