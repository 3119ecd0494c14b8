"""Server-sent events over a real uvicorn: the buckets of one namespace, heartbeats, and clean ends."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import uvicorn

from solotable import AsyncDatabase
from solotable.errors import TransportError
from solotable.systems.limiter import AsyncLimiter, Limit, limiter
from solotable.systems.limiter.http.app import server_of
from solotable.systems.limiter.http.bucket_feed import BucketFeed, StreamSettings, stream_events
from tests.waiting import HANG_SECONDS, wait_until, wait_until_async

from .api import MODEL, headers, made_app, running


@contextmanager
def served(folder: Path, stream: StreamSettings) -> Iterator[tuple[str, uvicorn.Server]]:
    """Serve a limiter with both namespaces on a port of its own."""
    with running(folder) as api:
        url = api.url
    app = made_app(url, stream=stream)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = server_of(app, port=port)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        wait_until(lambda: server.started)
        yield f"http://127.0.0.1:{port}", server
    finally:
        server.should_exit = True
        thread.join(HANG_SECONDS)
        assert not thread.is_alive()


def acquire(base: str, namespace: str, entity: str) -> None:
    body = {"entity": entity, "resource": MODEL, "consume": {"rpm": 1, "tpm": 10}}
    answer = httpx2.post(f"{base}/acquire", headers=headers("APP", namespace), json=body)
    assert answer.status_code == 201, answer.text


@contextmanager
def streamed(base: str) -> Iterator[Iterator[str]]:
    """Open the stream of a namespace, and give its lines."""
    path = f"{base}/api/dashboard/stream"
    with httpx2.stream("GET", path, headers=headers("OPERATOR", "acme"), timeout=HANG_SECONDS) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        lines = answer.iter_lines()
        assert next(lines) == "retry: 2000"
        yield lines


def test_a_stream_ends_after_its_time(tmp_path: Path) -> None:
    stream = StreamSettings(heartbeat_seconds=0.05, most_seconds=0.5)
    with served(tmp_path, stream) as (base, _), streamed(base) as lines:
        assert set(lines) <= {"", ": alive"}


def test_a_stream_tells_the_buckets_of_its_namespace_and_that_it_is_alive(tmp_path: Path) -> None:
    stream = StreamSettings(heartbeat_seconds=0.2, most_seconds=HANG_SECONDS)
    with served(tmp_path, stream) as (base, _):
        with streamed(base) as lines:
            acquire(base, "zeta", "zeta-user0")
            acquire(base, "acme", "acme-user0")
            told: list[str] = []
            while sum(each.startswith("data: ") for each in told) < 2 or ": alive" not in told:
                told.append(next(lines))
        data = [json.loads(each.removeprefix("data: ")) for each in told if each.startswith("data: ")]
        # The user's bucket, and the one of its organisation.
        assert {each["entity"] for each in data} == {"acme-user0", "acme-org0"}
        assert {each["resource"] for each in data} == {MODEL}
        assert {limit["limit"] for each in data for limit in each["limits"]} == {"rpm", "tpm"}
        assert httpx2.get(f"{base}/health").json() == {"status": "ok"}


def test_a_server_that_stops_ends_its_streams(tmp_path: Path) -> None:
    stream = StreamSettings(heartbeat_seconds=0.1, most_seconds=10 * HANG_SECONDS)
    with served(tmp_path, stream) as (base, server), streamed(base) as lines:
        server.should_exit = True
        assert set(lines) <= {"", ": alive"}


def watching(work: Any) -> Any:
    """Run a coroutine with a database, a limiter and a watch on it."""

    async def all_of_it() -> Any:
        async with limiter.open_async("sqlite://") as db:
            limits = [Limit.per_minute("rpm", 1_000_000)]
            return await work(db, AsyncLimiter(db, "acme", limits=limits), BucketFeed(db, poll_seconds=0.01))

    return asyncio.run(all_of_it())


def is_reading(watch: BucketFeed) -> bool:
    return watch._task is not None


async def take(limits: AsyncLimiter, times: int = 1) -> None:
    for _ in range(times):
        async with limits.acquire("u", "r", {"rpm": 1}):
            pass


def test_one_reader_serves_all_and_ends_with_the_last() -> None:
    async def work(db: AsyncDatabase, limits: AsyncLimiter, watch: BucketFeed) -> None:
        await take(limits)  # before anybody looked
        async with watch.subscribe("acme") as first:
            async with watch.subscribe("acme") as second, watch.subscribe("zeta") as other:
                await take(limits)
                one, two = [await asyncio.wait_for(each.get(), HANG_SECONDS) for each in (first, second)]
                assert one == two
                assert one is not None
                assert '"consumed": 2}' in one
                assert other.empty()
            assert is_reading(watch)
        assert not is_reading(watch)
        async with watch.subscribe("acme") as again:
            await take(limits)
            assert '"consumed": 3}' in (await asyncio.wait_for(again.get(), HANG_SECONDS) or "")

    watching(work)


def test_who_is_too_slow_is_sent_away() -> None:
    async def work(db: AsyncDatabase, limits: AsyncLimiter, watch: BucketFeed) -> None:
        async with watch.subscribe("acme") as slow:
            await take(limits, slow.maxsize)
            await wait_until_async(slow.full)
            await take(limits)
            await wait_until_async(lambda: not slow.full())
            assert slow.get_nowait() is None

    watching(work)


def test_who_was_sent_away_leaves_in_peace_after_all_others() -> None:
    async def work(db: AsyncDatabase, limits: AsyncLimiter, watch: BucketFeed) -> None:
        async with contextlib.AsyncExitStack() as slow_one:
            slow = await slow_one.enter_async_context(watch.subscribe("acme"))
            async with watch.subscribe("acme"):
                while not slow.full():
                    slow.put_nowait("")
                await take(limits)
                await wait_until_async(lambda: not slow.full())
                assert slow.get_nowait() is None
            assert not is_reading(watch)

    watching(work)


def test_streams_end_when_the_changes_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    async def work(db: AsyncDatabase, limits: AsyncLimiter, watch: BucketFeed) -> None:
        stream = stream_events(watch, "acme", StreamSettings())
        assert await anext(stream) == "retry: 2000\n\n"

        async def broken(request: object) -> None:
            raise TransportError("no route to the table")

        monkeypatch.setattr(db.engine, "handle", broken)
        assert [each async for each in stream] == []
        monkeypatch.undo()
        # Whoever connects again is served again.
        again = stream_events(watch, "acme", StreamSettings())
        assert await anext(again) == "retry: 2000\n\n"
        await take(limits)
        assert (await anext(again)).startswith("event: bucket\n")
        await again.aclose()  # type: ignore[attr-defined]  # it is a generator
        assert not is_reading(watch)

    watching(work)
