"""Which requests the server accepts: signatures, keys, host names."""
