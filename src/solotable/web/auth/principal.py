"""The principal of a request: the record that a verified credential becomes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from solotable import Actor

PrincipalKind = Literal["api-key", "jwt", "anonymous"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Principal:
    """A user or program with a credential: its id, its roles, and the tenants that it reaches."""

    id: str
    kind: PrincipalKind
    #: The issuer of the token; ids are unique within one issuer. None for an API key.
    issuer: str | None = None
    name: str | None = None
    email: str | None = None
    roles: frozenset[str] = frozenset()
    #: The tenants that it reaches: None for all, an empty set for none.
    tenants: frozenset[str] | None = frozenset()

    def has(self, *roles: str) -> bool:
        """Return whether the principal has one of these roles."""
        return not self.roles.isdisjoint(roles)

    def reaches(self, tenant: str) -> bool:
        """Return whether the principal reaches this tenant."""
        return self.tenants is None or tenant in self.tenants

    def actor(self) -> Actor:
        """Return the actor that events name."""
        return Actor(id=self.id, name=self.name, email=self.email)


#: The principal of a request without a credential: no roles and no tenants.
ANONYMOUS = Principal(id="anonymous", kind="anonymous")
