"""What the modelling layer costs: beside the engine in process, and beside its peers over one wire server.

Times are CPU time of this process, so that they do not depend on what else the machine does.
"""

from __future__ import annotations

import asyncio
import os
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.clock import race
from bench.models import layers as modelled
from bench.models.layers import Layer
from bench.wire.peers import Solotable
from solotable import Entity, Key, Table, one_of
from solotable._connect import connect
from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.lint import lint
from solotable._entities.patterns.conditions import record
from solotable._expressions.ast import Condition
from solotable._expressions.render import Placeholders, render_condition
from solotable._expressions.syntax.compile import compile_expressions
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.requests import GetItem

OPERATIONS = ("get", "put", "query")
TITLES = {"get": "get", "put": "put", "query": "page of 50"}
_ITEMS = 500
_CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "one comparison": lambda section: section.order == 3,
    "two, joined": lambda section: (section.order > 3) & section.title.startswith("r"),
    "one of 20": lambda section: one_of(section.order, range(20)),
}


def overhead(*, quick: bool) -> dict[str, dict[str, float]]:
    """Return microseconds of CPU a call: our store beside the engine's own requests, both in process."""
    with connect("sqlite://", modelled.sections) as db:
        layer = modelled.ours(db, _ITEMS)
        call = db.engine.call  # type: ignore[attr-defined]  # the embedded engine has it
        engine = modelled.bare_boto3(_Calls(call), _ITEMS)
        figures = {}
        for name in OPERATIONS:
            pair = {"engine": getattr(engine, name), "store": getattr(layer, name)}
            figures[TITLES[name]] = race(
                pair,
                rounds=5 if quick else 25,
                calls=20 if name == "query" else 200,
                clock=time.process_time,
            )
    return figures


def decoding(*, quick: bool) -> dict[str, float]:
    """Return microseconds of CPU an entity: an item decoded, beside Pydantic's validation of its values.

    The store decodes items of 0.9 KB as `loads` returns them. Pydantic gets values that are decoded already.
    """
    plan = modelled.Section.plan()
    stored = [modelled.Section(**modelled.fields(number)) for number in range(modelled.PER_PARTITION)]
    items = [loads(dumps(plan.encode(each.__dict__))) for each in stored]
    values = [dict(each.__dict__) for each in stored]
    validate = modelled.Section.__pydantic_validator__.validate_python
    pair: dict[str, Callable[[int], object]] = {
        "plan.decode": lambda _: [plan.decode(each, STORED) for each in items],
        "Pydantic's validation": lambda _: [validate(each) for each in values],
    }
    found = race(pair, rounds=5 if quick else 25, calls=40, clock=time.process_time)
    return {name: each / len(items) for name, each in found.items()}


def client(folder: Path, *, quick: bool) -> dict[str, float]:
    """Return microseconds of CPU a GetItem of our client, blocking and async, beside a bare socket.

    The bare socket sends the same signed bytes each time, and reads the response without parsing it.
    """
    server = Solotable()
    server.prepare()
    with server.serve("memory", folder) as running:
        _configure_credentials()
        db = connect(f"http://127.0.0.1:{running.port}/Sections", modelled.sections)
        engine: Any = db.engine
        engine.call("CreateTable", modelled.sections.definition())
        layer = modelled.bare_boto3(_Calls(engine.call), modelled.PER_PARTITION)
        plan, requests = modelled.Section.plan(), []
        for number in range(modelled.PER_PARTITION):
            layer.put(number)
            key = plan.key_of(modelled.fields(number))
            requests.append(GetItem(table="Sections", key=key))
        awaited = engine.make_async()

        async def await_all() -> None:
            for each in requests:
                await awaited.handle(each)

        protocol = engine._transports.items.protocol
        raw = next(protocol.call_steps(*encode_request(requests[0]), protocol.signers.current()))
        address = ("127.0.0.1", running.port)
        with asyncio.Runner() as runner, socket.create_connection(address) as connected:
            connected.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

            def exchange() -> bytes:
                connected.sendall(raw)
                return connected.recv(1 << 16)

            contenders: dict[str, Callable[[int], object]] = {
                "blocking": lambda _: [engine.handle(each) for each in requests],
                "async": lambda _: runner.run(await_all()),
                "bare socket": lambda _: [exchange() for _ in requests],
            }
            found = race(contenders, rounds=3 if quick else 15, calls=4, clock=time.process_time)
            db.close()
    return {name: each / len(requests) for name, each in found.items()}


def conditions(*, quick: bool) -> dict[str, dict[str, float]]:
    """Return microseconds to record a condition from `where=`, beside rendering and compiling its text."""
    plan = modelled.Section.plan()
    figures = {}
    for title, where in _CONDITIONS.items():
        tree = record(plan, where)
        pair: dict[str, Callable[[int], object]] = {
            "recorded": lambda _, where=where: record(plan, where),  # type: ignore[misc]
            "compiled": lambda _, tree=tree: _compile(tree),  # type: ignore[misc]
        }
        figures[title] = race(pair, rounds=5 if quick else 25, calls=200, clock=time.process_time)
    return figures


def _compile(tree: Condition) -> None:
    members: dict[str, Any] = {}
    placeholders = Placeholders()
    text = render_condition(tree, placeholders)
    placeholders.add_to(members)
    compile_expressions(
        condition=text,
        names=members.get("ExpressionAttributeNames"),
        values=members.get("ExpressionAttributeValues"),
    )


class _Calls:
    """The engine's own door with the names of a boto3 client."""

    def __init__(self, call: Callable[[str, dict[str, Any]], Any]) -> None:
        self._call = call

    def get_item(self, **members: Any) -> Any:
        return self._call("GetItem", members)

    def put_item(self, **members: Any) -> Any:
        return self._call("PutItem", members)

    def query(self, **members: Any) -> Any:
        return self._call("Query", members)


def beside_peers(folder: Path, *, quick: bool) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return microseconds of CPU a call by layer, over one wire server, and which layer is missing why.

    "in process" is our store on the embedded engine, its engine's work included.
    """
    server = Solotable()
    server.prepare()
    with server.serve("memory", folder) as running, connect("sqlite://", modelled.sections) as inside:
        layers, missing = _layers(f"http://127.0.0.1:{running.port}")
        layers["in process"] = modelled.ours(inside, _ITEMS)
        figures = {}
        for name in OPERATIONS:
            contenders = {each: getattr(layer, name) for each, layer in layers.items()}
            figures[TITLES[name]] = race(
                contenders,
                rounds=3 if quick else 15,
                calls=20 if name == "query" else 60,
                clock=time.process_time,
            )
    return figures, missing


def _layers(endpoint: str) -> tuple[dict[str, Layer], dict[str, str]]:
    import boto3

    _configure_credentials()
    client = boto3.client("dynamodb", endpoint_url=endpoint)
    client.create_table(**modelled.sections.definition())
    db = connect(f"{endpoint}/Sections", modelled.sections)
    layers = {"solotable": modelled.ours(db, _ITEMS), "boto3": modelled.bare_boto3(client, _ITEMS)}
    missing = {}
    for name, make in (("PynamoDB", modelled.pynamodb), ("dyntastic", modelled.dyntastic)):
        try:
            layers[name] = make(endpoint, _ITEMS)
        except ImportError as absent:
            missing[name] = str(absent)
    return layers, missing


def _configure_credentials() -> None:
    os.environ.update(
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",  # noqa: S106 - no secret: our own server asks for none
        AWS_DEFAULT_REGION="us-east-1",
    )


def definitions(*, quick: bool) -> dict[str, float]:
    """Return the seconds that it takes to import, and to define and lint 100 entities."""
    rounds = 3 if quick else 9
    return {
        "import solotable": statistics.median(_imported("import solotable") for _ in range(rounds)),
        "python alone": statistics.median(_imported("pass") for _ in range(rounds)),
        "from solotable import Entity, Table": statistics.median(
            _imported("from solotable import Entity, Table") for _ in range(rounds)
        ),
        "define and lint 100 entities": statistics.median(_defined(100) for _ in range(rounds)),
    }


def _imported(statement: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", statement], check=True)
    return time.perf_counter() - start


def _defined(count: int) -> float:
    start = time.perf_counter()
    table = Table("Many")
    for number in range(count):
        body = {
            "__module__": __name__,
            "__qualname__": f"Kind{number}",
            "__annotations__": {"org": str, "thing": str, "order": int, "note": str},
            "key": Key("ORG#{org}", f"KIND{number}#{{thing}}"),
            "note": "",
        }
        made: Any = type(Entity)
        made(f"Kind{number}", (Entity,), body, table=table)
    lint(table)
    return time.perf_counter() - start
