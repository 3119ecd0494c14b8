"""The limiter's one table. Its tenants are namespaces; every item in it is flat (S1.1)."""

from solotable import Index, Table

limiter = Table("Limiter", tenant="namespace", ttl="expires", stream=True, flat=True, indexes=[Index("GSI1")])
