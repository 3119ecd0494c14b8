"""Every test of offloaded fields once more, with their objects on a real S3 server."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable.blobs import MemoryStorage
from solotable.blobs.s3 import S3Storage
from tests.s3_server import new_bucket, s3_client

from . import test_offloaded
from .test_offloaded import *  # noqa: F403 - its tests, which this module runs again

pytestmark = pytest.mark.in_process


@pytest.fixture(autouse=True)
def _in_s3(s3_endpoint: str) -> Iterator[None]:
    client = s3_client(s3_endpoint)
    test_offloaded.shelf.clear(S3Storage(client, new_bucket(s3_endpoint), prefix="suite/"))
    yield
    test_offloaded.shelf.clear(MemoryStorage())
    client.close()
