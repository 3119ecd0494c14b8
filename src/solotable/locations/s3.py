"""Locations and buckets on S3, through a client of boto3."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import SpooledTemporaryFile
from typing import IO, Any

from solotable.errors import DataError

from .ports import checked

#: How many bytes of an upload stay in memory.
_SPOOLED_BYTES = 8 * 2**20
_MISSING = {"404", "NoSuchKey", "NotFound"}


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
    def create(self, name: str, *, replace: bool = True) -> Iterator[IO[bytes]]:
        """Return a context with a file that is uploaded at its end."""
        from botocore.exceptions import ClientError

        key = self._key(name)
        condition = {} if replace else {"IfNoneMatch": "*"}
        with SpooledTemporaryFile(_SPOOLED_BYTES) as file:
            yield file
            file.seek(0)
            try:
                self._client.put_object(Bucket=self._bucket, Key=key, Body=file, **condition)
            except ClientError as error:
                if not replace and error.response["Error"]["Code"] == "PreconditionFailed":
                    raise FileExistsError(f"s3://{self._bucket}/{key}") from error
                raise

    def delete(self, name: str) -> None:
        """Delete an object."""
        self._client.delete_object(Bucket=self._bucket, Key=self._key(name))

    def delete_leftovers(self, *, older_than_seconds: float) -> None:
        """Do nothing: an object is uploaded whole or not at all."""

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


def default_client() -> Any:
    """Return a client of boto3 with its own configuration."""
    try:
        import boto3
    except ImportError:
        raise DataError("s3:// needs boto3; install it with: pip install 'solotable[aws]'.") from None
    return boto3.client("s3")
