"""`solotable backup ship`, `recover`, `verify` and `prune`: a copy of a file on another disk."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.options.database import NotFoundError, check_is_database
from solotable.cli.options.signals import stopped_by_signals
from solotable.cli.output import json_option, note, plural, print_json
from solotable.cli.progress import progress

if TYPE_CHECKING:
    from solotable.locations import Location
    from solotable.shipping import Restored, Shipped

_PRUNE_SECONDS = 3_600.0
_UNITS = {"s": "seconds", "m": "minutes", "h": "hours", "d": "days"}


def parse_period(ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
    """Return the seconds of a period such as 90s, 15m, 24h or 35d."""
    if text is None:
        return None
    number, unit = text[:-1], text[-1:]
    if unit not in _UNITS or not number.isdigit() or not int(number):
        raise click.BadParameter(f"{text!r} is not a period; write a number and s, m, h or d, as in 35d.")
    return timedelta(**{_UNITS[unit]: int(number)}).total_seconds()


_target = click.argument("target", metavar="FOLDER|s3://BUCKET/PREFIX")


@click.command("ship", epilog="Example: solotable backup ship shop.db s3://backups/shop --keep 35d")
@click.argument("db", type=click.Path(dir_okay=False, path_type=Path))
@_target
@click.option(
    "--interval",
    callback=parse_period,
    default="1s",
    show_default=True,
    help="How often to ship what was committed.",
)
@click.option(
    "--snapshot-every", callback=parse_period, default="1d", show_default=True, help="The age of a snapshot."
)
@click.option(
    "--keep", callback=parse_period, help="Delete what no restore to a moment of this period needs."
)
@click.option("--once", is_flag=True, help="Ship once and exit.")
@json_option
def ship(
    db: Path,
    target: str,
    interval: float,
    snapshot_every: float,
    keep: float | None,
    once: bool,
    as_json: bool,
) -> None:
    """Keep a copy of the file DB elsewhere, a moment behind.

    Other processes may write DB; they do not wait. Runs until it is interrupted, and then ships the rest.
    With --json, prints one line for each change.
    """
    from solotable.locations import locate
    from solotable.shipping import Shipper, ShippingLimits

    if not db.exists():
        raise NotFoundError(f"No such file: {db}.")
    check_is_database(str(db))
    location = locate(target)
    limits = ShippingLimits(snapshot_seconds=snapshot_every)
    if not as_json:
        click.echo(f"Shipping {db} to {target}")
    with stopped_by_signals() as stop, Shipper(str(db), location, limits=limits) as shipper:
        if once:
            stop.set()
        shipper.run(
            stop,
            interval_seconds=interval,
            progress=_ShipReport(location, keep, as_json),
            problem=lambda error: note(f"Not shipped, trying again: {error}"),
        )


class _ShipReport:
    """Prints what was shipped, and prunes from time to time."""

    def __init__(self, location: Location, keep: float | None, as_json: bool) -> None:
        self._location = location
        self._keep = keep
        self._as_json = as_json
        self._last: tuple[str, int] | None = None
        self._next_prune = 0.0

    def __call__(self, now: Shipped) -> None:
        if (now.generation, now.sequence) != self._last:
            self._last = (now.generation, now.sequence)
            self._print(now)
        if self._keep is not None and time.monotonic() >= self._next_prune:
            from solotable.shipping import prune

            self._next_prune = time.monotonic() + _PRUNE_SECONDS
            prune(self._location, keep_seconds=self._keep)

    def _print(self, now: Shipped) -> None:
        if self._as_json:
            print_json_line({**asdict(now), "until": _moment(now.micros)})
            return
        line = (
            f"  generation {now.generation}, segment {now.sequence:,}: "
            f"everything until {_moment(now.micros)} is stored"
        )
        # On a terminal, one line that changes.
        click.echo(f"\r{line}" if sys.stdout.isatty() else line, nl=not sys.stdout.isatty())


def print_json_line(value: dict[str, Any]) -> None:
    """Print one line of JSON, at once."""
    import json

    click.echo(json.dumps(value))
    sys.stdout.flush()


@click.command("recover", epilog="Example: solotable backup recover s3://backups/shop shop.db")
@_target
@click.argument("db", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--at", metavar="TIME", help="Recover this moment, as 2026-11-17T09:00:00Z. Default: the newest."
)
@json_option
def recover(target: str, db: Path, at: str | None, as_json: bool) -> None:
    """Restore a shipped backup to the new file DB."""
    from solotable.locations import locate
    from solotable.shipping import restore_file

    with progress("recover", quiet=as_json) as update:
        done = restore_file(locate(target), db, at=parse_time(at), progress=update)
    _print_restored(str(db), done, as_json)


@click.command("verify", epilog="Example: solotable backup verify s3://backups/shop")
@_target
@click.option(
    "--at", metavar="TIME", help="Verify this moment, as 2026-11-17T09:00:00Z. Default: the newest."
)
@json_option
def verify(target: str, at: str | None, as_json: bool) -> None:
    """Restore a shipped backup to a temporary file and check it."""
    from solotable.locations import locate
    from solotable.shipping import verify as check

    with progress("verify", quiet=as_json) as update:
        done = check(locate(target), at=parse_time(at), progress=update)
    _print_restored(f"{target} can be restored", done, as_json)


@click.command("prune", epilog="Example: solotable backup prune s3://backups/shop --keep 35d --dry-run")
@_target
@click.option("--keep", callback=parse_period, required=True, help="Keep every moment of this period.")
@click.option("--dry-run", is_flag=True, help="Count what would be deleted; delete nothing.")
@json_option
def prune(target: str, keep: float, dry_run: bool, as_json: bool) -> None:
    """Delete shipped backups older than a period."""
    from solotable.locations import locate
    from solotable.shipping import prune as delete

    done = delete(locate(target), keep_seconds=keep, dry_run=dry_run)
    if as_json:
        print_json(asdict(done))
        return
    verb = "To delete" if dry_run else "Deleted"
    click.echo(
        f"{verb}: {plural(done.segments, 'segment')}, {plural(done.snapshots, 'snapshot')}, "
        f"{plural(done.generations, 'whole generation')}."
    )


def parse_time(text: str | None) -> float | None:
    """Return the seconds since the epoch of a time in ISO 8601."""
    if text is None:
        return None
    try:
        found = datetime.fromisoformat(text)
    except ValueError:
        raise click.BadParameter(
            f"{text!r} is not a time; write it as 2026-11-17T09:00:00Z.", param_hint="--at"
        ) from None
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _print_restored(what: str, done: Restored, as_json: bool) -> None:
    if as_json:
        print_json({**asdict(done), "until": _moment(done.micros)})
    else:
        click.echo(f"{what}: {done.bytes:,} bytes, as of {_moment(done.micros)}")


def format_moment(seconds: float) -> str:
    """Return a time as text, in UTC."""
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%d %H:%M:%S} UTC"


def _moment(micros: int) -> str:
    return format_moment(micros / 1e6)
