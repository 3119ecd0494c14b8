"""Options of commands that scan a table: capacity, segments and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Callable

    from .database import CommandT

#: More items than any table has.
_BUDGET = 1_000_000_000


def rate_option(command: CommandT) -> CommandT:
    """Add `--rate`."""
    return click.option(
        "--rate",
        type=click.FloatRange(0, min_open=True),
        help="Use at most this many capacity units per second.",
    )(command)


def segments_option(also: str = "") -> Callable[[CommandT], CommandT]:
    """Add `--segments`; `also` is what else the segments bound."""
    return click.option(
        "--segments",
        type=click.IntRange(1, 1000),
        default=1,
        show_default=True,
        help=f"Scan the table in this many parallel segments{also}.",
    )


def budget_option(also: str = "") -> Callable[[CommandT], CommandT]:
    """Add `--budget`; `also` is what happens if the table has more items."""
    return click.option(
        "--budget",
        type=click.IntRange(1),
        default=_BUDGET,
        help=f"Read at most this many items{also}. Default: the whole table.",
    )
