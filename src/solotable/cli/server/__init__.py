"""Commands on a database file and its server."""
