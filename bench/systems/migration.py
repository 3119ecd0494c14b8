"""A migration in process: its copy, its comparison, its forecast, and what an application notices of it."""

from __future__ import annotations

import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from solotable import Database, Entity, Index, Key, Table, connect, flow
from solotable.flow.requests import BatchPut, BatchWriteItem, GetItem, PutItem
from solotable.migrations.diff import compare
from solotable.migrations.mapping import Mapping, Source
from solotable.migrations.migration import Migration

ITEMS = 40_000
QUICK_ITEMS = 3_000
#: The write units a second that a copy may use beside an application.
BUDGET = 200.0
#: Calls of the application for each latency figure, with a pause between them.
CALLS = 4_000
QUICK_CALLS = 400
_PAUSE_SECONDS = 0.002
_FORECAST_AT = 10.0
_OPTIONS = "?durability=relaxed"

users = Table("Users", partition="id", sort=None)
shop = Table("Shop", indexes=[Index("GSI1")])


class Customer(Entity, table=shop):
    """One item of the old table as an entity, with an index key."""

    key = Key("CUSTOMER#{customer_id}", "CUSTOMER")
    by_city = Key("CITY#{city}", "{customer_id}", index="GSI1")

    customer_id: str
    name: str
    city: str
    about: str


mapping = Mapping(shop, Source("Users", key="id"))


@mapping.rule("Users")
def customer(item: dict[str, Any]) -> Iterator[Entity]:
    """Map one item to one entity."""
    yield Customer(
        customer_id=item["id"], name=item["name"], city=item.get("city", "Unknown"), about=item["about"]
    )


@mapping.inverse("Users", Customer)
def user(found: Customer) -> dict[str, Any]:
    """Map it back."""
    return {"id": found.customer_id, "name": found.name, "city": found.city, "about": found.about}


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return all figures."""
    items = QUICK_ITEMS if quick else ITEMS
    calls = QUICK_CALLS if quick else CALLS
    (folder / "rates").mkdir()
    (folder / "latency").mkdir()
    return {
        "items": items,
        "budget": BUDGET,
        **_rates(folder / "rates", items),
        "latency_ms": _latencies(folder / "latency", items, calls),
    }


def _rates(folder: Path, items: int) -> dict[str, Any]:
    with _opened(folder) as old, shop.open(_url(folder, "new")) as new:
        _fill(old, items)
        migration = Migration("bench", mapping, sources=old, target=new)
        migration.create()
        migration.start()
        forecast = _Forecast(migration)
        copied = _timed(lambda: forecast.beside(lambda: migration.work(until=lambda r: r.state == "Running")))
        report = compare(migration)
        compared = _timed(lambda: compare(migration))
    if report.total or report.expected != items:
        raise RuntimeError(f"The sides differ: {report.to_json()}")
    return {
        "copy_per_cpu_second": items / copied["cpu"],
        "copy_per_second": items / copied["wall"],
        "diff_pairs_per_cpu_second": items / compared["cpu"],
        # A pair is an item of the source and its item of the target.
        "diff_items_per_cpu_second": 2 * items / compared["cpu"],
        "diff_items_per_second": 2 * items / compared["wall"],
        "eta_error_percent": forecast.error_percent,
    }


class _Forecast:
    """Notes what the status forecasts at ten per cent, and how long the rest took."""

    def __init__(self, migration: Migration) -> None:
        self._migration = migration
        self._told: tuple[float, float] | None = None
        self._copied_at = 0.0
        self._stop = threading.Event()

    def beside(self, work: Callable[[], Any]) -> None:
        """Work, and watch beside it."""
        watching = threading.Thread(target=self._watch)
        watching.start()
        try:
            work()
        finally:
            self._stop.set()
            watching.join()
        self._copied_at = self._migration.record().copied_at or 0.0

    def _watch(self) -> None:
        while not self._stop.wait(0.02) and self._told is None:
            now = self._migration.status()
            if now.copy.percent >= _FORECAST_AT and now.copy.eta_seconds:
                self._told = (self._migration.target.clock(), now.copy.eta_seconds)

    @property
    def error_percent(self) -> float | None:
        """The difference of forecast and truth, in per cent of the truth; None if it was too fast to see."""
        if self._told is None:
            return None
        at, seconds = self._told
        truth = self._copied_at - at
        return abs(seconds - truth) / truth * 100 if truth > 0 else None


def _latencies(folder: Path, items: int, calls: int) -> dict[str, Any]:
    """Return the application's latencies without a copy, and with one in another process, in turn."""
    with _opened(folder) as old, shop.open(_url(folder, "new")) as new:
        _fill(old, items)
        migration = Migration("bench", mapping, sources=old, target=new)
        migration.create(rate=BUDGET)
        migration.start()
        alone: list[float] = []
        beside: list[float] = []
        rounds = 4
        for _ in range(rounds):
            alone += _calls(old, calls // rounds)
            with _copying(folder):
                beside += _calls(old, calls // rounds)
        scanned = migration.status().copy.scanned
    return {
        "alone": _percentiles(alone),
        "copying": _percentiles(beside),
        "p99_ratio": _percentiles(beside)["p99"] / _percentiles(alone)["p99"],
        "copied_meanwhile": scanned,
    }


class _copying:  # noqa: N801 - a context manager, used like a function
    """A worker in its own process, which has begun to copy."""

    def __init__(self, folder: Path) -> None:
        self._command = [sys.executable, "-m", "solotable", "migrate", "start", "bench"]
        self._command += [
            "-m",
            f"{__name__}:mapping",
            "--source",
            _url(folder, "old"),
            "-d",
            _url(folder, "new"),
        ]
        self._old, self._new = _url(folder, "old"), _url(folder, "new")

    def __enter__(self) -> None:
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)
        with connect(self._old, users) as old, shop.open(self._new) as new:
            migration = Migration("bench", mapping, sources=old, target=new)
            before = migration.status().copy.scanned
            limit = time.monotonic() + 60
            while migration.status().copy.scanned == before and time.monotonic() < limit:
                time.sleep(0.05)

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(60)


def _calls(old: Database, count: int) -> list[float]:
    """Read and write old items, and return the seconds of each call."""
    scope, taken = flow.scope_of(old), []
    for number in range(count):
        key = {"id": {"S": f"{number % 1000:08d}"}}
        item = {**key, "name": {"S": f"{number}"}, "city": {"S": "Leeds"}, "about": {"S": "x" * 300}}
        request: Any = PutItem(table="Users", item=item) if number % 2 else GetItem(table="Users", key=key)
        started = time.perf_counter()
        flow.run(flow.send(scope, request), old)
        taken.append(time.perf_counter() - started)
        time.sleep(_PAUSE_SECONDS)
    return taken


def _percentiles(seconds: list[float]) -> dict[str, float]:
    cuts = statistics.quantiles(seconds, n=100)
    return {"p50": cuts[49] * 1000, "p99": cuts[98] * 1000}


def _timed(work: Callable[[], Any]) -> dict[str, float]:
    wall, cpu = time.perf_counter(), time.process_time()
    work()
    return {"wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def _url(folder: Path, name: str) -> str:
    return f"sqlite:///{folder / name}.db{_OPTIONS}"


def _opened(folder: Path) -> Database:
    return connect(_url(folder, "old"), users)


def _fill(old: Database, items: int) -> None:
    scope = flow.scope_of(old)
    for start in range(0, items, 25):
        puts = tuple(BatchPut(item=_item(number)) for number in range(start, min(start + 25, items)))
        flow.run(flow.send(scope, BatchWriteItem(tables=(("Users", puts),))), old)


def _item(number: int) -> dict[str, Any]:
    values = {"id": f"{number:08d}", "name": f"Customer {number}", "about": "x" * 300}
    if number % 10:
        values["city"] = f"City {number % 500}"
    return {name: flow.encode_value(value) for name, value in values.items()}


def table(figures: dict[str, Any]) -> list[str]:
    """Return the lines to print."""
    latency, error = figures["latency_ms"], figures["eta_error_percent"]
    return [
        f"  copy     {figures['copy_per_cpu_second']:>10,.0f} items a CPU second, "
        f"{figures['copy_per_second']:,.0f} a second",
        f"  diff     {figures['diff_items_per_cpu_second']:>10,.0f} items of both sides a CPU second "
        f"({figures['diff_pairs_per_cpu_second']:,.0f} pairs), "
        f"{figures['diff_items_per_second']:,.0f} a second",
        f"  forecast {'-' if error is None else f'{error:.0f} %':>10} off after 10 %",
        f"  app      p99 {latency['alone']['p99']:.2f} ms alone, {latency['copying']['p99']:.2f} ms beside "
        f"a copy of {figures['budget']:g} write units a second: {latency['p99_ratio']:.2f} times",
    ]
