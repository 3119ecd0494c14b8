"""A machine without any AWS configuration, and an engine on a server of our own."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from solotable.engines import dynamodb
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


@pytest.fixture
def server() -> Iterator[Running]:
    """Our own server, with the empty table Things."""
    with running() as made:
        yield made


@pytest.fixture
def url(server: Running) -> str:
    return f"http://127.0.0.1:{server.port}"


@pytest.fixture
def engine(url: str) -> Iterator[dynamodb.DynamoEngine]:
    with dynamodb.open(endpoint_url=url) as made:
        yield made
