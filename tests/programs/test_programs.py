"""The programs, run through `routed` as they are, with every way to a network closed."""

from __future__ import annotations

import importlib
from pathlib import Path

import boto3
import pytest

from solotable.boto3 import routed
from tests.closed_network import close_network


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    close_network(monkeypatch)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


def test_a_pynamodb_program_runs_unchanged(tmp_path: Path) -> None:
    with routed(tmp_path / "shop.db", durability="relaxed"):
        log = importlib.import_module("tests.programs.pynamodb_shop").main()
    assert log == [
        "30 orders",
        "second order 1: ConditionalCheckFailedException",
        "order 7 is packed, version 1, lines ['pen']",
        "stale update: ConditionalCheckFailedException",
        "order 7 costs 75, labels ['n1']",
        "order 99 does not exist",
        "ben's newest: [30, 27, 24]",
        "dear orders: [28, 29, 30]",
        "even orders over several pages: 15",
        "batch got: [1, 2]",
        "packed: [(7, 'packed')]",
        "payment of 80: [None, 'ConditionalCheckFailed', None]",
        "balances: ana 25, shop 75",
        "orders table exists: False",
    ]


def test_a_boto3_resource_program_runs_unchanged() -> None:
    # Its resource is made when the module is imported: before the block, and without credentials.
    program = importlib.import_module("tests.programs.boto3_tasks")
    with routed(":memory:"):
        log = program.main()
    assert log == [
        "status ACTIVE, 0 items",
        "first: True",
        "again: False",
        "ben has 59",
        r"task 07: b'\x07' ['a', 'b'] False None",
        "due soon: ['paint', 'task 02', 'task 03', 'task 04']",
        "updated: [('notes', ['half way']), ('steps', [{'done': True}])]",
        "ana finished 1",
        "finished already: ['ConditionalCheckFailed', 'None']",
        "pages: [25, 25, 11]",
        "tables: []",
    ]
