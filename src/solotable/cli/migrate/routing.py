"""`solotable migrate mirror`, `switch-reads`, `switch-writes` and `reverse`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.output import json_option, print_json

from .options import dry_run_option, migration_command, percent_option

if TYPE_CHECKING:
    from solotable.migrations.migration import Migration
    from solotable.migrations.switching.switch import Switched

_EXAMPLE = "shop -m shop.py:mapping --source old.db -d new.db"


@migration_command("mirror", f"{_EXAMPLE} --percent 5")
@percent_option("The share of reads that routers repeat on the other side and compare.")
@json_option
def mirror(migration: Migration, percent: float, as_json: bool) -> None:
    """Repeat a share of the reads on the other side, and compare.

    Each router counts differences and latencies: `router.status()`. Served reads do not wait.
    """
    record = migration.mirror(percent)
    if as_json:
        print_json(migration.status().to_dict())
    else:
        click.echo(f"{record.mirror_percent:g} % of the reads are mirrored; routers know it within a second.")


@migration_command("switch-reads", f"{_EXAMPLE} --percent 10")
@percent_option("The share of tenants whose reads the target serves.")
@click.option("--entity", metavar="ENTITY", help="Switch the reads of this entity only.")
@dry_run_option("Show what would change; change nothing.")
@json_option
def switch_reads(
    migration: Migration, percent: float, entity: str | None, dry_run: bool, as_json: bool
) -> None:
    """Serve a share of the reads from the target.

    A tenant stays on one side while the share grows. Consistent reads stay with the writes.
    """
    if dry_run:
        record = migration.record()
        now = record.reads_by_entity.get(entity, record.reads_percent) if entity else record.reads_percent
        _print_share(migration, entity, percent, as_json, f"would move from {now:g} to {percent:g} %")
        return
    migration.switch_reads(percent, entity=entity)
    _print_share(
        migration, entity, percent, as_json, f"are at {percent:g} %; routers know it within a second"
    )


def _print_share(migration: Migration, entity: str | None, percent: float, as_json: bool, text: str) -> None:
    if as_json:
        print_json({"entity": entity, "percent": percent, "status": migration.status().to_dict()})
    else:
        click.echo(f"The reads of {entity or 'all entities'} from the target {text}.")


def _switch_options(command: Any) -> Any:
    command = click.option(
        "--timeout",
        type=click.FloatRange(0, min_open=True),
        default=30.0,
        show_default=True,
        help="Undo the switch if it takes longer than this many seconds.",
    )(command)
    return click.option(
        "--max-lag",
        type=click.FloatRange(0, min_open=True),
        default=5.0,
        show_default=True,
        help="Refuse to begin if the other side is behind by more seconds.",
    )(command)


@migration_command("switch-writes", f"{_EXAMPLE} --timeout 30 --dry-run")
@_switch_options
@click.option(
    "--one-way", is_flag=True, help="Switch although the mapping has no inverse, so nothing leads back."
)
@dry_run_option("Show what refuses the switch; exit with 1 if something does.")
@json_option
def switch_writes(
    migration: Migration, timeout: float, max_lag: float, one_way: bool, dry_run: bool, as_json: bool
) -> int:
    """Switch the writes to the target.

    Routers hold writes back while the last changes are applied, and then send them to the target. From then
    on, changes of the target are applied to the sources. A switch that is late undoes itself.
    """
    options = _options(timeout, max_lag, dry_run, one_way=one_way)
    return _print_switched(migration.switch_writes(options), dry_run, as_json)


@migration_command("reverse", f"{_EXAMPLE} --timeout 30")
@_switch_options
@dry_run_option("Show what refuses the way back; exit with 1 if something does.")
@json_option
def reverse(migration: Migration, timeout: float, max_lag: float, dry_run: bool, as_json: bool) -> int:
    """Switch the writes back to the sources; no write is lost."""
    options = _options(timeout, max_lag, dry_run)
    return _print_switched(migration.reverse(options), dry_run, as_json)


def _options(timeout: float, max_lag: float, dry_run: bool, *, one_way: bool = False) -> Any:
    from solotable.migrations.switching.switch import SwitchOptions

    return SwitchOptions(timeout_seconds=timeout, max_lag_seconds=max_lag, dry_run=dry_run, one_way=one_way)


def _print_switched(switched: Switched, dry_run: bool, as_json: bool) -> int:
    if as_json:
        print_json({**asdict(switched), "dry_run": dry_run})
    elif dry_run:
        for reason in switched.reasons:
            click.echo(f"Refused: {reason}.")
        if not switched.reasons:
            click.echo(f"Nothing prevents the switch of the writes to the {switched.to}.")
    else:
        click.echo(
            f"The {switched.to} takes writes. Writes waited {switched.pause_seconds:.3f} s; "
            f"{switched.drained:,} changes were drained."
        )
    return FAILED if switched.reasons else 0
