"""HTTP to an endpoint: transports, the connection pool, responses."""
