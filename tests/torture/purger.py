"""Purges a file as of a moment, until it is done or killed.

Run as `python -m tests.torture.purger FILE SECONDS`; it stops after each step until it is released.
"""

from __future__ import annotations

import sys
from datetime import timedelta
from typing import Annotated

from solotable import FROM_SCOPE, Database, Entity, History, Index, Key, SoftDelete, Table, Unique, Version
from solotable.jobs.purge import purge
from tests.killing import step, tell

site = Table("Site", tenant="tenant_id", indexes=[Index("GSI1")])


class Session(Entity, table=site):
    """Goes alone."""

    key = Key("TENANT#{tenant_id}#SESSION#{session_id}", "SESSION")
    deletion = SoftDelete(grace=timedelta(days=7))
    tenant_id: str = FROM_SCOPE
    session_id: str


class Account(Entity, table=site):
    """Goes with its history, its lock and its orders."""

    key = Key("TENANT#{tenant_id}", "ACCOUNT#{account_id}")
    deletion = SoftDelete(grace=timedelta(days=30), cascade=("Order",))
    history = History("HISTORY#{account_id}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    account_id: str
    email: Annotated[str, Unique()]
    version: Annotated[int, Version()] = 0


class Order(Entity, table=site):
    """A child of an account."""

    key = Key("TENANT#{tenant_id}#ORDER#{order_id}", "ORDER")
    of_account = Key("TENANT#{tenant_id}#ACCOUNT#{account_id}", "{order_id}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    account_id: str
    order_id: str


def opened(path: str, seconds: float) -> Database:
    """Open the file as of a moment."""
    return site.open(f"sqlite:///{path}", clock=lambda: seconds)


if __name__ == "__main__":
    with opened(sys.argv[1], float(sys.argv[2])) as db:
        step("begun")
        report = purge(db.admin(), progress=lambda so_far: step(f"removed {so_far.items}"))
        tell(f"done {report.items} {report.problems}")
