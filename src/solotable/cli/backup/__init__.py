"""`solotable backup`: continuous backups, backups on demand, restores, drills and shipping of a file."""

from __future__ import annotations

import click

from solotable.cli.groups import CommandGroup

from .drills import drill
from .on_demand import create, delete, list_backups
from .remote import remote
from .restores import history, preview, restore
from .shipping import prune, recover, ship, verify
from .windows import disable, enable, status


@click.group("backup", cls=CommandGroup)
def command() -> None:
    """Back up the tables of a file, and restore them."""


for _each in (
    *(enable, disable, status, preview, restore, history, create, list_backups, delete, drill),
    *(ship, recover, verify, prune, remote),
):
    command.add_command(_each)
