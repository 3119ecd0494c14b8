"""Live migrations: mapping, copy, switch, router and commands."""
