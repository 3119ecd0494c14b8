"""Item counts and sizes of tables and indexes."""
