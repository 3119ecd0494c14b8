"""The blocking store, in modules by the kind of its methods."""
