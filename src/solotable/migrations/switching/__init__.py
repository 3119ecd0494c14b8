"""Switch reads and writes between the sides, and end a migration."""
