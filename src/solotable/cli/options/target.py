"""Options that choose the models, database and tenant of a command, as one parameter."""

from __future__ import annotations

from collections.abc import Container, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

import click

from .database import ADMIN_HELP, CommandT, OpenStore, db_option, open_store, scope_options
from .models import load_tables, models_option

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable._entities.declare.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """The values of `-m`, `-d`, `--tenant` and `--admin`."""

    models: str | None
    db: str | None
    tenant: str | None
    admin: bool

    def tables(self) -> list[Table]:
        """Return the declared tables."""
        return load_tables(self.models)

    def require_tenant(self, plan: Plan, given: Container[str]) -> None:
        """Reject `--admin` unless the tenant is among the given arguments of a tenant's entity."""
        if self.admin and plan.tenant is not None and plan.tenant not in given:
            raise click.UsageError(
                f"--admin needs the tenant of {plan.name} as an argument; add {plan.tenant}=..."
            )

    def open(
        self,
        tables: Sequence[Table],
        own: Table,
        *,
        create: bool = False,
        metered: bool = False,
        secret: str | None = None,
    ) -> AbstractContextManager[OpenStore]:
        """Open the database in the requested scope; see `open_store`."""
        return open_store(
            self.db,
            tables,
            own,
            tenant=self.tenant,
            admin=self.admin,
            create=create,
            metered=metered,
            secret=secret,
        )


def target_options(command: CommandT, *, admin_help: str = ADMIN_HELP) -> CommandT:
    """Give a command these options as its parameter `target: Target`."""

    @wraps(command)
    def run(*, models: str | None, db: str | None, tenant: str | None, admin: bool, **others: Any) -> Any:
        return command(target=Target(models=models, db=db, tenant=tenant, admin=admin), **others)

    return cast(CommandT, models_option(db_option(scope_options(run, admin_help))))
