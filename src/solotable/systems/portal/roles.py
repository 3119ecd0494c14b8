"""Roles, in the order Viewer < Contributor < Approver < Admin, and who calls a service."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from .errors import Forbidden

Role = Literal["Viewer", "Contributor", "Approver", "Admin"]
ROLES: tuple[Role, ...] = ("Viewer", "Contributor", "Approver", "Admin")


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A user whose credential was verified. Services trust it."""

    user_id: str
    role: Role
    name: str = ""

    def has(self, role: Role) -> bool:
        """Whether the caller has this role or a higher one."""
        return ROLES.index(self.role) >= ROLES.index(role)

    def require(self, role: Role) -> None:
        """Raise Forbidden unless the caller has this role or a higher one."""
        if not self.has(role):
            raise Forbidden(f"This needs the role {role}; yours is {self.role}.")
