"""Heat of an embedded database: the capacity units of each partition key, minute by minute."""
