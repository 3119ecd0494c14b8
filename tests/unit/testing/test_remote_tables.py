"""The same tests on another database: each has its own tables there, and touches no others."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable._connect import over
from solotable.engines import sqlite
from solotable.errors import ServiceError
from solotable.testing.endpoint import DUMMY_VARIABLES, serve_in_thread
from solotable.testing.engines.journal import Journal
from solotable.testing.engines.recording import RecordingEngine
from solotable.testing.remote_tables import RemoteDatabase, RemoteTables

from .shop import Order, Tally, shop, stock
from .test_plugin import INI, project

__all__ = ["project"]

pytest_plugins = ["pytester"]

TESTS = """
import asyncio
import pytest
from shop import Order, shop, stock

@pytest.mark.parametrize("again", range(3))
def test_empty(solotable_db, again, solotable_cost):
    db = solotable_db(shop)
    assert db.get(Order, order_id="1") is None
    with solotable_cost(wcu=2):
        db.put(Order(order_id="1"))
    name = db.scope.names["Shop"]
    assert name.startswith("solotable-test-") and name.endswith("-Shop")
    alive = db.engine.call("DescribeTimeToLive", {"TableName": name})["TimeToLiveDescription"]
    assert alive["TimeToLiveStatus"] == "ENABLED"

def test_several(solotable_db, solotable_faults):
    with solotable_db(shop, stock) as db:
        solotable_faults.throttle("PutItem", times=1)
        db.put(Order(order_id="1"))
        assert solotable_db(shop).get(Order, order_id="1") is not None
        db.engine.call("DeleteTable", {"TableName": db.scope.names["Stock"]})

def test_awaited(solotable_async_db):
    async def work():
        async with solotable_async_db(shop) as db:
            await db.put(Order(order_id="1"))

    asyncio.run(work())

def test_controlled(solotable_db, solotable_clock):
    assert solotable_db(shop).put(Order(order_id="1")).placed == solotable_clock.now

def test_served(solotable_endpoint):
    pass

def test_failing(solotable_db):
    solotable_db(shop)
    assert 0
"""


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[str, RecordingEngine]]:
    """A server that has a table Shop with an order of another user."""
    for name, value in DUMMY_VARIABLES.items():
        monkeypatch.setenv(name, value)
    with sqlite.open(":memory:") as bare:
        engine = RecordingEngine(bare)
        over(engine, [shop]).put(Order(order_id="1", note="theirs"))
        with serve_in_thread(engine) as url:
            engine.journal.clear()
            yield url, engine


def test_tests_run_on_a_server_and_leave_no_table(
    project: pytest.Pytester,
    served: tuple[str, RecordingEngine],
) -> None:
    url, engine = served
    project.makepyfile(test_elsewhere=TESTS)
    done = project.runpytest_inprocess("--solotable-url", url, "-rs")
    done.assert_outcomes(passed=5, failed=1, skipped=2)
    done.stdout.fnmatch_lines([f"solotable: {url}"])
    done.stdout.fnmatch_lines([f"SKIPPED*solotable_clock cannot control the clock of {url}.*"])
    done.stdout.fnmatch_lines([f"SKIPPED*solotable_endpoint serves an embedded engine, not {url}*"])
    assert _untouched(engine.journal)
    assert engine.call("ListTables", {})["TableNames"] == ["Shop"]
    assert over(engine, [shop]).require(Order, order_id="1").note == "theirs"
    made = [request.members["TableName"] for request in engine.journal.requests("CreateTable")]  # type: ignore[attr-defined]  # a Control
    assert len(made) == len(set(made)) == 7


def test_tests_run_on_a_file_and_tell_it_the_time(project: pytest.Pytester) -> None:
    path = project.path / "shop.db"
    with sqlite.open(path) as engine:
        over(engine, [stock]).put(Tally(name="theirs"))
    project.makepyfile(test_elsewhere=TESTS)
    project.makeini(INI)
    done = project.runpytest_inprocess("--solotable-url", f"sqlite:///{path}")
    done.assert_outcomes(passed=7, failed=1)
    with sqlite.open(path) as engine:
        assert engine.call("ListTables", {})["TableNames"] == ["Stock"]
        assert over(engine, [stock]).get(Tally, name="theirs") is not None


def test_a_table_that_was_there_is_neither_used_nor_deleted() -> None:
    place = RemoteDatabase("sqlite://")
    ground = RemoteTables(place, prefix="")
    over(place.engine, [stock]).put(Tally(name="theirs"))
    with pytest.raises(ServiceError, match="ResourceInUseException"):
        ground.prepare([stock])
    ground.clear()
    assert over(place.engine, [stock]).get(Tally, name="theirs") is not None
    place.close()


def test_a_prefix_of_the_url_comes_first() -> None:
    place = RemoteDatabase("sqlite://?prefix=ci-")
    ground = RemoteTables(place)
    _, names = ground.prepare([stock])
    assert names["Stock"].startswith("ci-solotable-test-")
    place.close()


def test_a_table_that_cannot_be_deleted_is_named() -> None:
    place = RemoteDatabase("sqlite://")
    ground = RemoteTables(place)
    _, names = ground.prepare([stock])
    protect = {"TableName": names["Stock"], "DeletionProtectionEnabled": True}
    place.engine.call("UpdateTable", protect)  # type: ignore[attr-defined]  # the embedded engine
    with pytest.warns(UserWarning, match=f"Cannot delete the test table {names['Stock']}"):
        ground.clear()
    place.close()


def _untouched(journal: Journal) -> bool:
    """Whether no request named a table that the tests had not made."""
    return all(
        "solotable-test-" in str(record) for record in journal.records if record.operation != "ListTables"
    )
