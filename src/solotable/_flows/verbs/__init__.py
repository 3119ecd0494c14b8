"""The verbs of a store: get, put, update, query, scan, batch."""
