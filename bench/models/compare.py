"""What the modelling layer costs: beside the engine in process, and beside its peers over one wire server."""

from __future__ import annotations

import os
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
from solotable._entities.lint import lint
from solotable._entities.patterns.conditions import record
from solotable._expressions.ast import Condition
from solotable._expressions.render import Placeholders, render_condition
from solotable._expressions.syntax.compile import compile_expressions

OPERATIONS = ("get", "put", "query")
TITLES = {"get": "get", "put": "put", "query": "page of 50"}
_ITEMS = 500
_CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "one comparison": lambda section: section.order == 3,
    "two, joined": lambda section: (section.order > 3) & section.title.startswith("r"),
    "one of 20": lambda section: one_of(section.order, range(20)),
}


def overhead(*, quick: bool) -> dict[str, dict[str, float]]:
    """Return microseconds a call: our store beside the engine's own requests, both in process."""
    with connect("sqlite://", modelled.sections) as db:
        layer = modelled.ours(db, _ITEMS)
        call = db.engine.call  # type: ignore[attr-defined]  # the embedded engine has it
        engine = modelled.bare_boto3(_Calls(call), _ITEMS)
        figures = {}
        for name in OPERATIONS:
            pair = {"engine": getattr(engine, name), "store": getattr(layer, name)}
            figures[TITLES[name]] = race(
                pair, rounds=5 if quick else 25, calls=20 if name == "query" else 200
            )
    return figures


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

    os.environ.update(
        AWS_ACCESS_KEY_ID="local",
        AWS_SECRET_ACCESS_KEY="local",  # noqa: S106 - no secret: our own server asks for none
        AWS_DEFAULT_REGION="us-east-1",
    )
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
