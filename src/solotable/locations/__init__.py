"""Where exports and shipped backups are: a folder, or a bucket of S3 through a client of boto3.

A name is relative to its location. Names that leave the location are rejected, and links are not followed.
"""

from __future__ import annotations

import os
from typing import Any

from solotable.errors import DataError

from .folder import FolderBuckets, FolderLocation
from .ports import Buckets, Location, checked
from .s3 import S3Buckets, S3Location, default_client

__all__ = [
    "Buckets",
    "FolderBuckets",
    "FolderLocation",
    "Location",
    "S3Buckets",
    "S3Location",
    "checked",
    "locate",
    "locate_buckets",
]


def locate_buckets(target: str | os.PathLike[str], *, client: Any = None) -> Buckets:
    """Return the buckets below a folder, or those of S3 for `s3://`."""
    text = os.fspath(target)
    if text.rstrip("/") == "s3:":
        return S3Buckets(client or default_client())
    if "://" in text:
        raise DataError(f"{text!r} does not hold buckets; pass a folder or s3://.")
    return FolderBuckets(text)


def locate(target: str | os.PathLike[str], *, client: Any = None) -> Location:
    """Return the location of a path, or of `s3://bucket/prefix`.

    `client` is an S3 client; the default is one of boto3 with its own configuration.
    """
    text = os.fspath(target)
    if not text.startswith("s3://"):
        if "://" in text:
            raise DataError(f"{text!r} is not a location; pass a folder or s3://BUCKET/PREFIX.")
        return FolderLocation(text)
    bucket, _, prefix = text.removeprefix("s3://").partition("/")
    if not bucket:
        raise DataError(f"{text!r} has no bucket; write s3://BUCKET/PREFIX.")
    return S3Location(client or default_client(), bucket, prefix=prefix)
