"""The routing decision: shares, stickiness, consistent reads."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from solotable.migrations.router.dispatch.routing import BUCKETS, Routing, bucket, other_side

percents = st.floats(0, 100)
texts = st.text(max_size=30)


@given(texts, percents, percents)
def test_a_tenant_that_reads_from_the_target_stays_there_while_the_share_grows(
    tenant: str, one: float, two: float
) -> None:
    low, high = sorted((one, two))
    if Routing(reads_percent=low).read_side("Order", tenant) == "target":
        assert Routing(reads_percent=high).read_side("Order", tenant) == "target"


@given(texts)
def test_no_share_reads_from_the_source_and_the_whole_share_from_the_target(tenant: str) -> None:
    assert Routing(reads_percent=0).read_side("Order", tenant) == "source"
    assert Routing(reads_percent=100).read_side("Order", tenant) == "target"


@given(texts, percents, st.sampled_from(("source", "target")))
def test_consistent_reads_go_to_the_side_that_takes_writes(tenant: str, percent: float, side: str) -> None:
    routing = Routing(reads_percent=percent, writes="target" if side == "target" else "source")
    assert routing.read_side("Order", tenant, consistent=True) == side


@given(texts, percents)
def test_after_the_end_the_target_serves_every_read(tenant: str, percent: float) -> None:
    routing = Routing(state="Completed", writes="target", reads_percent=percent)
    assert routing.read_side("Order", tenant) == "target"
    assert routing.read_side("Order", tenant, consistent=True) == "target"


def test_the_share_of_an_entity_replaces_the_general_one() -> None:
    routing = Routing(reads_percent=0, reads_by_entity={"Order": 100})
    assert routing.read_side("Order", "acme") == "target"
    assert routing.read_side("User", "acme") == "source"
    assert routing.read_side(None, "acme") == "source"


def test_the_buckets_of_tenants_never_change() -> None:
    # Stored nowhere, but a release that hashes otherwise would move tenants between two replicas with a lag.
    assert [bucket(each) for each in ("", "acme", "zoe", "Ünïcode")] == [9876, 9185, 9247, 1544]


def test_ten_per_cent_of_the_tenants_are_about_ten_per_cent() -> None:
    routing = Routing(reads_percent=10)
    moved = sum(routing.read_side("Order", f"tenant-{n}") == "target" for n in range(BUCKETS))
    assert 900 < moved < 1100


def test_each_side_has_another() -> None:
    assert other_side("source") == "target"
    assert other_side("target") == "source"
