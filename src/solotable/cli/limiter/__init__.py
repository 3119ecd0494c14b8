"""`solotable limiter`: entities, limits, usage, audit trail and namespaces of a rate limiter.

A command parses, calls and prints; `solotable.systems.limiter` does the work and is imported when a command
runs.
"""

from __future__ import annotations

import click

from solotable.cli.groups import CommandGroup

from .audit import audit
from .bucket import acquire, available, bucket, check
from .defaults import resource, system
from .entity import entity
from .limits import limits
from .lookup import top, whois
from .namespace import namespace
from .template import template
from .usage import usage


@click.group("limiter", cls=CommandGroup)
def command() -> None:
    """Administer a rate limiter: limits, usage, audit trail."""


for _each in (
    acquire,
    audit,
    available,
    bucket,
    check,
    entity,
    limits,
    namespace,
    resource,
    system,
    template,
    top,
    usage,
    whois,
):
    command.add_command(_each)
