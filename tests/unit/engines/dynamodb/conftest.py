"""A machine without any AWS configuration, and an engine on a server of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from solotable.engines import dynamodb
from solotable.protocol.requests import DeleteItem, Scan
from tests.unit.server.running import Running, running


@pytest.fixture(autouse=True)
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave botocore nothing to find but what a test sets."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    # Without credentials botocore would ask the network for those of an EC2 instance.
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


@pytest.fixture(scope="module")
def server() -> Iterator[Running]:
    """Our own server, with the table Things."""
    with running() as made:
        yield made


@pytest.fixture
def url(server: Running) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture(scope="module")
def opened(server: Running) -> Iterator[dynamodb.DynamoEngine]:
    # Opening one takes botocore a tenth of a second.
    with dynamodb.open(endpoint_url=f"http://127.0.0.1:{server.port}") as made:
        yield made


@pytest.fixture
def engine(opened: dynamodb.DynamoEngine) -> dynamodb.DynamoEngine:
    """An engine on the empty table Things."""
    for item in opened.handle(Scan(table="Things")).items:
        opened.handle(DeleteItem(table="Things", key={"pk": item["pk"]}))
    return opened
