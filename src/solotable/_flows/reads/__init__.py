"""Read entities: by key, by query, in pages and in scans."""
