"""`solotable migrate`: move tables to another layout while applications use them."""

from __future__ import annotations

import click

from solotable.cli.groups import CommandGroup

from .compare import diff, repair
from .ending import cancel, complete
from .routing import mirror, reverse, switch_reads, switch_writes
from .status import show, status
from .workflow import create, start, stop


@click.group("migrate", cls=CommandGroup)
def command() -> None:
    """Move tables to another layout while applications use them."""


for _each in (
    *(create, start, stop, status, show, diff, repair, mirror),
    *(switch_reads, switch_writes, reverse, cancel, complete),
):
    command.add_command(_each)
