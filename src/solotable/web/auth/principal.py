"""Who asks: the record that a verified credential becomes. Nothing here verifies one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solotable._entities.traits.events import Actor

PrincipalKind = Literal["api-key", "jwt", "anonymous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """Somebody or something that may ask, what they are allowed, and where."""

    id: str
    kind: PrincipalKind
    #: Who has issued the token; an id is unique for its issuer alone. None for an API key.
    issuer: str | None = None
    name: str | None = None
    email: str | None = None
    roles: frozenset[str] = frozenset()
    #: The tenants that they may reach: None is all of them, an empty set is none.
    tenants: frozenset[str] | None = frozenset()

    def has(self, *roles: str) -> bool:
        """Say whether they have one of these roles."""
        return not self.roles.isdisjoint(roles)

    def reaches(self, tenant: str) -> bool:
        """Say whether they may ask for this tenant's data."""
        return self.tenants is None or tenant in self.tenants

    def actor(self) -> Actor:
        """Return them as events name them."""
        return Actor(id=self.id, name=self.name, email=self.email)


#: Whoever sends no credential: no roles and no tenants.
ANONYMOUS = Principal(id="anonymous", kind="anonymous")
