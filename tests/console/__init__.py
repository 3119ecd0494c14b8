"""The console: pages over a database with models, without models, and with hostile names and values."""
