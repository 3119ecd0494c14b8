"""DynamoDB's constraints on the members of requests: as data, their checker, and the report of errors."""
