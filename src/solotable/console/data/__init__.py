"""What the pages read: tables and their entities, items in bounded pages, and the log of requests."""
