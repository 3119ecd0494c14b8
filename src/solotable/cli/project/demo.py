"""`solotable demo`: all systems with data on one file, and a front page that says what to try."""

from __future__ import annotations

import contextlib
import signal
import tempfile
import threading
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import click

from solotable import __version__

_NEEDS = ("fastapi", "jinja2", "uvicorn", "yaml")


@click.command("demo", epilog="Example: solotable demo --port 9000 --no-open")
@click.option(
    "-p",
    "--port",
    default=8080,
    show_default=True,
    type=click.IntRange(0, 65525),
    help="The port of the front page; the systems use the ports after it. 0 picks free ones.",
)
@click.option("--open/--no-open", "opens", default=True, help="Open the front page in the browser.")
@click.option(
    "--keep",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Keep the data in this folder. Default: a temporary folder, deleted at the end.",
)
def command(port: int, opens: bool, keep: Path | None) -> None:
    """Run five systems on one file, with a front page.

    A CMS, a rate limiter, surveys, a portal and a community, with data and logins, a DynamoDB endpoint, and
    the console if it is installed. Ctrl-C stops it. Needs: pip install 'solotable[demo]'
    """
    try:
        from solotable.pages.bind import PortInUse
        from solotable.systems.demo.program import DemoProgram, DemoSettings
    except ModuleNotFoundError as error:
        raise _missing(error) from None

    with _folder(keep) as folder:
        settings = DemoSettings(folder=folder, kept=keep is not None, port=port, console=_console_command())
        try:
            program = DemoProgram(settings)
        except PortInUse as error:
            raise click.ClickException(str(error)) from None
        click.echo(f"solotable {__version__} · demo · {folder / 'demo.db'}")

        def shown() -> None:
            click.echo(f"{'Front page':<14} {program.url}   what runs where, the logins, and what to try")
            if opens:
                webbrowser.open(program.url)

        with _stopped_by_signals(program.stop):
            program.run(click.echo, shown)
    click.echo("Stopped." if keep is None else f"Stopped; the data is in {keep}.")


def _missing(error: ModuleNotFoundError) -> click.ClickException:
    if (error.name or "").partition(".")[0] not in (*_NEEDS, "starlette", "idna", "jwt"):
        raise error
    return click.ClickException(
        f"The demo needs {error.name}, which is not installed: pip install 'solotable[demo]'"
    )


def _console_command() -> Callable[[Path, int], Sequence[str]] | None:
    """Return the arguments of `solotable console`, if this installation has the command."""
    from solotable.cli.main import SECTIONS

    if not any("console" in section for section in SECTIONS.values()):
        return None
    return lambda file, port: (
        *("console", str(file), "--port", str(port)),
        *("--models", "solotable.systems.demo.models"),
    )


@contextlib.contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="solotable-demo-") as name:
        yield Path(name)


@contextlib.contextmanager
def _stopped_by_signals(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM stop the demo in order; a second Ctrl-C ends the process at once."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def handle(_number: int, _frame: object) -> None:
        click.echo(" Stopping; press Ctrl-C again to end at once.")
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        stop()

    before = {number: signal.signal(number, handle) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
