"""Sync in process: what pushes and pulls consume, a crowd on one space, and whole views in little memory."""

from __future__ import annotations

import itertools
import statistics
import threading
import time
import tracemalloc
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from solotable import FROM_SCOPE, Database, Entity, Key, Store, Synced, Table, connect
from solotable.sync import Mutators, Sync

CLIENTS = 50
#: Pushes a second of all clients of the crowd together, and for how many seconds.
CROWD_RATE = 20.0
CROWD_SECONDS = 20.0
QUICK_SECONDS = 3.0
SPACES = 50
PUSHES = 3_000
QUICK_PUSHES = 300
VIEW_ITEMS = 10_000
QUICK_VIEW_ITEMS = 2_000
_THREADS = 4
_PROCESSES = 2
_OPTIONS = "?durability=relaxed"

todos = Table("Todos", tenant="tenant_id")
mutators = Mutators()


class Todo(Entity, table=todos):
    """A synced item of half a kilobyte."""

    key = Key("TENANT#{tenant_id}", "TODO#{todo_id}")
    sync = Synced()

    tenant_id: str = FROM_SCOPE
    todo_id: str
    text: str = ""
    count: int = 0


class TodoArgs(BaseModel):
    """The arguments of the mutators."""

    id: str
    text: str = ""


@mutators.register("put")
def put(db: Store, args: TodoArgs) -> None:
    """Replace a todo."""
    db.put(Todo(todo_id=args.id, text=args.text))


@mutators.register("increment")
def increment(db: Store, args: TodoArgs) -> None:
    """Count in a todo, by a read and a write."""
    todo = db.get(Todo, todo_id=args.id) or Todo(todo_id=args.id)
    db.put(todo.model_copy(update={"count": todo.count + 1}))


class Client:
    """A client that pushes mutations one by one."""

    def __init__(self, sync: Sync, tenant: str, number: int) -> None:
        self._sync, self._tenant, self._name = sync, tenant, f"c{number}"
        self._ids = itertools.count(1)

    def push(self, name: str, *arguments: dict[str, Any], again: bool = False) -> None:
        """Push new mutations; `again` sends them twice, as after a lost answer."""
        mutations = [
            {"id": next(self._ids), "clientID": self._name, "name": name, "args": args, "timestamp": 1.5}
            for args in arguments
        ]
        body = {"pushVersion": 1, "clientGroupID": f"g{self._name}", "mutations": mutations}
        for _ in range(1 + again):
            self._sync.push(self._tenant, self._name, body)

    def pull(self, cookie: Any = None) -> Any:
        """Pull the changes since a cookie."""
        body = {"pullVersion": 1, "clientGroupID": f"g{self._name}", "cookie": cookie}
        return self._sync.pull(self._tenant, self._name, body)


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return all figures."""
    url = f"sqlite:///{folder / 'sync'}.db{_OPTIONS}"
    with connect(url, todos) as db:
        sync = Sync(db, mutators=mutators, poll_seconds=0)
        return {
            **_units(db, sync),
            "crowd": _crowd(sync, QUICK_SECONDS if quick else CROWD_SECONDS),
            "spaces": _spaces(sync, QUICK_PUSHES if quick else PUSHES),
            "processes": _processes(url, QUICK_PUSHES if quick else PUSHES),
            "view": _view(db, QUICK_VIEW_ITEMS if quick else VIEW_ITEMS),
        }


def _todo(name: str) -> dict[str, Any]:
    return {"id": name, "text": "x" * 400}


def _units(db: Database, sync: Sync) -> dict[str, Any]:
    client = Client(sync, "units", 1)
    client.push("put", _todo("first"))
    cookie = client.pull()["cookie"]
    with db.consumed() as idle:
        client.pull(cookie)
    with db.consumed() as pushed:
        client.push("put", _todo("one"))
    with db.consumed() as pulled:
        client.pull(cookie)
    with db.consumed() as queued:
        client.push("put", *(_todo(str(number)) for number in range(200)))
    return {
        "idle_pull_rcu": idle.rcu,
        "push_wcu": pushed.wcu,
        "push_rcu": pushed.rcu,
        "pull_rcu": pulled.rcu,
        "queue_requests": queued.requests,
        "queue_wcu": queued.wcu,
    }


def _crowd(sync: Sync, seconds: float) -> dict[str, Any]:
    """50 clients count in one item; each push is sent twice, as after a lost answer."""
    clients = [Client(sync, "crowd", number) for number in range(CLIENTS)]
    pushes = int(seconds * CROWD_RATE)
    taken: list[float] = []
    begin = time.perf_counter()

    def run(number: int) -> None:
        time.sleep(max(0.0, begin + number / CROWD_RATE - time.perf_counter()))
        started = time.perf_counter()
        clients[number % CLIENTS].push("increment", {"id": "shared"}, again=True)
        taken.append(time.perf_counter() - started)

    with ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(run, range(pushes)))
    patch = Client(sync, "crowd", CLIENTS).pull()["patch"]
    (count,) = [op["value"]["count"] for op in patch if op.get("key") == "todo/shared"]
    cuts = statistics.quantiles(taken, n=100)
    return {
        "clients": CLIENTS,
        "pushes": pushes,
        "rate": pushes / (time.perf_counter() - begin),
        "lost": max(0, pushes - count),
        "duplicated": max(0, count - pushes),
        "p50_ms": cuts[49] * 1000,
        "p99_ms": cuts[98] * 1000,
    }


def _spaces(sync: Sync, pushes: int) -> dict[str, Any]:
    """Clients of 50 tenants push one item each, as fast as they can, from a few threads."""
    clients = [Client(sync, f"space{number}", 1) for number in range(SPACES)]
    locks = [threading.Lock() for _ in clients]
    for client in clients:
        client.push("put", _todo("first"))

    def run(number: int) -> None:
        # A client sends one push at a time.
        with locks[number % SPACES]:
            clients[number % SPACES].push("put", _todo(str(number)))

    wall, cpu = time.perf_counter(), time.process_time()
    with ThreadPoolExecutor(_THREADS) as pool:
        list(pool.map(run, range(pushes)))
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"spaces": SPACES, "pushes": pushes, "per_second": pushes / wall, "per_cpu_second": pushes / cpu}


def _processes(url: str, pushes: int) -> dict[str, Any]:
    """Two processes on one file push to half of the spaces each, as fast as they can."""
    share = pushes // _PROCESSES
    with ProcessPoolExecutor(_PROCESSES, mp_context=get_context("spawn")) as pool:
        spans = list(pool.map(_push_alone, [url] * _PROCESSES, range(_PROCESSES), [share] * _PROCESSES))
    wall = max(end for _, end in spans) - min(start for start, _ in spans)
    return {"processes": _PROCESSES, "pushes": share * _PROCESSES, "per_second": share * _PROCESSES / wall}


def _push_alone(url: str, process: int, pushes: int) -> tuple[float, float]:
    """Push from one thread; return when it began and ended."""
    with connect(url, todos) as db:
        sync = Sync(db, mutators=mutators, poll_seconds=0)
        clients = [Client(sync, f"process{process}-{number}", 1) for number in range(SPACES // _PROCESSES)]
        for client in clients:
            client.push("put", _todo("first"))
        started = time.monotonic()
        for number in range(pushes):
            clients[number % len(clients)].push("put", _todo(str(number)))
        return started, time.monotonic()


def _view(db: Database, items: int) -> dict[str, Any]:
    """Pull a whole view as a stream, and a view of a tenth of the items for its memory."""
    figures: dict[str, Any] = {"items": items}
    for name, count in (("small", items // 10), ("whole", items)):
        _fill(db.tenant(name), count)
        body = {"pullVersion": 1, "clientGroupID": "g", "cookie": None}
        # The log of the last seconds is replayed; a client that pulls later gets the items alone.
        scope = replace(db.scope, clock=lambda: time.time() + 3600)
        later = Sync(Database(db.engine, scope), mutators=mutators, poll_seconds=0)
        started = time.perf_counter()
        size = sum(len(piece) for piece in later.pull_stream(name, "u", body))
        figures[f"{name}_seconds"] = time.perf_counter() - started
        figures[f"{name}_bytes"] = size
        tracemalloc.start()
        for _ in later.pull_stream(name, "u", body):
            pass
        figures[f"{name}_peak_kb"] = tracemalloc.get_traced_memory()[1] / 1024
        tracemalloc.stop()
    return figures


def _fill(store: Store, count: int) -> None:
    for start in range(0, count, 90):
        with store.transaction() as tx:
            for number in range(start, min(start + 90, count)):
                tx.put(Todo(todo_id=f"{number:06d}", text="x" * 400))


def table(figures: dict[str, Any]) -> list[str]:
    """Return the lines to print."""
    crowd, spaces, view = figures["crowd"], figures["spaces"], figures["view"]
    processes = figures["processes"]
    return [
        f"  pull without changes {figures['idle_pull_rcu']:g} RCU, of one item {figures['pull_rcu']:g} RCU",
        f"  push of one item     {figures['push_wcu']:g} WCU, {figures['push_rcu']:g} RCU; "
        f"of 200 mutations {figures['queue_requests']} requests, {figures['queue_wcu']:g} WCU",
        f"  {crowd['clients']} clients, one space  {crowd['rate']:.1f} pushes a second, each sent twice: "
        f"{crowd['lost']} lost, {crowd['duplicated']} run twice, "
        f"p50 {crowd['p50_ms']:.1f} ms, p99 {crowd['p99_ms']:.1f} ms",
        f"  {spaces['spaces']} spaces            {spaces['per_second']:,.0f} pushes a second, "
        f"{spaces['per_cpu_second']:,.0f} a CPU second, by {_THREADS} threads; "
        f"{processes['per_second']:,.0f} a second by {processes['processes']} processes",
        f"  whole view           {view['items']:,} items, {view['whole_bytes'] / 1e6:.1f} MB in "
        f"{view['whole_seconds']:.2f} s, peak {view['whole_peak_kb']:,.0f} KB "
        f"({view['small_peak_kb']:,.0f} KB for a tenth)",
    ]
