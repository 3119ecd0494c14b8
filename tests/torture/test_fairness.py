"""No client with heavy requests delays the others: GetItems and writes continue beside them.

The short form counts what is answered while one heavy request runs, and compares medians of one run. The
long form measures every kind of heavy request and compares the slowest hundredth.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.serving import Served, served

from . import fairness
from .size import LONG, amount, report
from .wire import Client

pytestmark = pytest.mark.timeout(amount(300, 1800))

#: Answers to others that a heavy request must let through, in the best of some tries: the machine may be
#: so busy that a client does not run at all during one of them.
ENOUGH = 5
TRIES = 8
#: How many times longer a GetItem may take beside four heavy clients: the median, and the slowest hundredth.
#: The second is far from the 3 that is wanted: 4 to 21 were measured at load 3 to 6, 4,000 before slices.
MEDIAN_RATIO = 10
SLOWEST_RATIO = 60


@pytest.fixture(scope="module", params=["file", "memory"])
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place: Path = tmp_path_factory.mktemp("fairness") / "fair.db"
    with served("--memory" if request.param == "memory" else str(place)) as running:
        fairness.fill(running.port)
        yield running


def _answered_beside(port: int, kind: str, operation: str, payload: fairness.Json) -> int:
    """How many requests of another client are answered while one heavy request is."""
    heavy_operation, heavy_payload = fairness.HEAVY[kind]
    heavy, other = Client(port), Client(port)
    sent, ended = threading.Event(), threading.Event()

    def ask_heavy() -> None:
        fairness.ask(heavy, "ListTables", {})
        sent.set()
        status, _ = heavy.ask(f"DynamoDB_20120810.{heavy_operation}", json.dumps(heavy_payload()).encode())
        assert status == 200
        ended.set()

    thread = threading.Thread(target=ask_heavy)
    fairness.ask(other, operation, payload)
    thread.start()
    sent.wait()
    count = 0
    while not ended.is_set():
        fairness.ask(other, operation, payload)
        count += 1
    thread.join()
    heavy.close()
    other.close()
    return count


@pytest.mark.parametrize("kind", ["filter", "condition"])
@pytest.mark.parametrize("operation", ["GetItem", "PutItem"])
def test_others_are_answered_while_a_heavy_request_runs(server: Served, kind: str, operation: str) -> None:
    key = fairness.key("probe")
    payload = (
        {"TableName": "Fair", "Key": key} if operation == "GetItem" else {"TableName": "Bulk", "Item": key}
    )
    best = 0
    for _ in range(TRIES):
        best = max(best, _answered_beside(server.port, kind, operation, payload))
        if best >= ENOUGH:
            break
    report(f"{operation}: {best} answers beside one heavy {kind}")
    assert best >= ENOUGH


@pytest.mark.parametrize("kind", list(fairness.HEAVY) if LONG else ["query"])
def test_a_get_item_takes_little_longer_beside_four_heavy_clients(server: Served, kind: str) -> None:
    figures = fairness.measure(server.port, kind, rounds=amount(1, 5), seconds=amount(1, 3))
    alone, beside = figures[0], figures[4]
    report(f"{kind}: " + ", ".join(f"beside {clients}: {figure}" for clients, figure in figures.items()))
    assert beside.milliseconds(0.5) <= MEDIAN_RATIO * alone.milliseconds(0.5)
    if LONG:
        assert beside.milliseconds(0.99) <= SLOWEST_RATIO * alone.milliseconds(0.99)
    # They are slowed down, not stopped.
    assert beside.heavy > 0
