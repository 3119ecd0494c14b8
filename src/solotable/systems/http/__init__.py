"""What the APIs of the systems share: sealed cursors, envelopes of errors, and rate limits."""
