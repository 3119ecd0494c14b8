"""What traits do on each write and read: counters, history, outbox, soft delete."""
