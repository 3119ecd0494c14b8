"""The async store, in modules by the kind of its methods."""
