"""How long a GetItem takes beside clients with heavy requests, against one real server.

`python -m tests.torture.fairness` prints a table of latencies: alone, beside one and beside four heavy
clients, for every kind of heavy request and for both engines. The probe and the heavy clients are
separate processes, so that the server alone is measured. Rounds alternate between the settings, so
that a slow moment of the machine reaches all of them.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread
from typing import Any

from tests.serving import served

from .wire import Client

Json = dict[str, Any]

_ROOT = Path(__file__).parents[2]
_TABLE = "Fair"
_PROBES = 100
_PAGE_ITEMS = 2000
_LIST_ELEMENTS = 130_000
_CONTAINS = 140
_LARGE_ITEMS = 40
_LARGE_BYTES = 390_000
#: Pause of the probe between two requests: it samples the server, and leaves it time for the others.
_PAUSE_SECONDS = 0.001


def key(partition: str, sort: str = "0") -> Json:
    """Return the key of an item."""
    return {"pk": {"S": partition}, "sk": {"S": sort}}


#: An expression of 3 KB, each of whose terms looks through a list of 130,000 elements in vain.
_TEXT = " OR ".join(f"contains(l,:v{n})" for n in range(_CONTAINS))
_VALUES = {f":v{n}": {"N": str(n + 10)} for n in range(_CONTAINS)}


def _filter() -> Json:
    return {
        "TableName": _TABLE,
        "KeyConditionExpression": "pk=:p",
        "FilterExpression": _TEXT,
        "ExpressionAttributeValues": {":p": {"S": "list"}, **_VALUES},
    }


def _condition() -> Json:
    return {
        "TableName": _TABLE,
        "Key": key("list"),
        "UpdateExpression": "SET n=:n",
        "ConditionExpression": f"{_TEXT} OR attribute_exists(pk)",
        "ExpressionAttributeValues": {":n": {"N": "1"}, **_VALUES},
    }


def _page() -> Json:
    return {
        "TableName": _TABLE,
        "KeyConditionExpression": "pk=:p",
        "Limit": 1000,
        "ExpressionAttributeValues": {":p": {"S": "page"}},
    }


def _scan() -> Json:
    return {"TableName": "Bulk"}


def _batch() -> Json:
    return {"RequestItems": {_TABLE: {"Keys": [key("large", str(n)) for n in range(_LARGE_ITEMS)]}}}


#: A name for each kind of heavy request, its operation and its members.
HEAVY: dict[str, tuple[str, Callable[[], Json]]] = {
    "query": ("Query", _page),
    "scan": ("Scan", _scan),
    "filter": ("Query", _filter),
    "batch": ("BatchGetItem", _batch),
    "condition": ("UpdateItem", _condition),
}


def ask(client: Client, operation: str, payload: Json) -> Json:
    """Return the reply to a request, which must succeed."""
    status, body = client.ask(f"DynamoDB_20120810.{operation}", json.dumps(payload).encode())
    assert status == 200, (status, body[:300])
    answer: Json = json.loads(body)
    return answer


def fill(port: int) -> None:
    """Make the tables that the requests read."""
    client = Client(port)
    for table in (_TABLE, "Bulk"):
        ask(
            client,
            "CreateTable",
            {
                "TableName": table,
                "AttributeDefinitions": [
                    {"AttributeName": key, "AttributeType": "S"} for key in ("pk", "sk")
                ],
                "KeySchema": [
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                "BillingMode": "PAY_PER_REQUEST",
            },
        )

    def put(table: str, items: Sequence[Json], together: int = 25) -> None:
        for first in range(0, len(items), together):
            puts = [{"PutRequest": {"Item": item}} for item in items[first : first + together]]
            ask(client, "BatchWriteItem", {"RequestItems": {table: puts}})

    text = {"S": "x" * 400}
    put(_TABLE, [key("probe", str(n)) | {"text": {"S": "y" * 100}} for n in range(_PROBES)])
    put(_TABLE, [key("page", f"{n:06}") | {"text": text} for n in range(_PAGE_ITEMS)])
    put("Bulk", [key(str(n)) | {"text": text} for n in range(2 * _PAGE_ITEMS)])
    put(_TABLE, [key("large", str(n)) | {"text": {"S": "z" * _LARGE_BYTES}} for n in range(_LARGE_ITEMS)], 10)
    put(_TABLE, [key("list") | {"l": {"L": [{"N": "1"}] * _LIST_ELEMENTS}}])
    client.close()


def probe(port: int, seconds: float) -> list[float]:
    """Return how long each GetItem of one client took, in seconds."""
    client = Client(port)
    taken: list[float] = []
    end = time.perf_counter() + seconds
    number = 0
    while time.perf_counter() < end:
        number = (number + 1) % _PROBES
        begun = time.perf_counter()
        ask(client, "GetItem", {"TableName": _TABLE, "Key": key("probe", str(number))})
        taken.append(time.perf_counter() - begun)
        time.sleep(_PAUSE_SECONDS)
    client.close()
    return taken


def press(port: int, kind: str, clients: int) -> None:
    """Send heavy requests without a pause; print a line for each that was answered."""
    operation, payload = HEAVY[kind]
    body = json.dumps(payload()).encode()
    head = (
        f"POST / HTTP/1.1\r\nHost: localhost\r\nX-Amz-Target: DynamoDB_20120810.{operation}\r\n"
        f"Content-Type: application/x-amz-json-1.0\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()

    def go_on() -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            place = memoryview(bytearray(1 << 20))
            while True:
                connection.sendall(head + body)
                _skim(connection, place)
                sys.stdout.write("1\n")
                sys.stdout.flush()

    for _ in range(clients):
        Thread(target=go_on, daemon=True).start()
    sys.stdin.read()


def _skim(connection: socket.socket, place: memoryview) -> None:
    """Read one reply to its end, and keep nothing of it."""
    start = b""
    while b"\r\n\r\n" not in start:
        piece = connection.recv(4096)
        assert piece, "the server has closed the connection"
        start += piece
    head, _, rest = start.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 200"), start[:300]
    left = int(head.partition(b"Content-Length: ")[2].partition(b"\r\n")[0]) - len(rest)
    while left:
        left -= connection.recv_into(place, min(left, len(place)))


class Pressure:
    """Heavy clients in a separate process, and how many of their requests were answered."""

    def __init__(self, port: int, kind: str, clients: int) -> None:
        self.answered = 0
        self._process = _start("press", port, kind, clients)
        self._counter = Thread(target=self._count, daemon=True)
        self._counter.start()

    def _count(self) -> None:
        assert self._process.stdout is not None
        for _ in self._process.stdout:
            self.answered += 1

    def wait_for(self, answered: int) -> None:
        """Return once so many were answered."""
        while self.answered < answered:
            assert self._process.poll() is None, "the heavy clients ended"
            time.sleep(0.01)

    def end(self) -> None:
        """End the clients in the middle of whatever they ask."""
        self._process.kill()
        self._process.wait()
        self._counter.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


@contextmanager
def pressed(port: int, kind: str, clients: int) -> Iterator[Pressure]:
    """Have heavy clients ask while the block lasts; each had an answer before it begins."""
    pressure = Pressure(port, kind, clients)
    try:
        pressure.wait_for(clients)
        yield pressure
    finally:
        pressure.end()


def _start(*arguments: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.torture.fairness", *map(str, arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=_ROOT,
    )


def probe_apart(port: int, seconds: float) -> list[float]:
    """The same as `probe`, in a separate process."""
    process = _start("probe", port, seconds)
    out, _ = process.communicate()
    assert process.returncode == 0
    taken: list[float] = json.loads(out)
    return taken


@dataclass
class Figure:
    """GetItem's latencies in one setting, and how many heavy requests were answered beside it."""

    taken: list[float] = field(default_factory=list)
    heavy: int = 0
    seconds: float = 0.0

    def milliseconds(self, share: float) -> float:
        ordered = sorted(self.taken)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def __str__(self) -> str:
        rate = f"{self.heavy / self.seconds:7.1f}/s" if self.heavy else "         "
        return f"p50 {self.milliseconds(0.5):7.2f} p99 {self.milliseconds(0.99):7.2f} {rate}"


def measure(port: int, kind: str, *, rounds: int, seconds: float) -> dict[int, Figure]:
    """Return the figures beside no, one and four heavy clients, by their number."""
    figures = {clients: Figure() for clients in (0, 1, 4)}
    for _ in range(rounds):
        figures[0].taken += probe_apart(port, seconds)
        figures[0].seconds += seconds
        for clients in (1, 4):
            with pressed(port, kind, clients) as pressure:
                before, begun = pressure.answered, time.perf_counter()
                figures[clients].taken += probe_apart(port, seconds)
                figures[clients].heavy += pressure.answered - before
                figures[clients].seconds += time.perf_counter() - begun
    return figures


def main(kinds: Sequence[str], *, rounds: int = 3, seconds: float = 2.0) -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for name, arguments in (("file", (str(Path(folder) / "fair.db"),)), ("memory", ("--memory",))):
            with served(*arguments) as server:
                fill(server.port)
                for kind in kinds:
                    figures = measure(server.port, kind, rounds=rounds, seconds=seconds)
                    line = " | ".join(f"{clients}: {figure}" for clients, figure in figures.items())
                    ratio = figures[4].milliseconds(0.99) / figures[0].milliseconds(0.99)
                    sys.stdout.write(f"{name:7}{kind:10}{line}   x{ratio:.1f}\n")
                    sys.stdout.flush()


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["probe", port, seconds]:
            sys.stdout.write(json.dumps(probe(int(port), float(seconds))))
        case ["press", port, kind, clients]:
            press(int(port), kind, int(clients))
        case kinds:
            main(kinds or list(HEAVY))
