"""What the community stores. One import declares all entities: a purge finds them by name."""

from . import accounts, builds, neighbourhoods, records, sites, users

__all__ = ["accounts", "builds", "neighbourhoods", "records", "sites", "users"]
