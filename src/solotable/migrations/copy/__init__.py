"""Copy the items of source tables in segments, each under a fenced cursor."""
