"""Files that a command writes: complete, or not there at all."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, TypeVar

import click

from .exit_codes import USAGE

ResultT = TypeVar("ResultT")


class CannotWrite(click.ClickException):
    """The file exists, or its folder does not accept it."""

    exit_code = USAGE


def check_free(file: Path, *, force: bool) -> None:
    """Raise CannotWrite for an existing file, unless `force` replaces it."""
    if file.exists() and not force:
        raise CannotWrite(f"{file} already exists; --force replaces it.")


def write_whole(file: Path, write: Callable[[BinaryIO], ResultT]) -> ResultT:
    """Write a file under another name first, so that it is complete or does not exist."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{file.name}.", dir=file.parent)
    except OSError as error:
        raise CannotWrite(f"Cannot write {file}: {error.strerror}.") from error
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as target:
            result = write(target)
        part.replace(file)
    finally:
        part.unlink(missing_ok=True)
    return result
