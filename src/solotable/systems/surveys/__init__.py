"""Building surveys on one table: entities, and services over a store. `table.surveyor` is the table."""
