"""The tenant of a request, from its credential or its host name."""
