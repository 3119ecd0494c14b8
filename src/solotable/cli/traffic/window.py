"""The time range of a command (`--last 1h`), and the recorded heat of its database."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

import click

from solotable.cli.options.database import open_engine_of, parse_url

if TYPE_CHECKING:
    from solotable.heat import HeatLog

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_SECONDS = {"m": 60, "min": 60, "h": 3600, "d": 86_400}
_LAST = re.compile(r"([0-9]{1,6})(m|min|h|d)")
_LONGEST = 7 * 86_400


def _parse_last(_ctx: click.Context, _parameter: click.Parameter, value: str) -> int:
    found = _LAST.fullmatch(value.strip().lower())
    seconds = 0 if found is None else int(found[1]) * _SECONDS[found[2]]
    if not 60 <= seconds <= _LONGEST:
        raise click.BadParameter(f"{value!r} is not a time range; write 30m, 1h, 24h or 7d, at most 7d.")
    return seconds


def last_option(command: CommandT) -> CommandT:
    """Give a command `--last` as its parameter `last`, in seconds."""
    return click.option(
        "--last",
        default="1h",
        show_default=True,
        metavar="TIME",
        callback=_parse_last,
        help="The time range: 30m, 1h, 24h or 7d.",
    )(command)


def read_log(db: str | None, last: int) -> tuple[HeatLog, float]:
    """Return the recorded heat of a database, and the time now."""
    from solotable.heat import read_heat

    url = parse_url(db)
    if url.scheme == "sqlite" and url.path is None:
        raise click.UsageError(
            "sqlite:// is a new database in memory; pass a file, or the URL of a server: http://127.0.0.1:8000"
        )
    now = time.time()
    with open_engine_of(db) as engine:
        return read_heat(engine, since=now - last), now
