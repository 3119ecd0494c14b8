"""Where exports and shipped backups are: a folder, or a bucket of S3 through a client of boto3.

A name is relative to its location. Names that leave the location are rejected, and links are not followed.
"""

from __future__ import annotations

import io
import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from tempfile import SpooledTemporaryFile
from typing import IO, Any, Protocol

from solotable.errors import DataError

#: What a file may be called: no empty part, no part of dots only, no backslash.
_PART = re.compile(r"(?!\.{1,2}$)[A-Za-z0-9!_.*'() =-]+")
#: How many bytes of an upload stay in memory.
_SPOOLED_BYTES = 8 * 2**20
_MISSING = {"404", "NoSuchKey", "NotFound"}


class Location(Protocol):
    """A place that holds files by name."""

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading; raise FileNotFoundError if it does not exist."""
        ...

    def create(self, name: str) -> Any:
        """Return a context with a writable file, which exists under its name once the context ends."""
        ...

    def delete(self, name: str) -> None:
        """Delete a file; one that does not exist is not an error."""
        ...

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names of the files and folders directly in a folder."""
        ...

    def find(self, prefix: str) -> Iterator[str]:
        """Yield the names of all files that begin with a prefix, in order."""
        ...

    def below(self, prefix: str) -> Location:
        """Return the location of a folder."""
        ...


class Buckets(Protocol):
    """The buckets that an engine exports to and imports from."""

    #: Whether a file is written without a network.
    is_local: bool

    def open_bucket(self, name: str) -> Location:
        """Return the location of a bucket; raise FileNotFoundError if it does not exist."""
        ...


def locate_buckets(target: str | os.PathLike[str], *, client: Any = None) -> Buckets:
    """Return the buckets below a folder, or those of S3 for `s3://`."""
    text = os.fspath(target)
    if text.rstrip("/") == "s3:":
        return S3Buckets(client or _default_client())
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
    return S3Location(client or _default_client(), bucket, prefix=prefix)


class FolderLocation:
    """The files below a folder. A file is written beside its place, synced and renamed."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._root = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self._root)

    def open(self, name: str) -> IO[bytes]:
        """Open a file for reading."""
        path = self._path(name)
        try:
            descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0))
        except FileNotFoundError:
            raise
        except OSError as error:
            raise DataError(f"{path} cannot be read: {error.strerror}.") from error
        return os.fdopen(descriptor, "rb")

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Return a context with a new file, which replaces one of its name once it is complete."""
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name[:64]}-{secrets.token_hex(4)}")
        try:
            with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
        _sync(path.parent)

    def delete(self, name: str) -> None:
        """Delete a file, and folders that it leaves empty."""
        path = self._path(name)
        path.unlink(missing_ok=True)
        for parent in path.parents[: len(checked(name)) - 1]:
            try:
                parent.rmdir()
            except OSError:
                return

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names in a folder; none if the folder does not exist."""
        path = self._path(folder) if folder else self._root
        with suppress(FileNotFoundError, NotADirectoryError):
            yield from sorted(each.name for each in path.iterdir() if not each.name.startswith("."))

    def below(self, prefix: str) -> FolderLocation:
        """Return the location of a folder."""
        name = prefix.strip("/")
        return FolderLocation(self._path(name)) if name else self

    def find(self, prefix: str) -> Iterator[str]:
        """Yield the names that begin with a prefix; links and hidden files are left out."""
        found = []
        for folder, folders, files in os.walk(self._root):
            folders[:] = [each for each in folders if not each.startswith(".")]
            for each in files:
                path = Path(folder, each)
                name = path.relative_to(self._root).as_posix()
                if name.startswith(prefix) and not each.startswith(".") and not path.is_symlink():
                    found.append(name)
        yield from sorted(found)

    def _path(self, name: str) -> Path:
        return self._root.joinpath(*checked(name))


class S3Location:
    """The objects of a bucket below a prefix, through an S3 client of boto3 or botocore."""

    def __init__(self, client: Any, bucket: str, *, prefix: str = "") -> None:
        self._client = client
        self._bucket = bucket
        self._prefix = f"{prefix.strip('/')}/" if prefix.strip("/") else ""

    def __str__(self) -> str:
        return f"s3://{self._bucket}/{self._prefix}".rstrip("/")

    def open(self, name: str) -> IO[bytes]:
        """Open an object for reading."""
        from botocore.exceptions import ClientError

        key = self._key(name)
        try:
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] in _MISSING:
                raise FileNotFoundError(f"s3://{self._bucket}/{key}") from error
            raise DataError(f"s3://{self._bucket}/{key} cannot be read: {error}") from error
        return io.BufferedReader(_Body(body))

    @contextmanager
    def create(self, name: str) -> Iterator[IO[bytes]]:
        """Return a context with a file that is uploaded at its end."""
        key = self._key(name)
        with SpooledTemporaryFile(_SPOOLED_BYTES) as file:
            yield file
            file.seek(0)
            self._client.put_object(Bucket=self._bucket, Key=key, Body=file)

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def list(self, folder: str) -> Iterator[str]:
        """Yield the names directly below a folder."""
        prefix = self._key(folder) + "/" if folder else self._prefix
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=prefix, Delimiter="/"
        )
        for page in pages:
            names = [each["Key"] for each in page.get("Contents", ())]
            names += [each["Prefix"] for each in page.get("CommonPrefixes", ())]
            yield from sorted(name.removeprefix(prefix).rstrip("/") for name in names if name != prefix)

    def below(self, prefix: str) -> S3Location:
        """Return the location of a folder."""
        name = prefix.strip("/")
        return S3Location(self._client, self._bucket, prefix=self._key(name)) if name else self

    def find(self, prefix: str) -> Iterator[str]:
        """Yield the names of the objects that begin with a prefix."""
        pages = self._client.get_paginator("list_objects_v2").paginate(
            Bucket=self._bucket, Prefix=self._prefix + prefix
        )
        for page in pages:
            for each in page.get("Contents", ()):
                # A console creates folders as empty objects.
                if not each["Key"].endswith("/"):
                    yield each["Key"].removeprefix(self._prefix)

    def _key(self, name: str) -> str:
        return self._prefix + "/".join(checked(name))


class FolderBuckets:
    """Buckets as folders directly below another folder; create a bucket with mkdir."""

    is_local = True

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self._root = Path(folder).absolute()

    def __str__(self) -> str:
        return str(self._root)

    def open_bucket(self, name: str) -> FolderLocation:
        """Return the location of a bucket."""
        path = self._root.joinpath(*checked(name)[:1])
        if "/" in name or path.is_symlink() or not path.is_dir():
            raise FileNotFoundError(str(path))
        return FolderLocation(path)


class S3Buckets:
    """The buckets of S3, through a client of boto3."""

    is_local = False

    def __init__(self, client: Any) -> None:
        self._client = client

    def __str__(self) -> str:
        return "s3://"

    def open_bucket(self, name: str) -> S3Location:
        """Return the location of a bucket."""
        from botocore.exceptions import ClientError

        try:
            self._client.head_bucket(Bucket=name)
        except ClientError as error:
            if error.response["Error"]["Code"] in {*_MISSING, "NoSuchBucket"}:
                raise FileNotFoundError(f"s3://{name}") from error
            raise DataError(f"s3://{name} cannot be opened: {error}") from error
        return S3Location(self._client, name)


class _Body(io.RawIOBase):
    """A streaming body of botocore as a raw file, so that it can be buffered."""

    def __init__(self, body: Any) -> None:
        self._body = body

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self._body.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._body.close()
        super().close()


def checked(name: str) -> tuple[str, ...]:
    """Return the parts of a name, or raise DataError if it could leave its location."""
    parts = tuple(name.split("/"))
    if not all(_PART.fullmatch(part) for part in parts):
        raise DataError(f"{name!r} is not the name of a file below a location.")
    return PurePosixPath(*parts).parts


def _default_client() -> Any:
    try:
        import boto3
    except ImportError:
        raise DataError("s3:// needs boto3; install it with: pip install 'solotable[aws]'.") from None
    return boto3.client("s3")


def _sync(folder: Path) -> None:
    if os.name == "nt":
        return  # Windows cannot open a folder, and renames are durable.
    opened = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)
