"""Commands on models and tables: lint, listings, schema."""
