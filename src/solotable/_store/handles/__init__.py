"""Objects that a store hands out: history, leases, names, counters, change feeds."""
