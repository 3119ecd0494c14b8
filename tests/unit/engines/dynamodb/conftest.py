"""A machine without any AWS configuration, and an engine on a server of our own."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from solotable.engines import dynamodb
from solotable.engines.dynamodb.clients import Clients, Wanted
from solotable.engines.dynamodb.connections import Patience
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


@pytest.fixture(scope="module", params=["own", "botocore"])
def opened(server: Running, request: pytest.FixtureRequest) -> Iterator[dynamodb.DynamoEngine]:
    # Opening one takes botocore a tenth of a second.
    url = f"http://127.0.0.1:{server.port}"
    with dynamodb.open(endpoint_url=url, botocore=request.param == "botocore") as made:
        yield made


@pytest.fixture(params=["own", "botocore"])
def impatient(request: pytest.FixtureRequest) -> Callable[[str], dynamodb.DynamoEngine]:
    """Opens an engine that waits half a second for an answer, and goes one way or the other."""

    def open_at(url: str) -> dynamodb.DynamoEngine:
        patience = Patience(read_seconds=0.5)
        wanted = Wanted(endpoint_url=url, botocore=request.param == "botocore", patience=patience)
        return dynamodb.DynamoEngine(Clients(wanted))

    return open_at


@pytest.fixture
def engine(opened: dynamodb.DynamoEngine) -> dynamodb.DynamoEngine:
    """An engine on the empty table Things."""
    for item in opened.handle(Scan(table="Things")).items:
        opened.handle(DeleteItem(table="Things", key={"pk": item["pk"]}))
    return opened
