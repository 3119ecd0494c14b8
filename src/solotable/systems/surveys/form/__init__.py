"""The survey form: an offline-first page on the surveys' sync. npm fetches its Replicache client."""
