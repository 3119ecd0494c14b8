"""Exports, restores and drills over DynamoDB's API, with the faults of a network and of AWS."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.requests import Control
from solotable.backup.remote import RemoteTable
from solotable.backup.remote.items import ItemComparison, estimate_units
from solotable.backup.remote.requests import ControlClient
from solotable.engines.sqlite.recovery import targets
from solotable.errors import DataError, OutcomeUnknown, ServiceError, Throttled
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine
from tests.unit.engines.sqlite.transfers.shop import ARN, Shop, open_shop
from tests.waiting import HANG_SECONDS, wait_until

PITR = "PointInTimeRecoverySpecification"


class Remote:
    """A shop behind a faulty network, whose waits move the clock."""

    def __init__(self, shop: Shop) -> None:
        self.shop = shop
        self.faults = Faults()
        self.waits: list[float] = []
        engine = FaultyEngine(shop.engine, self.faults)
        client = ControlClient(engine=engine, sleep=self._sleep, clock=lambda: shop.now)
        self.table = RemoteTable(client=client, name="Shop")

    def _sleep(self, seconds: float) -> None:
        self.waits.append(seconds)
        self.shop.now += seconds

    def fail(self, operation: str, error: Exception, *, applied: bool = False, times: int = 1) -> None:
        """Let an operation fail some times, before or after it is executed."""

        def act(handle: Any, request: Any) -> Any:
            if applied:
                handle(request)
            raise error

        left = [times]
        inner = self.table.client.engine

        class Failing(FaultyEngine):
            def handle(self, request: Any, /) -> Any:
                if isinstance(request, Control) and request.operation == operation and left[0]:
                    left[0] -= 1
                    return act(inner.handle, request)
                return inner.handle(request)

        self.table.client.engine = Failing(inner, self.faults)


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[Remote]:
    with open_shop(tmp_path) as shop:
        shop.put("a", n=1)
        yield Remote(shop)


UNKNOWN = OutcomeUnknown("no reply")
BROKEN = ServiceError("InternalServerError", "broken", status=500)
RATE = Throttled("ThrottlingException", "Rate exceeded")


@pytest.mark.parametrize(
    ("error", "applied"), [(UNKNOWN, True), (UNKNOWN, False), (BROKEN, True), (RATE, False)]
)
def test_a_repeated_export_is_one_export(remote: Remote, error: Exception, applied: bool) -> None:
    remote.fail("ExportTableToPointInTime", error, applied=applied, times=3)
    done = remote.table.export("vault", "daily", label="2026-11-17")
    assert (done.status, done.items, done.failure) == ("COMPLETED", 1, "")
    again = remote.table.export("vault", "daily", label="2026-11-17")
    assert (again.arn, again.token) == (done.arn, done.token)
    assert len(remote.shop.call("ListExports")["ExportSummaries"]) == 1
    assert remote.table.export("vault", "daily", label="2026-11-18").arn != done.arn


def test_an_error_that_stays_is_raised(remote: Remote) -> None:
    remote.fail("ExportTableToPointInTime", RATE, times=100)
    with pytest.raises(Throttled):
        remote.table.export("vault", label="x")
    assert len(remote.waits) >= 7


def test_requests_keep_a_pace(remote: Remote) -> None:
    for _ in range(5):
        remote.table.client.call("ListTables")
    assert sum(remote.waits) == pytest.approx(4 * 0.2)


def test_a_failed_export_has_the_code_of_aws(remote: Remote) -> None:
    done = remote.table.export("absent", label="x")
    assert done.status == "FAILED"
    assert done.failure.startswith("S3NoSuchBucket: The specified bucket does not exist")


def test_incremental_exports_continue_the_last_one(remote: Remote) -> None:
    with pytest.raises(DataError, match="no finished export to continue"):
        remote.table.plan_periods()
    remote.table.export("vault", label="x")
    begin = int(remote.shop.now)
    with pytest.raises(DataError, match="Wait, or pass an earlier --since"):
        remote.table.plan_periods()
    remote.shop.now += 60 * 3_600 + 300
    periods = remote.table.plan_periods()
    # The pace of the requests moves the clock, too.
    assert [round((end - start) / 3_600) for start, end in periods] == [20] * 3
    assert abs(periods[0][0] - begin) <= 1
    for period in periods:
        assert remote.table.export("vault", label="x", period=period).status == "COMPLETED"
    with pytest.raises(DataError, match="The last 0 seconds"):
        remote.table.plan_periods(until=periods[-1][1])


def _settings(shop: Shop) -> None:
    shop.call("TagResource", ResourceArn=ARN, Tags=[{"Key": "owner", "Value": "shop"}])
    stream = {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}
    shop.call("UpdateTable", TableName="Shop", StreamSpecification=stream)
    expiry = {"Enabled": True, "AttributeName": "until"}
    shop.call("UpdateTimeToLive", TableName="Shop", TimeToLiveSpecification=expiry)
    statement = {
        "Effect": "Allow",
        "Principal": {"AWS": "arn:aws:iam::000000000000:root"},
        "Action": "dynamodb:GetItem",
        "Resource": ARN,
    }
    policy = json.dumps({"Version": "2012-10-17", "Statement": [statement]})
    shop.call("PutResourcePolicy", ResourceArn=ARN, Policy=policy)


@pytest.mark.parametrize("fault", [None, UNKNOWN, BROKEN])
def test_a_restore_gives_back_the_settings_that_it_lost(remote: Remote, fault: Exception | None) -> None:
    _settings(remote.shop)
    if fault is not None:
        remote.fail("DescribeTable", fault)
        remote.fail("TagResource", fault, applied=True)
        remote.fail("PutResourcePolicy", fault)
    done = remote.table.restore("Restored")
    assert {each.name: each.outcome for each in done.settings} == {
        "resource policy": "applied",
        "tags": "applied",
        "stream": "applied",
        "time to live": "applied",
        "point-in-time recovery": "applied",
        "auto scaling": "check by hand",
        "alarms": "check by hand",
    }
    assert done.is_equal
    described = remote.shop.call("DescribeTable", TableName="Restored")["Table"]
    assert described["StreamSpecification"]["StreamViewType"] == "NEW_IMAGE"
    policy = remote.shop.call("GetResourcePolicy", ResourceArn=described["TableArn"])["Policy"]
    assert described["TableArn"] in policy
    assert remote.shop.items("Restored") == remote.shop.items("Shop")


def test_settings_that_are_not_given_back_are_reported(remote: Remote) -> None:
    _settings(remote.shop)
    done = remote.table.restore("Restored", with_settings=False)
    assert not done.is_equal
    assert {each.name for each in done.settings if each.outcome == "differs"} == {
        "resource policy",
        "tags",
        "stream",
        "time to live",
        "point-in-time recovery",
    }


def test_a_restore_of_an_unknown_outcome_is_not_guessed(remote: Remote) -> None:
    remote.fail("RestoreTableToPointInTime", UNKNOWN)
    with pytest.raises(OutcomeUnknown):
        remote.table.restore("Restored")
    assert "Restored" not in remote.shop.call("ListTables")["TableNames"]


def test_a_drill_deletes_its_copy(remote: Remote) -> None:
    remote.shop.now += 100
    done = remote.table.drill("Shop-drill", seed=1)
    assert done.differences == []
    assert remote.shop.call("ListTables")["TableNames"] == ["Shop"]


def test_a_drill_compares_items_that_did_not_change(remote: Remote) -> None:
    for number in range(150):
        remote.shop.put(f"n{number}", n=number)
    done = remote.table.drill("Shop-drill", items=1_000)
    assert done.items == ItemComparison(compared=151)
    assert done.differences == []
    assert remote.table.drill("Shop-drill", items=20).items == ItemComparison(compared=20)
    assert remote.shop.call("ListTables")["TableNames"] == ["Shop"]


def test_a_drill_counts_items_that_change_during_it(remote: Remote) -> None:
    """Before the moment, after it, deleted and new: none of them is called wrong."""
    for name in "bcdef":
        remote.shop.put(name, n=1)

    def change(seconds: float, reason: str) -> None:
        if remote.table.waiting is not None:
            remote.table.waiting = None
            remote.shop.put("b", n=2)
            remote.shop.remove("c")
            remote.shop.put("new", n=1)

    remote.table.waiting = change
    done = remote.table.drill("Shop-drill", items=100)
    assert done.items == ItemComparison(compared=4, undecided=2)
    assert done.differences == []


@pytest.mark.parametrize("damage", ["changed", "missing"])
def test_a_drill_finds_items_that_a_restore_got_wrong(remote: Remote, damage: str) -> None:
    for name in "bc":
        remote.shop.put(name, n=1)
    engine = remote.table.client.engine

    class Wrong(FaultyEngine):
        """Spoils the copy as soon as it is restored."""

        def handle(self, request: Any, /) -> Any:
            reply = engine.handle(request)
            if isinstance(request, Control) and request.operation == "RestoreTableToPointInTime":
                wait_until(lambda: "Shop-drill" in remote.shop.call("ListTables")["TableNames"])
                targets.wait(remote.shop.engine, HANG_SECONDS)
                if damage == "changed":
                    item = {"id": {"S": "b"}, "n": {"N": "2"}}
                    remote.shop.call("PutItem", TableName="Shop-drill", Item=item)
                else:
                    remote.shop.call("DeleteItem", TableName="Shop-drill", Key={"id": {"S": "b"}})
            return reply

    remote.table.client.engine = Wrong(engine, remote.faults)
    done = remote.table.drill("Shop-drill", items=100)
    assert done.items == ItemComparison(compared=3, wrong=1, keys=({"id": {"S": "b"}},))
    assert done.differences == ["items"]
    assert remote.shop.call("ListTables")["TableNames"] == ["Shop"]


def test_the_cost_of_a_drill_is_three_reads_of_each_item() -> None:
    described = {"ItemCount": 500, "TableSizeBytes": 500 * 5_000}
    assert estimate_units(described, 100) == 600
    assert estimate_units(described, 1_000) == 3_000
    assert estimate_units({}, 100) == 300
