"""What happens in a database: its requests, its heat, and its migrations."""
