"""The plugin from a user's point of view: separate projects, each run by its own pytest."""

from __future__ import annotations

import inspect

import pytest

from . import shop

pytest_plugins = ["pytester"]

INI = """
[pytest]
addopts = -p no:cacheprovider --strict-markers
filterwarnings = error
"""


@pytest.fixture
def project(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A project whose models are in shop.py."""
    pytester.makeini(INI)
    pytester.makepyfile(shop=inspect.getsource(shop))
    pytester.syspathinsert()
    # What runs this test must not reach into what it runs.
    for name in ("PYTEST_ADDOPTS", "AWS_ENDPOINT_URL_DYNAMODB"):
        monkeypatch.delenv(name, raising=False)
    return pytester


def test_the_package_is_not_imported_before_a_fixture_is_used(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_lazy="""
        import sys

        def test_nothing_is_there_yet():
            ours = sorted(name for name in sys.modules if name.split(".")[0] == "solotable")
            assert ours == ["solotable", "solotable.testing", "solotable.testing.plugin"]
            assert "pydantic" not in sys.modules and "botocore" not in sys.modules

        def test_a_store_needs_no_botocore(solotable_db):
            from shop import Order, shop

            assert solotable_db(shop).get(Order, order_id="1") is None
            assert "botocore" not in sys.modules
        """
    )
    # Other plugins may import anything: only ours is checked.
    done = project.runpytest_subprocess("-p", "no:hypothesispytest", "-p", "no:xdist", "-p", "no:timeout")
    done.assert_outcomes(passed=2)


ISOLATION = """
import pytest
from shop import Order, Tally, shop, stock

@pytest.fixture
def db(solotable_db):
    return solotable_db(shop, stock)

@pytest.mark.parametrize("again", range(6))
def test_a_test_finds_what_was_declared_and_leaves_a_mess(db, again):
    call = db.engine.call
    assert call("ListTables", {})["TableNames"] == ["Shop", "Stock"]
    assert call("ListStreams", {})["Streams"] == []
    alive = call("DescribeTimeToLive", {"TableName": "Shop"})["TimeToLiveDescription"]
    assert alive["TimeToLiveStatus"] == "ENABLED"
    described = call("DescribeTable", {"TableName": "Stock"})["Table"]
    assert [index["IndexName"] for index in described["GlobalSecondaryIndexes"]] == ["ByShelf"]
    assert "StreamSpecification" not in described
    assert db.get(Order, order_id="1") is None
    with db.transaction(token="same") as tx:
        tx.put(Order(order_id=f"{again}"))
    assert db.get(Order, order_id=f"{again}") is not None
    db.put(Order(order_id="1"))
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    call("UpdateTable", {"TableName": "Stock", "StreamSpecification": stream})
    gone = [{"Delete": {"IndexName": "ByShelf"}}]
    call("UpdateTable", {"TableName": "Stock", "GlobalSecondaryIndexUpdates": gone})
    off = {"AttributeName": "expires", "Enabled": False}
    call("UpdateTimeToLive", {"TableName": "Shop", "TimeToLiveSpecification": off})
    if again % 2:
        call("DeleteTable", {"TableName": "Shop"})
"""


def test_every_test_has_its_own_store(project: pytest.Pytester) -> None:
    project.makepyfile(test_isolation=ISOLATION)
    project.runpytest_inprocess().assert_outcomes(passed=6)


def test_workers_of_xdist_do_not_meet_and_their_costs_are_reported(project: pytest.Pytester) -> None:
    project.makepyfile(test_isolation=ISOLATION)
    done = project.runpytest_subprocess("-n", "2", "--solotable-cost")
    done.assert_outcomes(passed=6)
    # The transaction doubles the writes of the table and of the index and has a token: 6, and 2 of the put.
    done.stdout.re_match_lines(
        [
            r"=+ solotable: cost of the tests =+",
            r" +RCU +WCU +requests +scans  test",
            r" +2 +8 +\d+ +0  test_isolation.py::test_a_test_finds.*",
            r" +12 +48 +\d+ +0  6 tests",
        ]
    )


def test_awaited_stores_need_no_plugin_for_event_loops(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_async="""
        import asyncio
        from shop import Order, shop
        from solotable.testing import assert_cost

        def test_awaited(solotable_async_db, solotable_db):
            db = solotable_async_db(shop)

            async def work():
                await db.put(Order(order_id="1"))
                with assert_cost(db, rcu=0.5, wcu=0):
                    return await db.get(Order, order_id="1")

            assert asyncio.run(work()) == solotable_db(shop).get(Order, order_id="1")

        def test_another_store(solotable_async_db):
            async def work():
                async with solotable_async_db(shop) as db:
                    return await db.get(Order, order_id="1")

            assert asyncio.run(work()) is None
        """
    )
    project.runpytest_inprocess().assert_outcomes(passed=2)


def test_the_clock_is_the_stores_and_the_engines(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_clock="""
        from datetime import UTC, datetime, timedelta
        import pytest
        from shop import Order, Visit, shop
        from solotable.errors import CursorRejected

        @pytest.fixture
        def db(solotable_db):
            db = solotable_db(shop)
            db.put(Order(order_id="0"))
            return db

        def test_stamps(db, solotable_clock):
            assert db.get(Order, order_id="0").placed == datetime(2026, 1, 1, tzinfo=UTC)
            solotable_clock.tick(60)
            assert db.put(Order(order_id="1")).placed == datetime(2026, 1, 1, 0, 1, tzinfo=UTC)
            solotable_clock.set(datetime(2030, 5, 5, tzinfo=UTC))
            assert db.put(Order(order_id="2")).placed == solotable_clock.now

        def test_time_to_live(db, solotable_clock):
            db.put(Visit(visit_id="1", expires=solotable_clock.now + timedelta(hours=1)))
            solotable_clock.tick(3599)
            assert db.get(Visit, visit_id="1") is not None
            assert db.engine.sweep() == 0
            solotable_clock.tick(2)
            assert db.get(Visit, visit_id="1") is None
            assert db.engine.sweep() == 1

        def test_cursors(db, solotable_clock):
            db.put(Order(order_id="1"))
            cursor = db.page(Order.of_buyer("ana"), limit=1).cursor
            solotable_clock.tick(timedelta(days=6))
            assert db.page(Order.of_buyer("ana"), limit=1, cursor=cursor).items[0].order_id == "1"
            solotable_clock.tick(timedelta(days=2))
            with pytest.raises(CursorRejected):
                db.page(Order.of_buyer("ana"), limit=1, cursor=cursor)

        def test_tables_are_made_at_the_clocks_time(db, solotable_clock):
            made = db.engine.call("DescribeTable", {"TableName": "Shop"})["Table"]["CreationDateTime"]
            assert made == solotable_clock()

        def test_without_it_time_is_real(db):
            assert abs(db.get(Order, order_id="0").placed - datetime.now(UTC)) < timedelta(minutes=5)
        """
    )
    project.runpytest_inprocess().assert_outcomes(passed=5)


def test_faults_and_costs_fail_a_users_test_with_words(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_words="""
        from shop import Order, shop

        def test_dear(solotable_db, solotable_cost, solotable_faults):
            db = solotable_db(shop)
            solotable_faults.throttle("PutItem", times=1)
            with solotable_cost(wcu=1):
                db.put(Order(order_id="1"))
        """
    )
    done = project.runpytest_inprocess()
    done.assert_outcomes(failed=1)
    done.stdout.fnmatch_lines(
        [
            "*AssertionError: The block cost 2 WCU, not 1.",
            "*  1. PutItem Shop  0 RCU  error: Throttled",
            "*  2. PutItem Shop  2 WCU  (of that ByBuyer 1)",
        ]
    )
    # The traceback ends in the user's own line.
    done.stdout.no_fnmatch_line("*cost.py:*")


def test_the_endpoint_serves_the_same_store_to_boto3(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_endpoint="""
        import os
        import boto3
        import pytest
        from botocore.config import Config
        from botocore.exceptions import ClientError
        from shop import Order, shop
        from solotable.testing import assert_no_scan

        @pytest.fixture
        def client(solotable_endpoint):
            assert os.environ["AWS_ENDPOINT_URL_DYNAMODB"] == solotable_endpoint
            client = boto3.Session().client("dynamodb", config=Config(retries={"total_max_attempts": 1}))
            yield client
            client.close()

        def test_shared(solotable_db, client):
            db = solotable_db(shop)
            db.put(Order(order_id="1"))
            with pytest.raises(AssertionError, match="Scan Shop"), assert_no_scan(db):
                assert client.scan(TableName="Shop")["Count"] == 1

        def test_fresh(client):
            assert client.list_tables()["TableNames"] == []

        def test_faults(solotable_db, client, solotable_faults):
            solotable_db(shop)
            solotable_faults.throttle("Scan")
            with pytest.raises(ClientError) as refused:
                client.scan(TableName="Shop")
            assert refused.value.response["Error"]["Code"] == "ProvisionedThroughputExceededException"
            solotable_faults.timeout("Scan", applied=False)
            with pytest.raises(ClientError) as refused:
                client.scan(TableName="Shop")
            assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 500

        def test_the_environment_is_as_it_was():
            assert "AWS_ENDPOINT_URL_DYNAMODB" not in os.environ
        """
    )
    project.runpytest_inprocess("-p", "no:logging").assert_outcomes(passed=4)


def test_tables_can_be_named_in_the_ini_file(project: pytest.Pytester) -> None:
    project.makeini(INI + "solotable_models =\n    shop:shop\n    shop:stock\n")
    project.makepyfile(
        test_models="""
        from shop import Order, Tally

        def test_all(solotable_db, solotable_async_db):
            db = solotable_db()
            db.put(Order(order_id="1"))
            db.put(Tally(name="a"))
            assert solotable_async_db().scope.names == {"Shop": "Shop", "Stock": "Stock"}
        """
    )
    project.runpytest_inprocess().assert_outcomes(passed=1)


@pytest.mark.parametrize(
    "models, said",
    [
        ("", "*solotable_db() needs tables: solotable_db(table, ...)*"),
        (
            "solotable_models = shop\n",
            "*solotable_models: 'shop' is not a table; expected package.module:table.*",
        ),
        ("solotable_models = shop:Order\n", "*solotable_models: 'shop:Order' is not a table*"),
    ],
)
def test_a_store_without_tables_is_explained(project: pytest.Pytester, models: str, said: str) -> None:
    project.makeini(INI + models)
    project.makepyfile(test_none="def test_none(solotable_db): solotable_db()")
    done = project.runpytest_inprocess()
    assert done.ret != pytest.ExitCode.OK
    done.stdout.fnmatch_lines([said])


@pytest.mark.parametrize(
    "url, said",
    [
        ("postgres://x", "*--solotable-url: 'postgres://x' is not a database URL; write sqlite:///*"),
        ("aws://Shop", "*--solotable-url: 'aws://Shop' names the table 'Shop'; leave it out*"),
    ],
)
def test_a_wrong_url_is_refused_at_the_start(project: pytest.Pytester, url: str, said: str) -> None:
    project.makepyfile(test_none="def test_none(): pass")
    done = project.runpytest_inprocess("--solotable-url", url)
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines([said])


def test_the_options_are_in_the_help(project: pytest.Pytester) -> None:
    done = project.runpytest_inprocess("--help")
    done.stdout.fnmatch_lines(
        ["*--solotable-url=URL*", "*--solotable-cost*", "*solotable_models (linelist):*"]
    )
    fixtures = project.runpytest_inprocess("--fixtures", "-q")
    for name in ("clock", "db", "async_db", "faults", "cost", "journal", "endpoint"):
        fixtures.stdout.fnmatch_lines([f"solotable_{name} -- *"])
