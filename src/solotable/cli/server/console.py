"""`solotable console`: a database in the browser, for this machine only; read-only unless --write."""

from __future__ import annotations

import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable import __version__
from solotable.cli.data.prices import DEFAULT_REGION, load_prices
from solotable.cli.options.database import NotFoundError, check_is_database, file_exists, parse_url
from solotable.cli.options.models import load_tables, models_option

if TYPE_CHECKING:
    from solotable._entities.patterns.cost import Prices
    from solotable.urls import Url

DEFAULT_PORT = 8001


@click.command("console", epilog="Example: solotable console shop.db -m models.py:shop --write")
@click.argument("db", metavar="[DB|URL]", required=False, envvar="SOLOTABLE_URL")
@models_option
@click.option(
    *("-p", "--port"),
    default=DEFAULT_PORT,
    show_default=True,
    type=click.IntRange(0, 65535),
    help="The port; 0 picks a free one.",
)
@click.option("--write", is_flag=True, help="Allow edits; without it, the console only reads.")
@click.option("--profile", help="The AWS profile, for aws:// URLs.")
@click.option("--region", help="The AWS region, for aws:// URLs.")
@click.option("--endpoint-url", metavar="URL", help="Another endpoint that speaks DynamoDB's protocol.")
@click.option(
    "--prices",
    "prices_file",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="Your own price table, as JSON.",
)
@click.option(*("-o", "--open", "opens"), is_flag=True, help="Open the page in the browser.")
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    db: str | None,
    models: str | None,
    port: int,
    write: bool,
    profile: str | None,
    region: str | None,
    endpoint_url: str | None,
    prices_file: Path | None,
    opens: bool,
) -> None:
    """Show a file, an endpoint or aws://TABLE in the browser.

    Entities, item collections, access patterns with their requests and cost, history. Without models,
    entities are guessed from a sample. Default: solotable.db. Needs: pip install 'solotable[console]'
    """
    from solotable._connect import open_engine
    from solotable.console import ConsoleSettings, open_console
    from solotable.console.run import listen_on, serve_console
    from solotable.pages.bind import PortInUse

    url = _with_settings(parse_url(db or endpoint_url or "solotable.db"), profile, region, endpoint_url)
    if not file_exists(url):
        raise NotFoundError(f"No such file: {url.path}. Create it with: solotable schema apply -d {url.path}")
    if url.path is not None:
        check_is_database(url.path)
    tables = load_tables(models) if models else []
    prices = _prices(prices_file, url.settings.get("region"))
    engine = open_engine(url)
    try:
        settings = ConsoleSettings(prices=prices, write=write, models=models or "")
        console = open_console(engine, url, tables, settings)
        with listen_on(port) as listener:
            address = f"http://127.0.0.1:{listener.getsockname()[1]}/"
            click.echo(_banner(console.name, address, write=write, guessed=not tables))
            if opens:
                webbrowser.open(address)
            serve_console(console, listener)
    except PortInUse as error:
        raise click.ClickException(str(error)) from None
    finally:
        engine.close()


def _prices(file: Path | None, region: str | None) -> Prices:
    """Return the prices of a region; those of the default region stand in for an unknown one."""
    if file is None and region is not None:
        with suppress(click.UsageError):
            return load_prices(None, region)
        return load_prices(None, DEFAULT_REGION)
    return load_prices(file, region or DEFAULT_REGION)


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleOptions:
    """The options of `solotable serve` for its console."""

    port: int
    write: bool
    models: str | None


def logged(engine: Any) -> Any:
    """Return an engine whose requests the console lists."""
    from solotable.console.data.request_log import LoggedEngine, RequestLog

    return LoggedEngine(engine, RequestLog())


@contextmanager
def open_beside(engine: Any, path: str, options: ConsoleOptions, endpoint: str) -> Iterator[str]:
    """Serve the console of a served engine for as long as a block lasts; yield its address."""
    from solotable.console import ConsoleSettings, open_console
    from solotable.console.run import console_beside
    from solotable.pages.bind import PortInUse

    url = parse_url("sqlite://" if path == ":memory:" else path)
    settings = ConsoleSettings(
        prices=load_prices(None, DEFAULT_REGION),
        write=options.write,
        models=options.models or "",
        endpoint=endpoint,
    )
    tables = load_tables(options.models) if options.models else []
    try:
        with console_beside(open_console(engine, url, tables, settings), options.port) as port:
            yield f"http://127.0.0.1:{port}/"
    except PortInUse as error:
        raise click.ClickException(str(error).replace("--port", "--console-port")) from None


def _with_settings(url: Url, profile: str | None, region: str | None, endpoint_url: str | None) -> Url:
    given = {name: value for name, value in (("profile", profile), ("region", region)) if value}
    if (given or endpoint_url) and url.scheme == "sqlite":
        raise click.UsageError("--profile, --region and --endpoint-url need an aws:// or http:// URL.")
    if endpoint_url and url.scheme == "aws":
        url = replace(url, scheme="http", endpoint=endpoint_url.rstrip("/"))
    return replace(url, settings={**url.settings, **given})


def _banner(name: str, address: str, *, write: bool, guessed: bool) -> str:
    models = ", entities are guessed (-m names the models)" if guessed else ""
    may = "read and write" if write else "only read"
    return (
        f"solotable {__version__} · {name}{models}\n"
        f"  console  {address}\n"
        f"  Ctrl-C to stop; only this machine can reach it, and it can {may}"
    )
