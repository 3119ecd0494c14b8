"""A machine without any AWS configuration, and an engine on a server of our own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import pytest

from solotable._protocol.constraints.operations import ITEMS
from solotable._protocol.engine import Capabilities, Engine
from solotable._protocol.requests import DeleteItem, Request, Scan
from solotable.engines import dynamodb
from solotable.engines.dynamodb.auth.botocore_config import host_header, resolve_address
from solotable.engines.dynamodb.auth.credentials import SignerSource
from solotable.engines.dynamodb.auth.sigv4 import AccessKey
from solotable.engines.dynamodb.http.botocore_transport import BotocoreTransport
from solotable.engines.dynamodb.http.exchange import HttpSettings
from solotable.engines.dynamodb.http.pool import BlockingPool
from solotable.engines.dynamodb.http.transport import HttpTransport
from solotable.engines.dynamodb.http.wire_protocol import Service, WireProtocol
from solotable.engines.dynamodb.transports import EndpointOptions, Transports
from tests.unit.server.running import Running, running
from tests.waiting import HANG_SECONDS


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
def either_at(request: pytest.FixtureRequest) -> Callable[[str, HttpSettings], dynamodb.DynamoEngine]:
    """Opens an engine that goes one way or the other."""

    def open_at(url: str, settings: HttpSettings) -> dynamodb.DynamoEngine:
        wanted = EndpointOptions(endpoint_url=url, botocore=request.param == "botocore", http=settings)
        return dynamodb.DynamoEngine(Transports(wanted))

    return open_at


@pytest.fixture
def engine(opened: dynamodb.DynamoEngine) -> dynamodb.DynamoEngine:
    """An engine on the empty table Things."""
    found: Any = opened.handle(Scan(table="Things")).items
    for item in found:
        opened.handle(DeleteItem(table="Things", key={"pk": item["pk"]}))
    return opened


class Awaited:
    """An engine to await, with the face of one that blocks; its event loop has a thread."""

    capabilities = Capabilities()

    def __init__(self, engine: dynamodb.DynamoEngine) -> None:
        awaited = engine.make_async()
        assert awaited is not None
        self._engine = awaited
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def handle(self, request: Request[Any], /) -> Any:
        return asyncio.run_coroutine_threadsafe(self._engine.handle(request), self._loop).result(HANG_SECONDS)

    def close(self) -> None:
        if self._loop.is_running():
            asyncio.run_coroutine_threadsafe(self._engine.close(), self._loop).result(HANG_SECONDS)

    def end(self) -> None:
        self.close()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(HANG_SECONDS)
        self._loop.close()


class Alone:
    """One way and nothing of botocore's, which would take a tenth of a second to make."""

    def __init__(self, url: str, settings: HttpSettings) -> None:
        service = Service(endpoint_url=url, targets={name: f"DynamoDB_20120810.{name}" for name in ITEMS})
        key = AccessKey(id="local", secret="local")
        signers = SignerSource(None, region="us-east-1", host=host_header(url), key=key)
        pool = BlockingPool(resolve_address(url, None), settings)
        self.items = HttpTransport(
            service, WireProtocol(service, signers), pool, fallback=cast(BotocoreTransport, self)
        )

    def get(self, operation: str) -> HttpTransport:
        return self.items

    def is_open(self, operation: str) -> bool:
        return True

    def close(self) -> None:
        self.items.pool.close()


OpenedAt = Callable[..., Engine]
#: Gives up nothing that a loaded machine only makes slow.
PATIENT = HttpSettings(connect_seconds=HANG_SECONDS, read_seconds=HANG_SECONDS, response_seconds=HANG_SECONDS)


@pytest.fixture(params=["blocking", "awaited"])
def engines(request: pytest.FixtureRequest) -> Iterator[Callable[[Transports], Engine]]:
    """Makes engines that go our own way, blocking or on an event loop, and closes them."""
    made: list[Any] = []

    def make(clients: Transports) -> Engine:
        engine = dynamodb.DynamoEngine(clients)
        made.append(engine if request.param == "blocking" else Awaited(engine))
        found: Engine = made[-1]
        return found

    yield make
    for engine in made:
        engine.end() if isinstance(engine, Awaited) else engine.close()


@pytest.fixture
def opened_at(engines: Callable[[Transports], Engine]) -> OpenedAt:
    """Opens engines as configured."""

    def open_at(url: str, settings: HttpSettings = PATIENT) -> Engine:
        clients = Transports(EndpointOptions(endpoint_url=url, http=settings))
        assert isinstance(clients.items, HttpTransport)
        return engines(clients)

    return open_at


@pytest.fixture
def alone_at(engines: Callable[[Transports], Engine]) -> OpenedAt:
    """Opens engines on a local server."""

    def open_at(url: str, settings: HttpSettings = PATIENT) -> Engine:
        return engines(cast(Transports, Alone(url, settings)))

    return open_at
