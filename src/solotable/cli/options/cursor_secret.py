"""The secret that signs cursors: from the environment, or a file of this user on this machine."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from .database import CommandT, split_secrets

VARIABLE = "SOLOTABLE_CURSOR_SECRETS"
#: Not imported from the store: `solotable --help` must not load it.
_SHORTEST = 16


def cursor_options(command: CommandT, *, cursor_help: str) -> CommandT:
    """Give a command `--cursor` and `--cursor-secret` as its parameters `cursor` and `secret`."""
    command = click.option(
        "--cursor-secret",
        "secret",
        metavar="SECRET",
        help=f"Sign cursors with this text of at least 16 bytes. Default: ${VARIABLE}, "
        "or a secret of your user on this machine.",
    )(command)
    return click.option("--cursor", help=cursor_help)(command)


def check_cursor(cursor: str | None, secret: str | None) -> None:
    """Raise a usage error for a cursor without the secret that signed it."""
    if cursor is not None and secret is None:
        raise click.UsageError(
            f"--cursor needs the secret that signed it; pass --cursor-secret or set {VARIABLE}."
        )


def cursor_secret(given: str | None = None) -> str | None:
    """Return the given secret, $SOLOTABLE_CURSOR_SECRETS, or this user's secret, created on first use.

    Return None if the user's secret cannot be stored, for example without a home folder.
    """
    if given:
        return _check(given, "--cursor-secret", "")
    if environment := os.environ.get(VARIABLE):
        return _check(environment, f"${VARIABLE}", "")
    try:
        file = _state_folder() / "cursor-secret"
        secret = _read(file)
        if not secret:
            _create(file)
            secret = _read(file)
    except (OSError, RuntimeError):
        return None
    return _check(secret, str(file), " Write a longer one, or delete the file to get a new one.")


def _check(text: str, source: str, advice: str) -> str:
    """Return the text if its secrets, separated by commas, are long enough."""
    sizes = [len(secret) for secret in split_secrets(text)] or [0]
    if min(sizes) < _SHORTEST:
        raise click.UsageError(
            f"{source} has {min(sizes)} bytes; a cursor secret has at least {_SHORTEST}.{advice}"
        )
    return text


def _read(file: Path) -> str:
    """Return the content of the file, empty if it does not exist."""
    try:
        return file.read_text(encoding="ascii").strip()
    except FileNotFoundError:
        return ""
    except UnicodeDecodeError:
        raise click.UsageError(
            f"{file} is not a cursor secret: it is not ASCII. Delete the file to get a new one."
        ) from None


def _state_folder() -> Path:
    # XDG: ignore a relative path.
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "solotable"


def _create(file: Path) -> None:
    """Create the file whole: another process reads the same secret, or none, but never a part.

    An empty file is replaced: a full disk or a crash may leave one.
    """
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp creates a file that only this user can read.
    number, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    try:
        os.write(number, secrets.token_hex(32).encode())
        if file.exists() and not _read(file):
            Path(name).replace(file)
        else:
            # link() fails if another process was first.
            with suppress(FileExistsError):
                os.link(name, file)
    finally:
        os.close(number)
        Path(name).unlink(missing_ok=True)
