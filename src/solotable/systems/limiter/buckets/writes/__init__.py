"""The conditional UpdateItems of charges, as requests; sending them is decided elsewhere."""
