"""`solotable serve`: serve a database file over DynamoDB's HTTP protocol."""

from __future__ import annotations

import contextlib
import re
import socket
from datetime import UTC, datetime
from functools import partial
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING

import click

from solotable import __version__
from solotable.cli.options.database import check_is_database
from solotable.cli.options.models import models_option

from .console import ConsoleOptions, logged, open_beside

if TYPE_CHECKING:
    from solotable._protocol.error_texts import ErrorTexts
    from solotable.server import RequestRecord

# What a browser sends as Origin.
_ORIGIN = re.compile(r"\*|null|[a-zA-Z][a-zA-Z0-9+.-]*://[!-.0-~]+")
_NAME = re.compile(r"\*|[a-zA-Z0-9._-]{1,253}")
_KEY = re.compile(r"[!-+\-.0-~]+")
_SECRET = re.compile(r"[!-~]+")
# Not imported from the protocol: `solotable --help` must not load it.
_YEARS = ("2025", "2026")


def _host(_ctx: click.Context, _parameter: click.Parameter, value: str) -> str:
    if not value.strip():
        raise click.BadParameter("must not be empty; 0.0.0.0 means every address.")
    return value


def _names(_ctx: click.Context, _parameter: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    for name in value:
        if not _NAME.fullmatch(name):
            raise click.BadParameter(f"{name!r} is not a host name; write it without scheme and port, or *.")
    return value


def _origin(_ctx: click.Context, _parameter: click.Parameter, value: str | None) -> str | None:
    if value is not None and not _ORIGIN.fullmatch(value):
        raise click.BadParameter("an origin is scheme://host[:port] without a path, or *.")
    return value


def _seconds(_ctx: click.Context, _parameter: click.Parameter, value: float) -> float:
    # FloatRange accepts both nan and inf.
    if value != value or value == float("inf"):  # noqa: PLR0124  # nan differs from itself
        raise click.BadParameter("must be a finite number of seconds.")
    return value


#: More would hardly be of use, and each takes 40 MB: a typing error must not fill the memory.
_MOST_WORKERS = 128


@click.command("serve", epilog="Example: solotable serve shop.db --port 8000")
@click.argument("db", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--host", default="127.0.0.1", show_default=True, callback=_host, help="The address to listen on."
)
@click.option(
    "-p",
    "--port",
    default=8000,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 picks a free one.",
)
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, _MOST_WORKERS),
    help="The number of worker processes. More than one answer reads on several cores.",
)
@click.option("--memory", is_flag=True, help="Keep all data in memory; it is lost when the server stops.")
@click.option("--relaxed", is_flag=True, help="Acknowledge writes before fsync.")
@click.option(
    "--access-key",
    envvar="SOLOTABLE_ACCESS_KEY",
    help="Require requests to be signed with this access key; needs --secret-key. "
    "Default: $SOLOTABLE_ACCESS_KEY.",
)
@click.option(
    "--secret-key",
    envvar="SOLOTABLE_SECRET_KEY",
    help="The secret of --access-key. Default: $SOLOTABLE_SECRET_KEY.",
)
@click.option(
    "--keys",
    "keys_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Require signatures by a key in this file: an access key and its secret per line.",
)
@click.option(
    "--allowed-host",
    "allowed_hosts",
    metavar="NAME",
    multiple=True,
    callback=_names,
    help="Without keys, also answer to this host name (*: any). Repeatable.",
)
@click.option(
    "--cors",
    "cors_origin",
    metavar="ORIGIN",
    callback=_origin,
    help="Allow pages of this origin (or *) to call from a browser.",
)
@click.option(
    "--sweep",
    "sweep_seconds",
    default=60.0,
    show_default=True,
    type=click.FloatRange(0),
    callback=_seconds,
    help="Seconds between removals of expired items; 0 turns them off.",
)
@click.option(
    "--error-texts",
    default=_YEARS[-1],
    show_default=True,
    type=click.Choice(_YEARS),
    help="The year of AWS's error texts; many changed in mid-2026.",
)
@click.option(
    "--buckets",
    metavar="FOLDER|s3://",
    help="The buckets of exports and imports: a folder with a folder for each bucket, or those of S3.",
)
@click.option("--no-heat", is_flag=True, help="Do not count the traffic of partition keys.")
@click.option("--log", is_flag=True, help="Print a line for each request.")
@click.option("--console/--no-console", help="Show the database in the browser too; see `solotable console`.")
@click.option(
    "--console-port",
    default=8001,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port of the console; 0 picks a free one.",
)
@click.option("--write", is_flag=True, help="Allow edits in the console.")
@models_option
@click.option("-q", "--quiet", is_flag=True, help="Print no banner.")
def command(  # noqa: PLR0913, PLR0917  # a command has as many parameters as options
    db: Path | None,
    host: str,
    port: int,
    workers: int,
    memory: bool,
    relaxed: bool,
    access_key: str | None,
    secret_key: str | None,
    keys_file: Path | None,
    allowed_hosts: tuple[str, ...],
    cors_origin: str | None,
    sweep_seconds: float,
    error_texts: ErrorTexts,
    buckets: str | None,
    no_heat: bool,
    log: bool,
    console: bool,
    console_port: int,
    write: bool,
    models: str | None,
    quiet: bool,
) -> None:
    """Serve the file DB over DynamoDB's HTTP protocol.

    Default: solotable.db, which is created if it does not exist. Any AWS SDK and the AWS CLI can call
    it: set AWS_ENDPOINT_URL_DYNAMODB=http://127.0.0.1:8000
    """
    from solotable.engines import sqlite
    from solotable.server import Settings, serve

    if memory and db is not None:
        raise click.UsageError("--memory uses no file; omit it or DB.")
    if workers > 1:
        _check_workers(memory=memory, console=console)
    path = ":memory:" if memory else str(db or "solotable.db")
    is_new = not memory and not Path(path).exists()
    settings = Settings(
        host=host,
        port=port,
        keys=_keys(access_key, secret_key, keys_file),
        allowed_hosts=allowed_hosts,
        cors_origin=cors_origin,
        sweep_seconds=sweep_seconds,
        log=_print_request if log else None,
    )

    consoles = contextlib.ExitStack()

    def ready(bound: int) -> None:
        address = ""
        if console:
            shown = ConsoleOptions(port=console_port, write=write, models=models)
            address = consoles.enter_context(open_beside(served, path, shown, f"http://127.0.0.1:{bound}"))
        if not quiet:
            storage = _storage(path, is_new=is_new, relaxed=relaxed, workers=workers)
            click.echo(_banner(host, bound, storage, signed=settings.keys is not None, console=address))

    if not memory:
        check_is_database(path)
    open_engine = partial(
        sqlite.open,
        path,
        durability="relaxed" if relaxed else "full",
        error_texts=error_texts,
        buckets=buckets,
        heat=not no_heat,
    )
    if workers > 1:
        from solotable.server.workers import serve_with_workers

        serve_with_workers(open_engine, settings, workers, ready=ready)
        return
    with open_engine() as engine:
        served = logged(engine) if console else engine
        with consoles:
            serve(served, settings, ready=ready)


def _check_workers(*, memory: bool, console: bool) -> None:
    if memory:
        raise click.UsageError("--memory needs a single process: omit it to use a file, or --workers.")
    if console:
        raise click.UsageError(
            "--console shows the requests of a single process: omit it or --workers. "
            "`solotable console DB` shows the same file beside the server."
        )
    if not hasattr(socket, "AF_UNIX"):
        raise click.UsageError("--workers needs Unix domain sockets, which Python lacks on this system.")


def _keys(access_key: str | None, secret_key: str | None, keys_file: Path | None) -> dict[str, str] | None:
    if (access_key is None) != (secret_key is None):
        raise click.UsageError("--access-key and --secret-key must be used together.")
    keys: dict[str, str] = {}
    if keys_file is not None:
        from solotable.server.auth.sigv4 import read_keys

        try:
            keys |= read_keys(keys_file.read_text(encoding="utf-8"))
        except UnicodeDecodeError:
            raise click.BadParameter(f"{keys_file} is not a text file.", param_hint="--keys") from None
    if access_key is not None and secret_key is not None:
        if not _KEY.fullmatch(access_key) or not _SECRET.fullmatch(secret_key):
            raise click.UsageError(
                "Keys and secrets must be visible ASCII, and keys must not contain a comma or slash."
            )
        keys[access_key] = secret_key
    return keys or None


def _print_request(record: RequestRecord) -> None:
    moment = datetime.fromtimestamp(record.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    click.echo(f"{moment} {record.client} {record.operation} {record.status} {record.seconds * 1000:.1f} ms")


def _storage(path: str, *, is_new: bool, relaxed: bool, workers: int) -> str:
    if path == ":memory:":
        return "in memory: data is lost when the server stops"
    return (
        path
        + (" (new file)" if is_new else "")
        + (f", {workers} workers and a writer" if workers > 1 else "")
        + (", relaxed: a power cut may lose the last writes" if relaxed else "")
    )


def _banner(host: str, port: int, storage: str, *, signed: bool, console: str = "") -> str:
    # Clients cannot call a wildcard address.
    called = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104  # listens nowhere
    url = f"http://[{called}]:{port}" if ":" in called else f"http://{called}:{port}"
    unsigned = "" if signed else " --no-sign-request"
    return (
        f"solotable {__version__} · {storage}\n"
        f"  DynamoDB endpoint  {url}{'  (requires signed requests)' if signed else ''}\n"
        + (f"  console            {console}\n" if console else "")
        + f"  try:  aws dynamodb list-tables --endpoint-url {url} --region us-east-1{unsigned}\n"
        f"  Ctrl-C to stop; {_reach(host, signed=signed)}"
    )


def _reach(host: str, *, signed: bool) -> str:
    try:
        here = host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        here = False  # a host name
    if here:
        return "only this machine can reach it"
    who = "clients with a key" if signed else "all clients (--keys requires signatures)"
    return f"other machines can reach it, and {who} can read and write"
