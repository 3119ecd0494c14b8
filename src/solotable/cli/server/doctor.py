"""`solotable doctor`: check the installation and a database file."""

from __future__ import annotations

import importlib.util
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from solotable import __version__
from solotable.cli.options.database import NotFoundError
from solotable.cli.progress import progress

_OPTIONAL = {"orjson": "faster JSON", "boto3": "boto3 clients in process, and Amazon DynamoDB"}


@click.command("doctor", epilog="Example: solotable doctor shop.db --json")
@click.argument("db", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def command(db: Path | None, as_json: bool) -> int:
    """Check the installation, and the file DB.

    Exits with 1 if DB has a problem, with 3 if it does not exist.
    """
    import sqlite3

    from solotable.engines.sqlite.maintenance.checkup import examine, wal_reset_is_fixed

    report: dict[str, Any] = {
        "solotable": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "sqlite": sqlite3.sqlite_version,
        "wal_reset_fixed": wal_reset_is_fixed(sqlite3.sqlite_version_info),
        "optional": {name: importlib.util.find_spec(name) is not None for name in _OPTIONAL},
    }
    if db is not None and not db.exists():
        raise NotFoundError(f"No such file: {db}.")
    found = None
    if db is not None:
        with progress("items", quiet=as_json) as update:
            found = examine(str(db), update)
    if found is not None:
        report["file"] = asdict(found)
    if as_json:
        click.echo(json.dumps(report, indent=2))
    else:
        _print(report)
    return 1 if found is not None and found.problems else 0


def _print(report: dict[str, Any]) -> None:
    click.echo(f"solotable  {report['solotable']}")
    click.echo(f"Python     {report['python']} on {report['platform']}")
    fixed = (
        "" if report["wal_reset_fixed"] else "  (before 3.51.3: solotable's lock avoids its WAL-reset bug)"
    )
    click.echo(f"SQLite     {report['sqlite']}{fixed}")
    for name, installed in report["optional"].items():
        click.echo(f"{name:<10} {'installed' if installed else 'not installed'}: {_OPTIONAL[name]}")
    file = report.get("file")
    if file is None:
        return
    click.echo(f"\n{file['path']}")
    for name, value in file["settings"].items():
        click.echo(f"  {name:<14}{value}")
    for name, count in file["tables"].items():
        click.echo(
            f"  table {name}: {count:,} items, all checksums match"
            if not file["problems"]
            else f"  table {name}: {count:,} items"
        )
    for problem in file["problems"]:
        click.secho(f"  PROBLEM  {problem}", fg="red")
    for advice in file["advice"]:
        click.echo(f"  advice   {advice}")
    if not file["problems"]:
        click.echo("  integrity ok")


if __name__ == "__main__":
    sys.exit(command())
