"""Who calls a service: a user, an operator, or a visitor who is not signed in."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import Forbidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """A verified caller; services trust it. Roles in a neighbourhood are in the caller's memberships."""

    did: str | None = None
    is_operator: bool = False

    def require_user(self) -> str:
        """Return the DID of the caller, or raise Forbidden for a visitor."""
        if self.did is None:
            raise Forbidden("Sign in first.")
        return self.did

    def require_operator(self) -> None:
        """Raise Forbidden unless the caller operates the community."""
        if not self.is_operator:
            raise Forbidden("Only operators of the community may do this.")


VISITOR = Caller()
