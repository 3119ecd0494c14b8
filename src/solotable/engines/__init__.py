"""The engines that answer DynamoDB requests; each is independent of the others."""
