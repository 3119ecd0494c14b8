"""Nine published single-table designs, with all of their access patterns."""
