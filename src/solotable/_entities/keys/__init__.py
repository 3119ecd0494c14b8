"""Key templates, key layout, key codecs and sharding."""
