"""The report of a survey for the client: its model, its HTML page, and its PDF."""
