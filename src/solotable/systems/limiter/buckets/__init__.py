"""Token buckets: arithmetic, stored form, charging and sharding."""
