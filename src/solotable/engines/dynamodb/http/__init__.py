"""HTTP to an endpoint: the transports, the connection pool, the wire protocol."""
