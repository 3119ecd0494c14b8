"""Where a command on entities works: models, database and scope, as four options and one parameter."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any, cast

from .database import CommandT, Opened, db_option, opened, scope_options
from .models import load_tables, models_option

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """What `-m`, `-d`, `--tenant` and `--admin` say."""

    models: str | None
    db: str | None
    tenant: str | None
    admin: bool

    def tables(self) -> list[Table]:
        """Return the declared tables."""
        return load_tables(self.models)

    def opened(
        self,
        tables: Sequence[Table],
        own: Table,
        *,
        makes: bool = False,
        metered: bool = False,
        secret: str | None = None,
    ) -> AbstractContextManager[Opened]:
        """Open the database within the scope; see `database.opened`."""
        return opened(
            self.db,
            tables,
            own,
            tenant=self.tenant,
            admin=self.admin,
            makes=makes,
            metered=metered,
            secret=secret,
        )


def place_options(command: CommandT) -> CommandT:
    """Give a command these options as its parameter `place: Place`."""

    @wraps(command)
    def placed(*, models: str | None, db: str | None, tenant: str | None, admin: bool, **others: Any) -> Any:
        return command(place=Place(models=models, db=db, tenant=tenant, admin=admin), **others)

    return cast(CommandT, models_option(db_option(scope_options(placed))))
