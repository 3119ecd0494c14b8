"""Pull: answer with what has changed since a client's cookie."""
