"""A server under load and under fire: no error, no hang, no 500, and no memory that is not given back."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conformance.tables import table
from tests.property import hostile
from tests.serving import Served, served
from tests.waiting import HANG_SECONDS, wait_until

from . import shop
from .size import LIMIT_SECONDS, SEED, amount, report
from .wire import Client, memory_bytes

Json = dict[str, Any]

CLIENTS = 64
#: Requests of each client.
REQUESTS = amount(100, 5000)
FUZZED = amount(2_000, 200_000)
FUZZERS = 8
ITEMS = 2000
MEGABYTE = 1 << 20

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def ask(client: Client, operation: str, payload: Json) -> tuple[int, Json]:
    status, body = client.ask(f"DynamoDB_20120810.{operation}", json.dumps(payload).encode())
    return status, json.loads(body) if body else {}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Served]:
    with served("shop.db", cwd=tmp_path) as running:
        yield running


class Load:
    """Clients that read four times as often as they write."""

    def __init__(self, port: int) -> None:
        self.pending_counts: Counter[str] = Counter()
        self.waits: list[float] = []
        self._port = port
        #: The answers so far, by client.
        self.answers = [0] * CLIENTS

    def client(self, number: int) -> None:
        chance = random.Random(f"{SEED} {number}")
        client = Client(self._port)
        waits: list[float] = []
        tally: Counter[str] = Counter()
        for self.answers[number] in range(1, REQUESTS + 1):
            operation, payload = self._request(chance)
            begun = time.perf_counter()
            status, _ = ask(client, operation, payload)
            waits.append(time.perf_counter() - begun)
            tally[operation if status == 200 else f"error {status} of {operation}"] += 1
        client.close()
        self.waits += waits
        self.pending_counts += tally

    def _request(self, chance: random.Random) -> tuple[str, Json]:
        item = shop.content(chance.randrange(ITEMS))
        key = {"pk": item["pk"]}
        match chance.randrange(10):
            case 0:
                return "PutItem", {"TableName": "Shop", "Item": item}
            case 1:
                update = {
                    "UpdateExpression": "ADD hits :one",
                    "ExpressionAttributeValues": {":one": {"N": "1"}},
                }
                return "UpdateItem", {"TableName": "Shop", "Key": key, **update}
            case 2 | 3:
                shelf = {":shelf": item["shelf"]}
                query = {"KeyConditionExpression": "shelf = :shelf", "ExpressionAttributeValues": shelf}
                return "Query", {"TableName": "Shop", "IndexName": "by_shelf", "Limit": 20, **query}
            case _:
                return "GetItem", {"TableName": "Shop", "Key": key}


def test_a_mixed_load_of_64_clients_meets_no_error(server: Served) -> None:
    client = Client(server.port)
    # Without a stream: its records are kept for a day, and would be growth.
    plain = {name: value for name, value in shop.SHOP.items() if name != "StreamSpecification"}
    assert ask(client, "CreateTable", plain)[0] == 200
    for number in range(ITEMS):
        assert ask(client, "PutItem", {"TableName": "Shop", "Item": shop.content(number)})[0] == 200
    load = Load(server.port)
    threads = [threading.Thread(target=load.client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    begun = time.monotonic()
    memory = []
    for part in range(20):
        wait_until(
            lambda answers=CLIENTS * REQUESTS * part // 20: (  # type: ignore[misc]
                sum(load.answers) >= answers or not all(thread.is_alive() for thread in threads)
            )
        )
        memory.append(memory_bytes(server.process.pid))
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begun
    client.close()
    errors = {name: count for name, count in load.pending_counts.items() if name.startswith("error")}
    waits = sorted(load.waits)
    # The first fifth fills caches and buffers.
    settled = memory[len(memory) // 5 :]
    growth = (settled[-1] - settled[0]) / MEGABYTE
    report(
        f"load: {len(waits)} requests of {CLIENTS} clients in {seconds:.0f} s, {len(waits) / seconds:.0f}/s; "
        f"errors {errors or 0}; p50 {waits[len(waits) // 2] * 1000:.1f} ms, "
        f"p99 {waits[len(waits) * 99 // 100] * 1000:.1f} ms, worst {waits[-1] * 1000:.0f} ms; "
        f"memory {settled[0] / MEGABYTE:.0f} -> {settled[-1] / MEGABYTE:.0f} MB"
    )
    assert errors == {}
    assert sum(load.pending_counts.values()) == CLIENTS * REQUESTS
    assert growth < 32, f"{growth:.0f} MB more at the end"


def test_spoiled_requests_are_refused_and_the_server_stays(server: Served) -> None:
    setup = Client(server.port)
    tables = (hostile.MUSIC, table("Other", "id:B"))
    for definition in tables:
        assert ask(setup, "CreateTable", definition)[0] == 200
    # On a busy machine the rest takes longer than a silent connection is kept.
    setup.close()
    with hostile.opened() as engine:
        valid = hostile.valid_requests(engine)
    memory = [memory_bytes(server.process.pid)]
    tally: Counter[int] = Counter()
    worst: list[tuple[float, bytes]] = []
    failures: list[str] = []

    def fire(number: int) -> None:
        chance = random.Random(f"{SEED} {number}")
        client = Client(server.port)
        slowest = (0.0, b"")
        for turn in range(FUZZED // FUZZERS):
            raw = request(chance, valid)
            if turn % 50 == 0:
                # A request may have deleted one by chance.
                for definition in tables:
                    ask(client, "CreateTable", definition)
            begun = time.perf_counter()
            try:
                status, body = client.send(raw)
            except TimeoutError:
                failures.append(f"no answer within {HANG_SECONDS} s: {raw[:3000]!r}")
                client.close()
                continue
            if number == 0 and turn == FUZZED // FUZZERS // 2:
                memory.append(memory_bytes(server.process.pid))
            slowest = max(slowest, (time.perf_counter() - begun, raw[:300]))
            tally[status] += 1
            if status >= 500 or not status:
                failures.append(f"{status} {body[:300]!r}: {raw[:3000]!r}")
        client.close()
        worst.append(slowest)

    threads = [threading.Thread(target=fire, args=(number,)) for number in range(FUZZERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    memory.append(memory_bytes(server.process.pid))
    before, middle, after = (used / MEGABYTE for used in memory)
    assert ask(setup, "ListTables", {})[0] == 200
    assert server.process.poll() is None
    setup.close()
    report(
        f"fuzz: {sum(tally.values())} requests, answers {dict(sorted(tally.items()))}, slowest "
        f"{max(worst)[0] * 1000:.0f} ms, memory {before:.0f} -> {middle:.0f} -> {after:.0f} MB "
        f"(seed {SEED})"
    )
    assert failures == [], f"seed {SEED}: {len(failures)} failures, first: {failures[0]}"
    # Some of them still make sense, so that what lies behind the first checks is reached too.
    assert tally[200] > FUZZED // 100
    assert tally[400] > FUZZED // 2
    # SQLite's caches fill up, to a limit; what grows without one grows in the second half too.
    assert after - middle < 64, f"{after - middle:.0f} MB more in the second half"


def request(chance: random.Random, valid: list[tuple[str, Json]]) -> bytes:
    """Return the bytes of a request that something is wrong with, mostly."""
    operation, payload = chance.choice(valid)
    body = json.dumps(payload).encode()
    target = hostile.target(operation)
    kind = chance.random()
    if kind < 0.6:
        body = json.dumps(hostile.spoiled(chance, payload)).encode()
    elif kind < 0.8:
        body = hostile.spoiled_bytes(chance, body)
    elif kind < 0.85:
        target = chance.choice(("", "DynamoDB_20120810.", "x" * 500, target.upper(), f"{target}x"))
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: {target}\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n"
    ).encode()
    if kind > 0.97:
        # A client with a wrong Content-Length must not make the server wait for ever.
        return _scramble(head, chance, but=b"Content-Length") + b"Connection: close\r\n\r\n" + body
    if kind > 0.94:
        head += chance.choice(
            (
                b"Content-Encoding: gzip\r\n",
                b"Accept-Encoding: gzip\r\n",
                b"Authorization: AWS4-HMAC-SHA256 x\r\n",
                b"X-Long: " + b"y" * chance.randrange(40_000) + b"\r\n",
            )
        )
    return head + b"\r\n" + body


def _scramble(raw: bytes, chance: random.Random, *, but: bytes) -> bytes:
    """Change, drop or repeat some bytes; from `but` on they are left alone."""
    end = raw.index(but)
    content = bytearray(raw[:end])
    for _ in range(chance.randrange(1, 6)):
        place = chance.randrange(max(1, len(content)))
        match chance.randrange(3):
            case 0:
                content[place : place + 1] = chance.randbytes(1)
            case 1:
                del content[place : place + chance.randrange(1, 20)]
            case _:
                content[place:place] = content[place : place + 30]
    return bytes(content) + raw[end:]
