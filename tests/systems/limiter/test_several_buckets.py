"""One call, several buckets: limits of child and parent by name, one wait for all, several resources."""

from __future__ import annotations

import random
from typing import Any

import pytest

from solotable.errors import DataError, ServiceError, SolotableError
from solotable.flow import Flow
from solotable.flow.requests import BatchGetItem, UpdateItem
from solotable.systems.limiter import Limit, Limiter, RateLimitExceeded
from solotable.systems.limiter.buckets.acquire import acquire

from .either import either
from .ground import ACME, Place

RPM, TPM = Limit.per_minute("rpm", 10), Limit.per_minute("tpm", 1000)
R = "gpt-4"


def family(place: Place, mode: str, child: list[Limit], parent: list[Limit], **options: Any) -> Any:
    """Return a limiter with `u`, a child of `org`, that knows its settings already."""
    ours = either(place, mode, **options)
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.set_limits(child, entity="u")
    ours.set_limits(parent, entity="org")
    place.clock.seconds += 6  # after this, limits need not be read consistently
    ours.available("u", R)
    place.sent()
    return ours


def take(ours: Any, entity: str = "u", /, **amounts: float) -> Any:
    with ours.acquire(entity, R, amounts) as lease:
        pass
    return lease


def test_l6_a_call_names_limits_of_the_child_or_of_the_parent(place: Place, mode: str) -> None:
    ours = family(place, mode, [RPM], [TPM])
    lease = take(ours, rpm=1, tpm=500)
    assert lease.consumed == {"rpm": 1, "tpm": 500}
    assert ours.available("u", R) == {"rpm": 9, "tpm": 500}
    assert (ours.available("u", R), ours.available("org", R)) == ({"rpm": 9, "tpm": 500}, {"tpm": 500})
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, rpm=1, tpm=600)
    assert refused.value.primary_violation.entity == "org"
    assert ours.available("u", R) == {"rpm": 9, "tpm": 500}
    # A call that names the parent's limit alone does not write the child's bucket.
    place.sent()
    take(ours, tpm=100)
    assert place.sent() == ["UpdateItem"]


def test_l6_a_lease_settles_limits_that_only_the_parent_has(place: Place, mode: str) -> None:
    ours = family(place, mode, [RPM], [TPM])
    with ours.acquire("u", R, {"rpm": 1}) as lease:
        lease.adjust(tpm=300)
        lease.consume(tpm=200)
        lease.release(tpm=100, rpm=1)
    assert lease.consumed == {"rpm": 0, "tpm": 400}
    assert ours.available("u", R) == {"rpm": 10, "tpm": 600}
    with pytest.raises(ZeroDivisionError), ours.acquire("u", R, {"rpm": 1, "tpm": 100}) as lease:  # noqa: PT012
        lease.consume(tpm=200)
        lease.adjust(tpm=50)
        raise ZeroDivisionError
    assert ours.available("u", R) == {"rpm": 10, "tpm": 600}


def test_l6_a_name_that_neither_has_is_rejected_with_both_lists(place: Place, mode: str) -> None:
    ours = family(place, mode, [RPM], [TPM])
    with pytest.raises(DataError, match="Limit 'x' does not exist here: 'u' has rpm; 'org' has tpm"):
        take(ours, x=1)
    with (
        pytest.raises(DataError, match="Limit 'x' does not exist here"),
        ours.acquire("u", R, {"rpm": 1}) as lease,
    ):
        lease.adjust(x=1)
    assert ours.available("u", R) == {"rpm": 10, "tpm": 1000}


def test_l8_time_until_counts_only_limits_that_were_asked_for(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM, TPM])
    with ours.acquire("u", R, {"rpm": 1}) as lease:
        lease.adjust(tpm=5000)
    assert ours.time_until("u", R, {"rpm": 1}) == 0.0
    assert ours.time_until("u", R, {"tpm": 1}) == pytest.approx(240.06)
    take(ours, rpm=1)


def test_l9_a_refusal_has_the_longest_wait_of_child_and_parent(place: Place, mode: str) -> None:
    slow = Limit.custom("rpm", capacity=100, refill=1, period_seconds=60)
    ours = family(place, mode, [RPM], [slow])
    take(ours, rpm=10)
    other = Limiter(place.beside(), ACME)
    with other.acquire("org", R, {"rpm": 90}) as lease:
        lease.adjust(rpm=5)
    place.clock.seconds += 2
    place.sent()
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, rpm=1)
    # The child waits for 4 s, the parent for its debt of 5 and one more.
    assert place.sent() == ["UpdateItem", "BatchGetItem"]
    waits = {each.entity: each.retry_after_seconds for each in refused.value.violations}
    assert waits == {"u": pytest.approx(4), "org": pytest.approx(358)}
    assert refused.value.retry_after_seconds == pytest.approx(358) == ours.time_until("u", R, {"rpm": 1})
    place.sent()
    with pytest.raises(RateLimitExceeded) as again:
        take(ours, rpm=1)
    assert place.sent() == []
    assert again.value.retry_after_seconds == pytest.approx(358)


def test_l9_a_refusal_says_what_is_known_if_the_parent_cannot_be_read(place: Place, mode: str) -> None:
    ours = family(place, mode, [RPM], [Limit.per_minute("rpm", 100)])
    take(ours, rpm=10)
    place.clock.seconds += 2

    def fail() -> None:
        raise ServiceError("AccessDeniedException", "Not allowed")

    place.watched.slip_in(BatchGetItem, fail)
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, rpm=10)
    assert [each.entity for each in refused.value.violations] == ["u"]


@pytest.mark.parametrize("seed", range(6))
def test_l9_at_the_time_of_a_refusal_a_call_is_admitted_and_before_it_is_not(place: Place, seed: int) -> None:
    """Any limits of child and parent, any debts, several resources; nothing else is taken in between."""
    dice = random.Random(seed)

    def some() -> list[Limit]:
        return [
            Limit.custom(
                name,
                capacity=dice.randint(5, 200),
                refill=dice.randint(1, 100),
                period_seconds=dice.choice([1, 7, 60]),
            )
            for name in dice.sample(["a", "b", "c"], dice.randint(1, 3))
        ]

    ours = Limiter(place.db, ACME)
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    own, above = some(), some()
    ours.set_limits(own, entity="u")
    ours.set_limits(above, entity="org")
    most = {limit.name: limit.capacity for limit in (*own, *above)}
    for limit in (*own, *above):
        most[limit.name] = min(most[limit.name], limit.capacity)
    names = sorted(most)
    refusals = 0
    for _ in range(12):
        place.clock.seconds += dice.random() * 3
        for entity, limits in (("u", own), ("org", above)):
            for resource in (R, "other"):
                known = [limit.name for limit in limits]
                with ours.acquire(entity, resource, {}) as lease:
                    lease.adjust({name: dice.randint(0, 60) for name in dice.sample(known, 1)})
        consume = {
            name: dice.randint(1, most[name]) for name in dice.sample(names, dice.randint(1, len(names)))
        }
        also = {"other": {name: dice.randint(1, most[name]) for name in dice.sample(names, 1)}}
        place.clock.seconds += 2
        try:
            with ours.acquire("u", R, consume, also=also):
                pass
            continue
        except RateLimitExceeded as refused:
            refusals += 1
            wait = refused.retry_after_seconds
            assert ours.time_until("u", R, consume, also=also) == pytest.approx(wait, abs=1e-5)
        now = place.clock.seconds
        place.clock.seconds = now + wait - 2e-6
        with pytest.raises(RateLimitExceeded), ours.acquire("u", R, consume, also=also):
            pass
        place.clock.seconds = now + wait + 2e-6
        with ours.acquire("u", R, consume, also=also):
            pass
    assert refusals


def test_several_resources_are_taken_all_or_none(place: Place, mode: str) -> None:
    ours = family(place, mode, [RPM, TPM], [TPM])
    with ours.acquire("u", R, {"rpm": 1, "tpm": 100}, also={"search": {"rpm": 2, "tpm": 300}}) as lease:
        assert (lease.consumed, lease.consumed_of("search")) == (
            {"rpm": 1, "tpm": 100},
            {"rpm": 2, "tpm": 300},
        )
        assert {(each.entity, each.resource) for each in lease.statuses} == {
            ("u", R),
            ("org", R),
            ("u", "search"),
            ("org", "search"),
        }
        lease.adjust(tpm=50, resource="search")
        lease.release(tpm=20)
        lease.release({"rpm": 1}, resource="search")
        lease.consume(rpm=1, resource="search")
    assert ours.available("u", R) == {"rpm": 9, "tpm": 920}
    assert ours.available("u", "search") == {"rpm": 8, "tpm": 650}
    assert ours.available("org", "search") == {"tpm": 650}
    with (
        pytest.raises(RateLimitExceeded) as refused,
        ours.acquire("u", R, {"rpm": 1}, also={"search": {"tpm": 700}}),
    ):
        pass
    assert refused.value.primary_violation.resource == "search"
    assert ours.available("u", R) == {"rpm": 9, "tpm": 920}
    with pytest.raises(ZeroDivisionError), ours.acquire("u", R, {"rpm": 1}, also={"search": {"tpm": 7}}):
        raise ZeroDivisionError
    assert ours.available("u", R)["rpm"] == 9
    assert ours.available("u", "search")["tpm"] == 650


def test_a_refused_resource_gives_back_those_before_it_in_reverse_order(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    for resource in ("a", "b", "c"):
        with ours.acquire("u", resource, {"rpm": 4}):
            pass
    with ours.acquire("u", "c", {"rpm": 6}):
        pass
    place.clock.seconds += 2  # no refusal is remembered
    written: list[str] = []

    def watched(flow: Flow[Any]) -> Flow[Any]:
        reply: Any = None
        error: SolotableError | None = None
        while True:
            request = flow.send(reply) if error is None else flow.throw(error)
            error = None
            if isinstance(request, UpdateItem):
                written.append(request.key["PK"]["S"].split("#")[3])
            try:
                reply = yield request
            except SolotableError as failed:
                error = failed

    wanted = {"a": {"rpm": 1}, "b": {"rpm": 1}, "c": {"rpm": 5}}
    with pytest.raises(RateLimitExceeded):
        place.run(watched(acquire(ours.context, "u", wanted)))
    assert written == ["a", "b", "c", "b", "a"]
    assert ours.available("u", "a") == ours.available("u", "b") == {"rpm": 6}


def test_an_error_at_a_later_resource_gives_the_earlier_ones_back(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    with ours.acquire("u", "a", {"rpm": 1}, also={"b": {"rpm": 1}}):
        pass

    def fail() -> None:
        raise ServiceError("AccessDeniedException", "Not allowed")

    # The first write is that of `a`.
    place.watched.slip_in(UpdateItem, lambda: place.watched.slip_in(UpdateItem, fail))
    with pytest.raises(SolotableError), ours.acquire("u", "a", {"rpm": 1}, also={"b": {"rpm": 1}}):
        pass
    assert ours.available("u", "a") == {"rpm": 9}


def test_resources_that_make_no_sense_are_rejected(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    with pytest.raises(DataError, match="the resource of the call"):
        ours.acquire("u", R, {"rpm": 1}, also={R: {"rpm": 1}})
    many = {f"r{number}": {"rpm": 1} for number in range(10)}
    with (
        pytest.raises(DataError, match="at most 10 resources; got 11"),
        ours.acquire("u", R, {"rpm": 1}, also=many),
    ):
        pass
    with (
        ours.acquire("u", R, {"rpm": 1}) as lease,
        pytest.raises(DataError, match="takes nothing from 'other'"),
    ):
        lease.adjust(rpm=1, resource="other")
    with (
        pytest.raises(DataError, match="A resource name has"),
        ours.acquire("u", R, {"rpm": 1}, also={"#": {"rpm": 1}}),
    ):
        pass
