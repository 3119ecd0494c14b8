"""What only an event loop does: many at once, giving up, and one loop after another."""

from __future__ import annotations

import asyncio
import gc
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from solotable import connect_async
from solotable._connect import to_async
from solotable._protocol.requests import Control, GetItem, PutItem
from solotable._store.runner import Threaded
from solotable.engines import dynamodb
from solotable.engines.dynamodb.engine import AsyncDynamoEngine
from solotable.engines.dynamodb.http.async_transport import AsyncConnection
from solotable.engines.dynamodb.http.exchange import HttpSettings
from solotable.engines.dynamodb.transports import EndpointOptions, Transports
from solotable.errors import EngineError, NotConfigured, TableNotFound
from tests.store.models import Survey, surveyor
from tests.waiting import HANG_SECONDS, wait_until_async

from .evil import GOOD, Act, evil, reply

KEY = {"pk": {"S": "a"}}
READ = GetItem(table="Things", key=KEY)
WRITE = PutItem(table="Things", item=KEY)


def native(url: str, **settings: Any) -> AsyncDynamoEngine:
    made = dynamodb.DynamoEngine(
        Transports(EndpointOptions(endpoint_url=url, http=HttpSettings(**settings)))
    ).make_async()
    assert made is not None
    return made


def test_many_at_once_share_as_many_connections_as_are_allowed() -> None:
    with evil() as server:

        async def ask() -> None:
            engine = native(server.url, idle_connections=4)
            found = await asyncio.gather(*(engine.handle(READ) for _ in range(60)))
            assert [each.item for each in found] == [KEY] * 60
            await engine.close()

        asyncio.run(ask())
        assert (server.connections, len(server.requests)) == (4, 60)


def test_a_request_that_the_socket_does_not_take_at_once_is_sent_whole() -> None:
    request = bytes(range(256)) * 8192
    response = reply()

    async def serve(server: socket.socket) -> bytes:
        loop, received = asyncio.get_running_loop(), b""
        while len(received) < len(request):
            received += await loop.sock_recv(server, 1 << 20)
        await loop.sock_sendall(server, response)
        return received

    async def ask() -> None:
        client, server = socket.socketpair()
        with client, server:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
            client.setblocking(False)
            server.setblocking(False)
            serving = asyncio.create_task(serve(server))
            found = await AsyncConnection(client, None).exchange(request, HttpSettings())
            assert await serving == request
            assert found.status == 200

    asyncio.run(ask())


def test_a_reply_after_the_timeout_is_dropped() -> None:
    late = Act(reply=reply(b'{"Item":{"pk":{"S":"of the first"}}}'), too_late=True)
    with evil(GOOD, late, GOOD) as server:

        async def ask() -> None:
            engine = native(server.url)
            await engine.handle(READ)
            asked = asyncio.create_task(engine.handle(WRITE))
            await wait_until_async(lambda: len(server.requests) == 2)
            asked.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asked
            assert (await engine.handle(READ)).item == KEY
            await engine.close()

        asyncio.run(ask())
        # What was given up was not sent again.
        assert (server.connections, len(server.requests)) == (2, 3)


def test_others_run_while_an_answer_is_awaited() -> None:
    others_ran = threading.Event()
    with evil(Act(reply=reply(), then=lambda _: others_ran.wait(HANG_SECONDS))) as server:

        async def ask() -> None:
            engine = native(server.url)
            asked = asyncio.create_task(engine.handle(READ))
            await wait_until_async(lambda: server.requests)
            others_ran.set()
            assert (await asked).item == KEY
            await engine.close()

        asyncio.run(ask())


@pytest.mark.filterwarnings("error::ResourceWarning")
def test_one_event_loop_after_another() -> None:
    with evil() as server:
        engine = native(server.url, idle_connections=1)

        async def ask() -> None:
            await asyncio.gather(*(engine.handle(READ) for _ in range(5)))

        for loops in (1, 2, 3):
            asyncio.run(ask())
            assert server.connections == loops
        asyncio.run(engine.close())
        gc.collect()


def test_what_was_closed_says_so() -> None:
    with evil() as server:

        async def ask() -> None:
            engine = native(server.url)
            await engine.handle(READ)
            await engine.close()
            with pytest.raises(EngineError, match="open it again"):
                await engine.handle(READ)

        asyncio.run(ask())


def test_streams_have_their_own_way() -> None:
    with evil(Act(reply=reply(b"{}"))) as server:

        async def ask() -> None:
            engine = native(server.url)
            for _ in range(2):
                assert await engine.handle(Control(operation="ListStreams", members={})) == {}
            await engine.close()

        asyncio.run(ask())
        assert server.connections == 1
        assert b"DynamoDBStreams_20120810.ListStreams" in server.requests[0]


def test_slow_credentials_do_not_block_other_requests(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "credentials.sh"
    # From when it is watched it waits until the event loop has gone on, and notes when the loop did not.
    script.write_text(
        f"cd {tmp_path}; test -e watched && touch started\n"
        "test -e watched && for _ in $(seq 1000); do test -e ticked && break; sleep 0.01; done\n"
        "test -e watched && ! test -e ticked && touch held_up\n"
        """echo '{"Version": 1, "AccessKeyId": "slow", "SecretAccessKey": "s", """
        """"Expiration": "2020-01-01T00:00:00Z"}'\n"""
    )
    (tmp_path / "config").write_text(f"[default]\nregion = eu-west-1\ncredential_process = sh {script}\n")
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))

    async def tick() -> None:
        await wait_until_async((tmp_path / "started").exists)
        (tmp_path / "ticked").touch()

    with evil() as server:

        async def ask() -> None:
            engine = native(server.url)
            (tmp_path / "watched").touch()
            ticker = asyncio.create_task(tick())
            # They have expired when they come, so botocore asks for others, and then says so.
            with pytest.raises(NotConfigured, match="have expired"):
                await engine.handle(READ)
            await ticker
            await engine.close()

        asyncio.run(ask())
    assert not (tmp_path / "held_up").exists()


def test_stores_await_our_own_way_and_botocore_in_threads(url: str) -> None:
    async def ask(query: str) -> type[Any]:
        async with connect_async(f"{url}/Nowhere{query}", surveyor) as opened:
            with pytest.raises(TableNotFound):
                await opened.tenant("acme").get(Survey, survey_id="s")
            return type(opened.engine)

    assert asyncio.run(ask("")) is AsyncDynamoEngine
    assert asyncio.run(ask("?client=botocore")) is Threaded
    with dynamodb.open(endpoint_url=url, botocore=True) as engine:
        assert type(to_async(engine)) is Threaded
