"""The change feed: streams, changes as entities, and checkpoints."""
