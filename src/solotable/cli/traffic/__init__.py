"""Commands on the traffic of a database: its heat, and what it would cost on AWS."""
