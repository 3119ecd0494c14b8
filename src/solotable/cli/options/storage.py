"""The storage of a command: `--storage`, a folder or a bucket of S3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from .database import CommandT, NotFoundError

if TYPE_CHECKING:
    from solotable.systems.storage import Storage


def storage_option(command: CommandT, what: str) -> CommandT:
    """Give a command `--storage` as its parameter `storage`; `what` is what the storage holds."""
    return click.option(
        "--storage",
        metavar="FOLDER",
        envvar="SOLOTABLE_STORAGE",
        help=f"Where {what} are: a folder, or s3://bucket/prefix. Default: $SOLOTABLE_STORAGE.",
    )(command)


def require_storage(place: str | None) -> Storage:
    """Open a storage, or stop the command if none was given."""
    found = open_storage(place)
    if found is None:
        raise click.UsageError("No storage given; pass --storage FOLDER, or set SOLOTABLE_STORAGE.")
    return found


def open_storage(place: str | None) -> Storage | None:
    """Open a storage; None if none was given."""
    from solotable.systems.storage import BucketStorage, FolderStorage

    if place is None:
        return None
    if not place.startswith("s3://"):
        if not Path(place).is_dir():
            raise NotFoundError(f"--storage {place}: no such folder.")
        return FolderStorage(place)
    try:
        import boto3
        from botocore.config import Config
    except ImportError:
        raise click.UsageError("--storage s3://... needs boto3: pip install solotable[aws]") from None
    bucket, _, prefix = place.removeprefix("s3://").partition("/")
    client = boto3.client("s3", config=Config(signature_version="s3v4"))
    return BucketStorage(client, bucket, prefix=f"{prefix.rstrip('/')}/" if prefix else "")
