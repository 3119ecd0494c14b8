"""A storage in an S3 bucket, through a client of boto3 or botocore that the caller makes."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from weakref import WeakSet

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    IncompleteReadError,
    ReadTimeoutError,
    ResponseStreamingError,
)

from solotable._entities.declare.field_storage import StoredObject
from solotable.errors import DeclarationError, TransportError

from .blocking import BlockingStorage

ResultT = TypeVar("ResultT")
_MISSING = {"404", "NoSuchKey", "NotFound"}
#: Operations that come before the write of an item.
_OF_WRITES = {"CopyObject", "PutObject"}
_BINARY = "application/octet-stream"
#: botocore repeats requests, but does not read a body again whose connection was lost.
_READ_ATTEMPTS = 5
_LOST_BODY = (IncompleteReadError, ReadTimeoutError, ResponseStreamingError)


class S3Storage(BlockingStorage):
    """Stores objects in a bucket, under `prefix`, which is empty or ends with a slash.

    `put_options` are further arguments of PutObject and CopyObject, such as `ServerSideEncryption`. Give each
    environment its own bucket or prefix: `collect_blobs` deletes what no item of its table refers to. A fork
    closes the client's idle connections, so that parent and child do not share one.
    """

    def __init__(
        self, client: Any, bucket: str, *, prefix: str = "", put_options: Mapping[str, Any] | None = None
    ) -> None:
        if prefix and (prefix.startswith("/") or not prefix.endswith("/")):
            raise DeclarationError(f"S3Storage(prefix={prefix!r}) must end, and not start, with a slash.")
        self._client = client
        _storages.add(self)
        self._bucket = bucket
        self._prefix = prefix
        self._options = dict(put_options or {})

    def close_idle_connections(self) -> None:
        """Close the connections that no request uses; the next request opens another."""
        self._client.close()

    def get(self, name: str) -> bytes | None:
        """Return the content of an object; None if it does not exist."""

        def load() -> bytes:
            reply = self._client.get_object(Bucket=self._bucket, Key=self._prefix + name)
            with closing(reply["Body"]) as body:
                data: bytes = body.read()
            return data

        def load_whole() -> bytes:
            for _ in range(_READ_ATTEMPTS - 1):
                with suppress(*_LOST_BODY):
                    return load()
            return load()

        return self._call("GetObject", name, load_whole)

    def put(self, name: str, data: bytes, media_type: str | None) -> None:
        """Store an object, or replace it."""
        self._call(
            "PutObject",
            name,
            lambda: self._client.put_object(
                Bucket=self._bucket,
                Key=self._prefix + name,
                Body=data,
                ContentType=media_type or _BINARY,
                **self._options,
            ),
            may_miss=False,
        )

    def touch(self, name: str, media_type: str | None) -> bool:
        """Copy an object onto itself, which sets its time; return whether it exists."""
        key = self._prefix + name
        copied = self._call(
            "CopyObject",
            name,
            lambda: self._client.copy_object(
                Bucket=self._bucket,
                Key=key,
                CopySource={"Bucket": self._bucket, "Key": key},
                MetadataDirective="REPLACE",
                ContentType=media_type or _BINARY,
                **self._options,
            ),
        )
        return copied is not None

    def delete(self, name: str, *, unless_modified_after: datetime) -> bool:
        """Delete an object unless it was stored or touched after a time; return whether it was deleted.

        S3 cannot check the time and delete in one request, so another request may come between the two.
        """
        key = self._prefix + name
        found = self._call("HeadObject", name, lambda: self._client.head_object(Bucket=self._bucket, Key=key))
        if found is None or _latest(found["LastModified"]) > unless_modified_after:
            return False
        self._call("DeleteObject", name, lambda: self._client.delete_object(Bucket=self._bucket, Key=key))
        return True

    def list(self, prefix: str) -> Iterator[StoredObject]:
        """Yield the objects whose names start with a prefix, in pages of 1,000."""
        token: dict[str, str] = {}
        while True:
            arguments = {"Bucket": self._bucket, "Prefix": self._prefix + prefix, **token}
            request = partial(self._client.list_objects_v2, **arguments)
            page: Any = self._call("ListObjectsV2", prefix, request, may_miss=False)
            for each in page.get("Contents", ()):
                name = each["Key"].removeprefix(self._prefix)
                yield StoredObject(name, each["Size"], _latest(each["LastModified"]))
            if not page.get("IsTruncated"):
                return
            token = {"ContinuationToken": page["NextContinuationToken"]}

    def _call(
        self, operation: str, name: str, call: Callable[[], ResultT], *, may_miss: bool = True
    ) -> ResultT | None:
        try:
            return call()
        except ClientError as error:
            if may_miss and error.response.get("Error", {}).get("Code") in _MISSING:
                return None
            raise self._failed(operation, name, error) from error
        except BotoCoreError as error:
            raise self._failed(operation, name, error) from error

    def _failed(self, operation: str, name: str, error: Exception) -> TransportError:
        outcome = " Nothing was written to the table." if operation in _OF_WRITES else ""
        return TransportError(
            f"S3 {operation} of {self._prefix + name!r} in bucket {self._bucket!r} failed: {error}.{outcome}"
        )


def _latest(modified: datetime) -> datetime:
    """Return the latest time that S3's time, in whole seconds, can mean."""
    return modified + timedelta(microseconds=999_999)


_storages: WeakSet[S3Storage] = WeakSet()


def _before_fork() -> None:
    for storage in tuple(_storages):
        storage.close_idle_connections()


if hasattr(os, "register_at_fork"):
    # In the parent, whose threads release the locks of the pool.
    os.register_at_fork(before=_before_fork)
