"""Acquiring and leases: all limits or none, burst and debt, cascade, what is given back, what it costs."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from solotable.errors import DataError
from solotable.systems.limiter import LeaseExpired, Limit, NeverSatisfiable, NoLimits, RateLimitExceeded

from .either import either
from .ground import Place

RPM, TPM = Limit.per_minute("rpm", 10), Limit.per_minute("tpm", 1000, burst=2000)
#: One unit each, and 0 for everything else.
WRITE = (0.0, 1.0)


def take(ours: Any, entity: str = "u", /, *, times: int = 1, **amounts: float) -> None:
    for _ in range(times):
        with ours.acquire(entity, "gpt-4", amounts):
            pass


def known(place: Place, mode: str, **options: Any) -> Any:
    """Return a limiter that knows its settings already."""
    ours = either(place, mode, limits=[RPM, TPM], **options)
    ours.available("u", "gpt-4")
    place.sent()
    return ours


def test_all_limits_of_a_call_pass_or_none_is_consumed(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=1, tpm=1990)
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, rpm=1, tpm=20)
    assert ours.available("u", "gpt-4") == {"rpm": 9, "tpm": 10}
    statuses = {status.limit.name: status for status in refused.value.statuses}
    assert set(statuses) == {"rpm", "tpm"}
    assert (statuses["rpm"].available, statuses["rpm"].exceeded) == (9, False)
    assert (statuses["tpm"].available, statuses["tpm"].exceeded) == (10, True)
    assert refused.value.primary_violation.limit == TPM
    assert refused.value.violations == (statuses["tpm"],)
    assert refused.value.retry_after_seconds == pytest.approx(0.6)
    assert refused.value.retry_after_header == "1"
    assert refused.value.as_dict()["limits"][1]["requested"] == 20
    assert "try again in 1 s" in str(refused.value)


def test_a_bucket_begins_full_at_its_burst_and_refills_lazily(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, tpm=2000)
    assert ours.available("u", "gpt-4") == {"rpm": 10, "tpm": 0}
    place.clock.seconds += 30
    assert ours.available("u", "gpt-4")["tpm"] == 500
    place.clock.seconds += 3600
    assert ours.available("u", "gpt-4")["tpm"] == 2000


def test_debt_only_through_adjust(place: Place, mode: str) -> None:
    ours = known(place, mode)
    with ours.acquire("u", "gpt-4", {"tpm": 2000}) as lease:
        with pytest.raises(RateLimitExceeded):
            lease.consume(tpm=1)
        lease.adjust(tpm=500)
        assert lease.consumed == {"tpm": 2500}
    assert ours.available("u", "gpt-4")["tpm"] == -500
    assert ours.time_until("u", "gpt-4", {"tpm": 1}) == pytest.approx(30.06)
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, tpm=1)
    assert refused.value.retry_after_seconds == pytest.approx(30.06)


def test_a_lease_takes_more_gives_back_and_ends(place: Place, mode: str) -> None:
    ours = known(place, mode)
    with ours.acquire("u", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:
        lease.consume(tpm=100)
        lease.adjust(tpm=-50)
        lease.release(tpm=150, rpm=1)
    assert lease.consumed == {"rpm": 0, "tpm": 400}
    assert ours.available("u", "gpt-4") == {"rpm": 10, "tpm": 1600}
    for use in (lease.consume, lease.adjust, lease.release):
        with pytest.raises(LeaseExpired):
            use(tpm=1)
    with pytest.raises(LeaseExpired):
        lease.__enter__()
    assert ours.available("u", "gpt-4") == {"rpm": 10, "tpm": 1600}


def test_no_more_is_given_back_than_was_taken(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=5)
    with ours.acquire("u", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:
        lease.adjust(tpm=100)
        with pytest.raises(DataError, match="taken 600 tpm; it cannot give back more than that"):
            lease.release(tpm=601)
        with pytest.raises(DataError, match="has taken 1 rpm"):
            lease.adjust(rpm=-2)
        lease.release(tpm=600)
    assert lease.consumed == {"rpm": 1, "tpm": 0}
    assert ours.available("u", "gpt-4") == {"rpm": 4, "tpm": 2000}


def test_an_exception_gives_everything_back(place: Place, mode: str) -> None:
    ours = known(place, mode)
    with pytest.raises(KeyboardInterrupt), ours.acquire("u", "gpt-4", {"rpm": 1, "tpm": 500}) as lease:  # noqa: PT012 - the block is the test
        lease.consume(tpm=100)
        lease.adjust(tpm=9000)
        raise KeyboardInterrupt
    assert ours.available("u", "gpt-4") == {"rpm": 10, "tpm": 2000}
    (bucket,) = place.raw("Bucket")
    assert (bucket["consumed_rpm"], bucket["consumed_tpm"]) == ({"N": "0"}, {"N": "0"})


def test_c1_6_giving_back_to_a_bucket_that_is_gone_makes_no_ghost(place: Place, mode: str) -> None:
    from solotable._protocol.requests import DeleteItem

    ours = known(place, mode)
    with ours.acquire("u", "gpt-4", {"rpm": 1}) as lease:
        (bucket,) = place.raw("Bucket")
        key = {name: bucket[name] for name in ("PK", "SK")}
        place.engine.handle(DeleteItem(table=place.table, key=key))
        lease.release(rpm=1)
    assert place.raw("Bucket") == []
    with ours.acquire("u", "gpt-4", {"rpm": 1}) as lease:
        place.engine.handle(DeleteItem(table=place.table, key=key))
        # As if so many others had been used meanwhile that this one is forgotten.
        lease.grant.taken[0].bucket.forget(0)
        lease.release(rpm=1)
    assert place.raw("Bucket") == []
    with ours.acquire("u", "gpt-4", {"rpm": 1}) as lease:
        place.engine.handle(DeleteItem(table=place.table, key=key))
        lease.adjust(rpm=2)
    (bucket,) = place.raw("Bucket")
    assert ours.available("u", "gpt-4")["rpm"] == 8
    assert {"_type", "expires", "rules", "entity", "used_rpm", "used_tpm"} <= set(bucket)


def test_s1_10_what_was_consumed_is_counted_and_not_derived(place: Place, mode: str) -> None:
    """10M tokens a minute, 100 ms between, 1,000 consumed: a difference of tokens says -15,667."""
    ours = either(place, mode, limits=[Limit.per_minute("tpm", 10_000_000)])
    take(ours, tpm=5_000_000)
    before = ours.available("u", "gpt-4")["tpm"]
    place.clock.seconds += 0.1
    take(ours, tpm=1000)
    after = ours.available("u", "gpt-4")["tpm"]
    assert before - after == -15_666  # and two thirds
    (bucket,) = place.raw("Bucket")
    assert bucket["consumed_tpm"] == {"N": str(5_001_000 * 1000)}


def test_c1_12_a_write_of_one_limit_moves_no_other(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=10, tpm=2000)
    for _ in range(6):
        place.clock.seconds += 1
        take(ours, tpm=1)
    place.clock.seconds += 54
    assert ours.available("u", "gpt-4") == {"rpm": 10, "tpm": 994}


def test_c1_13_more_than_a_limit_ever_holds_is_never_satisfiable(place: Place, mode: str) -> None:
    ours = known(place, mode)
    with pytest.raises(NeverSatisfiable, match="11 rpm are more than the 10 that 'u' ever has"):
        take(ours, rpm=11)
    with pytest.raises(NeverSatisfiable):
        ours.time_until("u", "gpt-4", {"tpm": 2001})
    with ours.acquire("u", "gpt-4", {"rpm": 1}) as lease, pytest.raises(NeverSatisfiable):
        lease.consume(tpm=2001)
    assert ours.available("u", "gpt-4") == {"rpm": 9, "tpm": 2000}


# What it costs ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("count", [1, 2, 10])
def test_an_acquire_costs_one_write_and_no_read_whatever_the_number_of_limits(
    place: Place, mode: str, count: int
) -> None:
    limits = [Limit.per_minute(f"limit{number}", 100) for number in range(count)]
    ours = either(place, mode, limits=limits)
    ours.available("u", "gpt-4")
    place.sent()
    amounts = {limit.name: 1 for limit in limits}
    for _ in range(3):
        take(ours, **amounts)
        assert place.spent() == WRITE


@pytest.mark.parametrize("seconds", [0.0, 1.0])
def test_a_remembered_refusal_ends_after_its_time_if_another_process_gave_back(
    place: Place, mode: str, seconds: float
) -> None:
    """Low finding: within `remember_rejections` a refusal is repeated; after it, the table is asked."""
    limits = [Limit("rpm", 10, 10, 86_400)]
    ours = either(place, mode, limits=limits, remember_rejections=seconds)
    other = either(place, mode, limits=limits)
    with other.acquire("u-1", "r", {"rpm": 10}) as lease:
        with pytest.raises(RateLimitExceeded), ours.acquire("u-1", "r", {"rpm": 1}):
            pass
        lease.release(rpm=10)
    place.clock.seconds += seconds
    if seconds:
        # Until its end it is remembered.
        with pytest.raises(RateLimitExceeded), ours.acquire("u-1", "r", {"rpm": 1}):
            pass
    place.clock.seconds += 0.001
    with ours.acquire("u-1", "r", {"rpm": 1}) as lease:
        assert lease.limited


def test_c1_7_a_refusal_costs_one_write_at_most_and_a_remembered_one_nothing(place: Place, mode: str) -> None:
    ours = known(place, mode)
    other = known(place, mode)
    take(ours, rpm=5)
    place.spent()
    with pytest.raises(RateLimitExceeded):
        take(other, rpm=6)
    # The first write was a guess; whoever fails is charged for it.
    assert place.sent() == ["UpdateItem"]
    with pytest.raises(RateLimitExceeded):
        take(other, rpm=6)
    assert place.sent() == []
    with pytest.raises(RateLimitExceeded):
        take(ours, rpm=6)
    assert place.sent() == []
    place.clock.seconds += 2
    with pytest.raises(RateLimitExceeded):
        take(ours, rpm=6)
    assert place.sent() == ["UpdateItem"]
    place.clock.seconds += 4.1
    take(ours, rpm=6)


def test_an_adjustment_costs_one_write_and_none_costs_none(place: Place, mode: str) -> None:
    ours = known(place, mode)
    with ours.acquire("u", "gpt-4", {"rpm": 1, "tpm": 10}) as lease:
        place.spent()
        lease.adjust(tpm=5)
        lease.release(tpm=5)
    assert place.spent() == (0.0, 0.0)
    with ours.acquire("u", "gpt-4", {"rpm": 1, "tpm": 10}) as lease:
        place.spent()
        lease.adjust(tpm=5)
        lease.release(rpm=1)
    assert place.spent() == WRITE


def test_a_wrong_guess_costs_one_more_write(place: Place, mode: str) -> None:
    ours, other = known(place, mode), known(place, mode)
    take(ours, rpm=1, tpm=100)
    place.sent()
    take(other, rpm=1, tpm=100)
    assert place.sent() == ["UpdateItem", "UpdateItem"]
    take(other, rpm=1, tpm=100)
    take(ours, rpm=1, tpm=100)
    assert place.sent() == ["UpdateItem", "UpdateItem"]
    assert ours.available("u", "gpt-4") == {"rpm": 6, "tpm": 1600}


def test_settings_are_read_once_a_minute(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    take(ours, rpm=1)
    assert place.sent() == ["BatchGetItem", "UpdateItem"]
    take(ours, rpm=1)
    assert place.sent() == ["UpdateItem"]
    place.clock.seconds += 61
    take(ours, rpm=1)
    assert place.sent() == ["BatchGetItem", "UpdateItem"]
    assert (ours.cache_stats().hits, ours.cache_stats().misses) == (1, 2)


def test_available_costs_one_small_read(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=1)
    place.spent()
    ours.available("u", "gpt-4")
    assert place.spent() == (0.5, 0.0)


# Cascade ---------------------------------------------------------------------------------------------------


@pytest.fixture
def family(place: Place, mode: str) -> Any:
    ours = either(place, mode, limits=[RPM])
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.create_entity("v", parent="org", cascade=True)
    ours.create_entity("w", parent="org")
    ours.set_limits([Limit.per_minute("rpm", 15)], entity="org")
    for each in ("u", "v", "w"):
        ours.available(each, "gpt-4")
    place.sent()
    return ours


def test_a_cascade_charges_the_parent_too_for_two_writes(place: Place, family: Any) -> None:
    take(family, rpm=4)
    assert place.spent() == (0.0, 2.0)
    take(family, rpm=4)
    assert place.spent() == (0.0, 2.0)
    take(family, "w", rpm=4)
    assert place.spent() == WRITE
    assert family.available("w", "gpt-4") == {"rpm": 6}
    assert family.available("org", "gpt-4") == {"rpm": 7}


def test_a_parent_that_refuses_leaves_the_child_as_it_was(place: Place, family: Any) -> None:
    take(family, "v", rpm=9)
    with pytest.raises(RateLimitExceeded) as refused:
        take(family, "u", rpm=7)
    assert refused.value.primary_violation.entity == "org"
    assert {status.entity for status in refused.value.statuses} == {"u", "org"}
    assert family.available("u", "gpt-4") == {"rpm": 6}  # the fewer of its own 10 and the parent's 6
    place.sent()
    with pytest.raises(RateLimitExceeded):
        take(family, "u", rpm=7)
    assert place.sent() == []
    take(family, "u", rpm=6)
    (own,) = [item for item in place.raw("Bucket") if item["entity"]["S"] == "u"]
    assert own["consumed_rpm"] == {"N": "6000"}


def test_c1_14_available_is_the_minimum_of_child_and_parent(place: Place, family: Any) -> None:
    take(family, "v", rpm=9)
    assert family.available("u", "gpt-4") == {"rpm": 6}
    assert family.available("w", "gpt-4") == {"rpm": 10}
    assert family.time_until("u", "gpt-4", {"rpm": 7}) == pytest.approx(4.0)


def test_an_exception_gives_back_to_the_parent_too(place: Place, family: Any) -> None:
    with pytest.raises(ZeroDivisionError), family.acquire("u", "gpt-4", {"rpm": 4}) as lease:  # noqa: PT012 - the block is the test
        lease.consume(rpm=2)
        raise ZeroDivisionError
    assert family.available("org", "gpt-4") == {"rpm": 15}
    with family.acquire("u", "gpt-4", {"rpm": 4}) as lease:
        lease.adjust(rpm=1)
    assert family.available("org", "gpt-4") == {"rpm": 10}
    assert family.available("u", "gpt-4") == {"rpm": 5}


# Limits ----------------------------------------------------------------------------------------------------


def test_c1_14_limits_of_a_call_hold_though_the_bucket_has_others(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=1, tpm=1)
    with ours.acquire("u", "gpt-4", {"rpm": 1}, limits=[Limit.per_minute("rpm", 3)]):
        pass
    with (
        pytest.raises(RateLimitExceeded),
        ours.acquire("u", "gpt-4", {"rpm": 3}, limits=[Limit.per_minute("rpm", 3)]),
    ):
        pass
    with (
        pytest.raises(NeverSatisfiable),
        ours.acquire("u", "gpt-4", {"rpm": 4}, limits=[Limit.per_minute("rpm", 3)]),
    ):
        pass


def test_new_limits_keep_the_tokens_that_there_are(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=8)
    ours.set_limits([Limit.per_minute("rpm", 100), TPM], entity="u", resource="gpt-4")
    assert ours.available("u", "gpt-4") == {"rpm": 2, "tpm": 2000}
    place.clock.seconds += 6
    assert ours.available("u", "gpt-4")["rpm"] == 12
    ours.set_limits([Limit.per_minute("rpm", 5)], entity="u", resource="gpt-4")
    assert ours.available("u", "gpt-4") == {"rpm": 5}
    (bucket,) = place.raw("Bucket")
    assert "used_tpm" not in bucket


def test_another_process_hears_of_new_limits_from_the_bucket_itself(place: Place, mode: str) -> None:
    ours, other = known(place, mode), known(place, mode)
    take(ours, rpm=1)
    take(other, rpm=1)
    ours.set_limits([Limit.per_minute("rpm", 2)], entity="u", resource="gpt-4")
    # The other one's settings are good for a minute, but the bucket is stored under newer ones.
    with pytest.raises(NeverSatisfiable):
        take(other, rpm=3)
    ours.delete_limits(entity="u", resource="gpt-4")
    take(other, rpm=1)
    assert other.effective_limits("u", "gpt-4").limits is None


def test_without_any_limits_nothing_is_admitted(place: Place, mode: str) -> None:
    ours = either(place, mode)
    with pytest.raises(NoLimits, match="No limits are set for 'u' and 'gpt-4'"):
        take(ours, rpm=1)


# Bad input -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("entity", "resource"),
    [
        ("a#b", "r"), ("", "r"), ("x" * 257, "r"), ("é", "r"), ("a b", "r"), ("-a", "r"), ("a\n", "r"),
        ("a", "r#1"), ("a", ""), ("a", "1r"), ("a", "r" * 65), ("a", "_default_"), ("а", "r"), ("a", "r\x00"),
        (7, "r"), (None, "r"),
    ],
)  # fmt: skip
def test_names_that_are_none_are_refused_in_one_sentence(
    place: Place, mode: str, entity: Any, resource: Any
) -> None:
    ours = known(place, mode)
    with pytest.raises(DataError, match="name has 1 to"), ours.acquire(entity, resource, {"rpm": 1}):
        pass
    assert place.sent() == []


@pytest.mark.parametrize(
    ("amount", "words"),
    [
        (-1, "below zero"),
        (0.0001, "with at most three decimals"),
        (float("nan"), "with at most three decimals"),
        (float("inf"), "with at most three decimals"),
        (10**13, "at most"),
        pytest.param(10**5000, "at most", id="too-long-to-print"),
        (Decimal("-1e99999999"), "at most"),
        (Decimal("sNaN"), "with at most three decimals"),
        ("1", "is a number of tokens"),
        (True, "is a number of tokens"),
        (None, "is a number of tokens"),
    ],
)
def test_amounts_that_are_none_are_refused_in_one_sentence(
    place: Place, mode: str, amount: Any, words: str
) -> None:
    ours = known(place, mode)
    with pytest.raises(DataError, match=words):
        take(ours, rpm=amount)
    with pytest.raises(DataError, match="Limit 'nope' does not exist here; there are: rpm, tpm"):
        take(ours, nope=1)
    assert place.sent() == []


def test_nothing_is_granted_for_nothing(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, rpm=0)
    take(ours)
    assert place.sent() == []
    with ours.acquire("u", "gpt-4", {}) as lease:
        lease.adjust(tpm=3)
    assert ours.available("u", "gpt-4")["tpm"] == 1997


def test_fractions_of_tokens_are_exact(place: Place, mode: str) -> None:
    ours = known(place, mode)
    take(ours, times=10, rpm=0.1)
    (bucket,) = place.raw("Bucket")
    assert bucket["consumed_rpm"] == {"N": "1000"}
    assert ours.available("u", "gpt-4")["rpm"] == 9


@pytest.mark.parametrize(
    "given",
    [
        {"name": "x", "capacity": -1, "refill": 1, "period_seconds": 1},
        {"name": "x", "capacity": 1, "refill": -1, "period_seconds": 1},
        {"name": "x", "capacity": 1, "refill": 0, "period_seconds": 1},
        {"name": "x", "capacity": 0, "refill": 0, "period_seconds": 1, "soft": True},
        {"name": "x", "capacity": 1, "refill": 1, "period_seconds": 0.5},
        {"name": "x", "capacity": 10**13, "refill": 1, "period_seconds": 1},
        {"name": "a#b", "capacity": 1, "refill": 1, "period_seconds": 1},
        {"name": "", "capacity": 1, "refill": 1, "period_seconds": 1},
    ],
)
def test_limits_that_are_none_are_refused(given: Any) -> None:
    with pytest.raises(DataError):
        Limit(**given)


def test_namespaces_do_not_meet(place: Place) -> None:
    from solotable.systems.limiter import Limiter

    ours, theirs = Limiter(place.db, "acme", limits=[RPM]), Limiter(place.db, "zeta", limits=[RPM])
    with ours.acquire("u", "r", {"rpm": 10}):
        assert theirs.available("u", "r") == {"rpm": 10}
    assert {item["namespace"]["S"] for item in place.raw("Bucket")} == {"acme"}


def test_is_available(place: Place, mode: str) -> None:
    assert known(place, mode).ping() is True
