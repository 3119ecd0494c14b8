"""Modes, soft limits, denial, reset, top-up, dry run and other parents: what an operator can do."""

from __future__ import annotations

import asyncio
import pickle
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

from solotable._protocol.requests import UpdateItem
from solotable.errors import ConditionFailed, DataError, NotFound
from solotable.jobs.deliver import deliver
from solotable.systems.limiter import (
    EntityDenied,
    Limit,
    Limiter,
    LimitStatus,
    NeverSatisfiable,
    NoLimits,
    RateLimitExceeded,
    Schedule,
    ScheduleWindow,
    TopUpInProgress,
)
from solotable.systems.limiter.admin.audit import audit_sink

from .either import either
from .ground import ACME, Place
from .test_shards import consumed, heat, hot, shards

RPM, TPM = Limit.per_minute("rpm", 10), Limit.per_minute("tpm", 1000)
R = "gpt-4"


def take(ours: Any, entity: str = "u", /, **amounts: float) -> Any:
    with ours.acquire(entity, R, amounts) as lease:
        pass
    return lease


def test_a_denied_entity_is_refused_and_says_since_when(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    take(ours, rpm=1)
    ours.set_mode("u", "deny")
    place.sent()
    with pytest.raises(
        EntityDenied, match=r"'u' is denied on 'gpt-4' since 2035-01-01 00:00:00 UTC"
    ) as denied:
        take(ours, rpm=1)
    assert denied.value.since == datetime(2035, 1, 1, tzinfo=UTC)
    assert "UpdateItem" not in place.sent()
    copy = pickle.loads(pickle.dumps(denied.value))  # noqa: S301 - our own bytes
    assert (str(copy), copy.since) == (str(denied.value), denied.value.since)
    take(ours, "other", rpm=1)
    with pytest.raises(EntityDenied):
        ours.time_until("u", R, {"rpm": 1})
    assert ours.available("u", R) == {"rpm": 9}
    ours.set_mode("u", None)
    take(ours, rpm=1)


def test_a_denial_holds_on_every_resource_and_outlives_limits(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    ours.set_limits([TPM], entity="u", resource=R)
    ours.set_mode("u", "deny")
    ours.set_limits([RPM], entity="u")
    ours.delete_limits(entity="u")
    assert ours.delete_limits(entity="u") is None
    for resource in (R, "other"):
        with pytest.raises(EntityDenied), ours.acquire("u", resource, {"rpm": 1}):
            pass
    assert ours.get_limits(entity="u").mode == "deny"
    ours.set_mode("u", "bypass", resource=R)  # the mode of a resource comes first
    with ours.acquire("u", R, {"rpm": 10_000}) as lease:
        assert not lease.limited
    ours.set_mode("u", None, resource=R)
    ours.set_mode("u", None)
    assert ours.get_limits(entity="u") is None
    take(ours, tpm=1)


def test_a_denial_needs_no_limits_and_is_seen_by_other_processes(place: Place, mode: str) -> None:
    ours = either(place, mode)
    other = Limiter(place.beside(), ACME, limits=[RPM], cache_seconds=60)
    take(other, rpm=1)
    ours.set_mode("u", "deny")
    with pytest.raises(EntityDenied):
        take(ours, rpm=1)
    place.clock.seconds += 61
    with pytest.raises(EntityDenied):
        take(other, rpm=1)


def test_bypass_admits_without_limits_and_without_a_write(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.set_limits([RPM])
    ours.set_mode("u", "bypass")
    take(ours, "org", rpm=10)
    place.sent()
    lease = take(ours, rpm=500)
    lease_names = (lease.limited, lease.consumed, lease.statuses, lease.exceeded, lease.shadow_refusal)
    assert lease_names == (False, {}, [], [], None)
    with ours.acquire("u", R, {"anything": 5}) as lease:
        lease.adjust(rpm=3)
        lease.release(rpm=9)
        lease.consume(rpm=3)
    assert "UpdateItem" not in place.sent()
    assert ours.time_until("u", R, {"rpm": 500}) == 0.0
    assert ours.check("u", R, {"rpm": 500}).admitted


def test_a_denied_parent_denies_its_children_that_charge_it(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.create_entity("v", parent="org")
    ours.set_mode("org", "deny")
    with pytest.raises(EntityDenied) as denied:
        take(ours, rpm=1)
    assert denied.value.entity == "org"
    take(ours, "v", rpm=1)
    ours.set_mode("org", "bypass")
    take(ours, rpm=1)
    assert ours.available("org", R) == {"rpm": 10}


def test_a_limit_of_capacity_0_denies_those_that_name_it(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([RPM, TPM])
    take(ours, rpm=1, tpm=600)
    ours.set_limits([Limit.per_minute("rpm", 0), TPM], entity="u", resource=R)
    with pytest.raises(EntityDenied, match="its limit 'rpm' has capacity 0") as denied:
        take(ours, rpm=1)
    assert denied.value.limit == Limit.per_minute("rpm", 0)
    take(ours, tpm=100)
    assert ours.check("u", R, {"rpm": 1}).refusal.limit.name == "rpm"
    # Its tokens are kept, as those of a removed limit.
    ours.delete_limits(entity="u", resource=R)
    assert ours.available("u", R) == {"rpm": 9, "tpm": 300}
    ours.set_limits([Limit.per_minute("rpm", 0)], entity="u", resource=R)
    with pytest.raises(EntityDenied):
        take(ours, rpm=1)
    assert ours.available("u", R) == {}


def test_shadow_mode_admits_records_and_does_not_charge_what_it_would_refuse(place: Place, mode: str) -> None:
    refusals: list[Any] = []
    ours = either(place, mode, on_shadow_refusal=refusals.append)
    ours.set_limits([RPM, TPM], mode="shadow")
    assert take(ours, rpm=9, tpm=10).shadow_refusal is None
    lease = take(ours, rpm=3, tpm=10)
    assert isinstance(lease.shadow_refusal, RateLimitExceeded)
    assert lease.shadow_refusal.primary_violation.limit == RPM
    assert lease.shadow_refusal.retry_after_seconds == pytest.approx(12)
    assert refusals == [lease.shadow_refusal]
    assert (lease.limited, lease.exceeded, lease.consumed) == (True, [], {"rpm": 3, "tpm": 10})
    assert ours.available("u", R) == {"rpm": 1, "tpm": 980}
    # One that was remembered costs one write, as one that is admitted.
    place.sent()
    take(ours, rpm=3, tpm=10)
    assert place.sent() == ["UpdateItem"]
    assert isinstance(take(ours, rpm=11).shadow_refusal, NeverSatisfiable)
    assert ours.time_until("u", R, {"rpm": 5}) == 0.0
    decision = ours.check("u", R, {"rpm": 5})
    assert decision.admitted
    assert [(each.exceeded, each.enforced) for each in decision.statuses] == [(True, False), (False, False)]
    ours.set_mode(None, "enforce")
    with pytest.raises(RateLimitExceeded):
        take(ours, rpm=5)
    ours.set_limits([Limit.per_minute("rpm", 0)], mode="shadow")
    assert isinstance(take(ours, rpm=1).shadow_refusal, EntityDenied)


def test_what_a_limit_did_not_give_is_not_given_back_to_it(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([RPM, Limit.per_minute("tpm", 1000, soft=True)])
    take(ours, tpm=900)
    with pytest.raises(ZeroDivisionError), ours.acquire("u", R, {"rpm": 1, "tpm": 500}):
        raise ZeroDivisionError
    assert ours.available("u", R) == {"rpm": 10, "tpm": 100}
    with ours.acquire("u", R, {"rpm": 1, "tpm": 500}) as lease:
        lease.release(tpm=450)
        assert lease.consumed == {"rpm": 1, "tpm": 50}
    assert ours.available("u", R) == {"rpm": 9, "tpm": 100}
    with ours.acquire("u", R, {"tpm": 500}) as lease:
        lease.adjust(tpm=70)  # what is more than the estimate is taken
    assert ours.available("u", R)["tpm"] == 30


def test_a_soft_limit_admits_and_reports(place: Place, mode: str) -> None:
    seen: list[list[LimitStatus]] = []
    ours = either(place, mode, on_soft_limit=seen.append)
    soft = Limit.per_minute("tpm", 1000, soft=True)
    ours.set_limits([RPM, soft])
    assert take(ours, rpm=1, tpm=1000).exceeded == []
    lease = take(ours, rpm=1, tpm=100)
    (status,) = lease.exceeded
    assert (status.limit, status.exceeded, status.enforced, status.requested) == (soft, True, False, 100)
    assert status.retry_after_seconds == pytest.approx(6)
    assert seen == [[status]]
    assert ours.available("u", R) == {"rpm": 8, "tpm": 0}
    with ours.acquire("u", R, {"rpm": 1}) as lease:
        lease.consume(tpm=1)
        lease.consume(tpm=5000)  # more than it ever holds
    assert [each.requested for each in lease.exceeded] == [1, 5000]
    with pytest.raises(RateLimitExceeded) as refused:
        take(ours, rpm=9, tpm=1)
    assert [each.limit.name for each in refused.value.violations] == ["rpm"]


def test_a_callback_that_fails_does_not_fail_the_call(
    place: Place, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(statuses: list[LimitStatus]) -> None:
        raise ZeroDivisionError

    ours = either(place, mode, on_soft_limit=fail, limits=[Limit.per_minute("rpm", 1, soft=True)])
    take(ours, rpm=1)
    assert take(ours, rpm=1).exceeded
    assert "A callback of the limiter failed" in caplog.text


def test_a_callback_may_be_a_coroutine(place: Place) -> None:
    from solotable.systems.limiter import AsyncLimiter

    seen: list[str] = []

    async def note(statuses: list[LimitStatus]) -> None:
        seen.extend(each.limit.name for each in statuses)

    async def fail(statuses: list[LimitStatus]) -> None:
        raise ZeroDivisionError

    async def use(callback: Any) -> None:
        ours = AsyncLimiter(
            place.adb, ACME, limits=[Limit.per_minute("rpm", 1, soft=True)], on_soft_limit=callback
        )
        async with ours.acquire("u", R, {"rpm": 1}):
            pass
        async with ours.acquire("u", R, {"rpm": 1}) as lease:
            assert lease.exceeded
        # The callback has its turn before the loop ends.
        await asyncio.gather(*(each for each in asyncio.all_tasks() if each is not asyncio.current_task()))

    place.wait(use(note))
    assert "rpm" in seen
    place.wait(use(fail))
    with pytest.raises(DataError, match="on_soft_limit of a Limiter is a function"):
        Limiter(place.db, ACME, on_soft_limit=note)


def test_disabled_limits_are_not_charged_and_a_parent_still_is(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.set_limits([RPM, TPM])
    ours.set_limits([Limit.per_minute("rpm", 20)], entity="org")
    ours.set_limits([RPM, TPM], entity="u", mode="disabled")
    with ours.acquire("u", R, {"rpm": 15, "tpm": 9999}) as lease:
        assert [each.entity for each in lease.statuses] == ["org"]
    assert ours.available("org", R) == {"rpm": 5}
    # Without limits of its own, an entity is not limited, whatever the system has.
    ours.set_limits(None, entity="free", mode="disabled")
    assert not take(ours, "free", rpm=10**6, other=1).limited
    assert ours.effective_limits("free", R).mode == "disabled"
    ours.set_mode(None, "disabled")
    assert not take(ours, "else", rpm=10**6).limited
    ours.set_mode(None, None)
    with pytest.raises(NeverSatisfiable):
        take(ours, "else", rpm=10**6)


@pytest.mark.parametrize(
    ("entity", "wanted", "message"),
    [
        ("u", "off", "mode is one of enforce, shadow, disabled, bypass, deny; got 'off'"),
        (None, "deny", "mode 'deny' is for an entity"),
        ("u", "shadow", "A level without limits has nothing to try out"),
    ],
)
def test_a_mode_that_makes_no_sense_is_rejected(
    place: Place, mode: str, entity: str | None, wanted: Any, message: str
) -> None:
    ours = either(place, mode)
    with pytest.raises(DataError, match=message):
        ours.set_mode(entity, wanted)
    with pytest.raises(DataError):
        ours.set_limits(None, entity=entity, mode=wanted)


def test_limits_of_a_call_are_enforced_whatever_the_mode(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([RPM], mode="shadow")
    with pytest.raises(NeverSatisfiable), ours.acquire("u", R, {"x": 2}, limits=[Limit.per_minute("x", 1)]):
        pass
    ours.set_mode("u", "deny")
    with pytest.raises(EntityDenied), ours.acquire("u", R, {"x": 1}, limits=[Limit.per_minute("x", 1)]):
        pass


def test_a_reset_fills_limits_for_every_process(place: Place, mode: str) -> None:
    ours = either(place, mode)
    other = Limiter(place.beside(), ACME)
    ours.set_limits([RPM, TPM])
    with ours.acquire("u", R, {"rpm": 10}) as lease:
        lease.adjust(tpm=99_000)
    with pytest.raises(RateLimitExceeded):
        take(other, rpm=1)
    place.clock.seconds += 1
    ours.reset("u", resource=R)
    assert ours.available("u", R) == {"rpm": 10, "tpm": 1000}
    # The bucket shows the other process that there is something newer.
    place.clock.seconds += 2
    take(other, rpm=3)
    assert ours.available("u", R) == {"rpm": 7, "tpm": 1000}
    take(ours, rpm=1)
    take(other, rpm=1)
    assert ours.available("u", R)["rpm"] == 5
    (bucket,) = place.raw("Bucket")
    assert bucket["consumed_rpm"] == {"N": "15000"}


def test_a_reset_may_name_limits_and_is_of_all_resources_without_one(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([RPM, TPM])
    for resource in (R, "other"):
        with ours.acquire("u", resource, {"rpm": 10, "tpm": 1000}):
            pass
    ours.reset("u", limits=["tpm"])
    for resource in (R, "other"):
        assert ours.available("u", resource) == {"rpm": 0, "tpm": 1000}
        with ours.acquire("u", resource, {"tpm": 400}):
            pass
    ours.reset("u")
    for resource in (R, "other", "never-used"):
        assert ours.available("u", resource) == {"rpm": 10, "tpm": 1000}
    # A reset is made once: limits that are changed and changed back keep their tokens.
    take(ours, rpm=4)
    ours.set_limits([TPM])
    take(ours, tpm=1)
    ours.set_limits([RPM, TPM])
    assert ours.available("u", R) == {"rpm": 6, "tpm": 999}
    with pytest.raises(DataError, match="Name at least one limit"):
        ours.reset("u", limits=[])


def test_a_reset_of_a_limit_that_does_not_exist_is_rejected(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.per_minute("rpm", 10)])
    with pytest.raises(DataError, match=r"Limit 'nope' of 'u' does not exist; it has rpm; name the resource"):
        ours.reset("u", limits=["nope"])
    window = ScheduleWindow("mon-sun 00:00-24:00", [Limit.per_minute("night", 10)])
    ours.set_limits(Schedule([Limit.per_day("tpd", 10)], [window]), resource=R)
    with pytest.raises(DataError, match=r"Limit 'nope' of 'u' for 'gpt-4' does not exist; it has night, rpm"):
        ours.reset("u", resource=R, limits=["tpd", "nope"])
    assert ours.get_limits(entity="u", resource=R) is None
    with pytest.raises(DataError, match="does not exist"):
        ours.reset("u", resource="other", limits=["tpd"])
    wrong: Any = "tpd"
    with pytest.raises(DataError, match="a list; got 'tpd'"):
        ours.reset("u", limits=wrong)
    ours.reset("u", limits=["tpd", "night"])
    # A limit that only calls bring.
    own = [Limit.per_day("own", 10)]
    with ours.acquire("u", R, {"own": 4}, limits=own):
        pass
    ours.reset("u", resource=R, limits=["own"])
    assert ours.available("u", R, limits=own) == {"own": 10}


def test_a_reset_by_a_clock_that_is_behind_counts(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    take(ours, rpm=10)
    place.clock.seconds += 3600
    ours.reset("u", resource=R)
    take(ours, rpm=10)
    place.clock.seconds -= 3590
    ours.reset("u")
    assert ours.available("u", R) == {"rpm": 10}


def test_limits_of_a_call_do_not_repeat_a_reset(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    stale = Limiter(place.beside(), ACME, limits=[RPM], cache_seconds=10**6)
    with stale.acquire("u", R, {"rpm": 1}, limits=[RPM, TPM]):
        pass
    ours.reset("u", resource=R)
    for _ in range(3):
        take(ours, rpm=1)
        with stale.acquire("u", R, {"rpm": 1}, limits=[RPM, TPM]):
            pass
    assert ours.available("u", R) == {"rpm": 4}


def test_a_deleted_entity_leaves_no_debt_to_its_successor(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([TPM])
    ours.create_entity("u", name="The first")
    ours.set_limits([TPM], entity="u", resource=R)
    ours.set_mode("u", "deny", resource="x")
    with ours.acquire("u", R, {"tpm": 1000}) as lease, ours.acquire("u", "other", {"tpm": 1000}) as second:
        lease.adjust(tpm=99_000)
        second.adjust(tpm=99_000)
    ours.delete_entity("u")
    ours.create_entity("u", name="The second")
    for resource in (R, "other", "x"):
        assert ours.available("u", resource) == {"tpm": 1000}
        with ours.acquire("u", resource, {"tpm": 1000}):
            pass


def test_a_top_up_adds_tokens_up_to_the_capacity_and_counts_no_usage(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([RPM, TPM])
    take(ours, rpm=8, tpm=900)
    assert ours.top_up("u", R, {"rpm": 3, "tpm": 5000}) == {"rpm": 5, "tpm": 1000}
    (bucket,) = place.raw("Bucket")
    assert (bucket["consumed_rpm"], bucket["consumed_tpm"]) == ({"N": "8000"}, {"N": "900000"})
    assert ours.top_up("new", R, {"rpm": 3}) == {"rpm": 10, "tpm": 1000}
    for tokens, message in (
        ({"x": 1}, "Limit 'x' does not exist"),
        ({}, "Name at least one"),
        ({"rpm": -1}, "below"),
    ):
        with pytest.raises(DataError, match=message):
            ours.top_up("u", R, tokens)
    with pytest.raises(NoLimits):
        either(place, mode).top_up("u", "r", {"rpm": 1}) if ours.delete_limits() else None


def test_a_top_up_with_a_key_is_made_once(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    take(ours, rpm=10)
    for _ in range(3):
        assert ours.top_up("u", R, {"rpm": 2}, key="ticket-7") == {"rpm": 2}
    with pytest.raises(DataError, match="The key was used for another top-up"):
        ours.top_up("u", R, {"rpm": 3}, key="ticket-7")
    assert ours.top_up("u", R, {"rpm": 2}, key="ticket-8") == {"rpm": 4}


def test_of_concurrent_top_ups_with_one_key_one_adds_the_tokens(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.per_day("rpm", 1000)])
    take(ours, rpm=1000)
    told = []

    def repeat() -> None:
        """Another call, while the first has stored its record and not yet added the tokens."""
        with pytest.raises(TopUpInProgress) as caught:
            Limiter(place.beside(), ACME, limits=[Limit.per_day("rpm", 1000)]).top_up(
                "u", R, {"rpm": 100}, key="k"
            )
        told.append(caught.value)

    place.watched.slip_in(UpdateItem, repeat)
    assert ours.top_up("u", R, {"rpm": 100}, key="k") == {"rpm": 100}
    assert len(told) == 1
    assert ours.top_up("u", R, {"rpm": 100}, key="k") == {"rpm": 100}


def test_a_top_up_whose_process_died_is_made_a_minute_later(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[Limit.per_day("rpm", 1000)])
    take(ours, rpm=1000)

    def die() -> None:
        raise KeyboardInterrupt

    place.watched.slip_in(UpdateItem, die)
    with pytest.raises(KeyboardInterrupt):
        ours.top_up("u", R, {"rpm": 100}, key="k")
    with pytest.raises(TopUpInProgress):
        ours.top_up("u", R, {"rpm": 100}, key="k")
    place.clock.seconds += 61
    assert ours.top_up("u", R, {"rpm": 100}, key="k") == {"rpm": 100}
    assert ours.top_up("u", R, {"rpm": 100}, key="k") == {"rpm": 100}


def test_a_check_takes_nothing_and_decides_as_an_acquire(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.create_entity("org")
    ours.create_entity("u", parent="org", cascade=True)
    ours.set_limits([RPM])
    ours.set_limits([TPM], entity="org")
    place.sent()
    decision = ours.check("u", R, {"rpm": 1, "tpm": 1})
    assert (decision.admitted, decision.retry_after_seconds) == (True, 0.0)
    assert {(each.entity, each.limit.name, each.available) for each in decision.statuses} == {
        ("u", "rpm", 10),
        ("org", "tpm", 1000),
    }
    assert place.raw("Bucket") == []
    take(ours, rpm=10, tpm=1000)
    refused = ours.check("u", R, {"rpm": 1, "tpm": 500})
    assert (refused.admitted, refused.retry_after_seconds) == (False, pytest.approx(30))
    assert isinstance(refused.refusal, RateLimitExceeded)
    assert isinstance(ours.check("u", R, {"tpm": 5000}).refusal, NeverSatisfiable)
    assert len(ours.check("u", R, {"tpm": 5000}).statuses) == 2
    ours.set_mode("u", "deny")
    denied = ours.check("u", R, {"rpm": 1})
    assert isinstance(denied.refusal, EntityDenied)
    assert len(denied.statuses) == 2
    with pytest.raises(DataError, match="Limit 'x' does not exist here"):
        ours.check("v", R, {"x": 1})


def test_an_entity_gets_another_parent(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    for name in ("org", "firm", "u"):
        ours.create_entity(name)
    ours.create_entity("v", parent="org", cascade=True)
    changed = ours.set_parent("u", "org", cascade=True)
    assert (changed.parent_id, changed.cascade, changed.level) == ("org", True, 2)
    take(ours, rpm=4)
    assert ours.available("org", R) == {"rpm": 6}
    assert [each.entity_id for each in ours.children("org")] == ["u", "v"]
    assert ours.set_parent("u", "firm").cascade
    assert [each.entity_id for each in ours.children("org")] == ["v"]
    assert [each.entity_id for each in ours.children("firm")] == ["u"]
    take(ours, rpm=1)
    assert (ours.available("firm", R), ours.available("org", R)) == ({"rpm": 9}, {"rpm": 6})
    assert not ours.set_parent("u", "firm", cascade=False).cascade
    alone = ours.set_parent("u", None)
    assert (alone.parent_id, alone.cascade, alone.level, alone.family) == (None, False, 1, "u")
    ours.create_entity("w", parent="u")
    ours.delete_entity("firm")
    with pytest.raises(ConditionFailed, match="'org' has a child"):
        ours.set_parent("org", "u")
    with pytest.raises(NotFound, match="The parent 'nowhere' does not exist"):
        ours.set_parent("v", "nowhere")
    with pytest.raises(DataError, match="belongs to 'org', so it cannot be a parent"):
        ours.set_parent("w", "v")
    with pytest.raises(DataError, match="its own parent"):
        ours.set_parent("u", "u")
    with pytest.raises(DataError, match="no parent to charge"):
        ours.set_parent("v", None, cascade=True)
    with pytest.raises(NotFound):
        ours.set_parent("nowhere", "org")


def test_every_change_of_an_operator_is_in_the_audit_trail(place: Place) -> None:
    ours = Limiter(place.db.acting(place.base.actor), ACME) if place.base.actor else Limiter(place.db, ACME)
    ours.set_limits([RPM], mode="shadow")
    ours.set_mode("u", "deny")
    ours.set_mode("u", None)
    ours.reset("u")
    ours.reset("u", resource=R, limits=["rpm"])
    ours.top_up("u", R, {"rpm": 2})
    ours.create_entity("org")
    ours.create_entity("u")
    ours.set_parent("u", "org")
    ours.delete_entity("u")
    deliver(place.db, [audit_sink()])
    found = [(each.action, each.title) for each in ours.audit(limit=100)]
    assert sorted(found) == sorted(
        [
            ("limits_set", "system"),
            ("mode_set", "u"),
            ("mode_set", "u"),
            ("limits_reset", "u"),
            ("limits_reset", "u on gpt-4"),
            ("topped_up", "u on gpt-4"),
            ("entity_created", "org"),
            ("entity_created", "u"),
            ("entity_updated", "u"),
            ("limits_reset", "u"),
            ("entity_deleted", "u"),
        ]
    )
    (topped,) = [each for each in ours.audit(entity="u", limit=100) if each.action == "topped_up"]
    assert topped.snapshot["tokens"] == '{"rpm":2}'


def test_a_sharded_bucket_is_reset_topped_up_and_soft_as_one(place: Place) -> None:
    ours = hot(place, limits=[Limit.custom("rpm", capacity=6000, refill=1, period_seconds=60)])
    heat(place, ours)
    assert len(shards(place)) > 1
    left = ours.available("u", "r")["rpm"]
    consumed_before = consumed(place)
    assert ours.top_up("u", "r", {"rpm": 50}) == {"rpm": left + 50}
    ours.reset("u", resource="r")
    assert ours.available("u", "r") == {"rpm": 6000}
    assert ours.top_up("u", "r", {"rpm": 50}) == {"rpm": 6000}
    assert consumed(place) == consumed_before
    with ours.acquire("u", "r", {"rpm": 5000}) as lease:
        lease.adjust(rpm=3000)
    assert ours.available("u", "r") == {"rpm": -2000}
    ours.reset("u")
    assert ours.available("u", "r") == {"rpm": 6000}
    with ours.acquire("u", "r", {"rpm": 5999}):
        pass
    ours.set_limits(
        [Limit.custom("rpm", capacity=6000, refill=1, period_seconds=60, soft=True)], entity="u", resource="r"
    )
    with ours.acquire("u", "r", {"rpm": 5}) as lease:
        pass
    assert [each.limit.name for each in lease.exceeded] == ["rpm"]
    assert ours.available("u", "r") == {"rpm": 1}


KINDS = [
    Limit.fixed_window("x", 10, 60),
    Limit.sliding_window("x", 10, 60),
    Limit.calendar("x", 10, "month"),
    Limit.session("x", 10, 60),
]


@pytest.mark.parametrize("limit", KINDS, ids=lambda each: each.kind)
def test_every_kind_is_reset_topped_up_soft_and_checked(place: Place, mode: str, limit: Limit) -> None:
    ours = either(place, mode)
    ours.set_limits([limit])
    take(ours, x=8)
    assert ours.top_up("u", R, {"x": 3}) == {"x": 5}
    assert ours.top_up("u", R, {"x": 30}) == {"x": 10}
    with ours.acquire("u", R, {"x": 10}) as lease:
        lease.adjust(x=25)
    assert ours.available("u", R) == {"x": -25}
    assert not ours.check("u", R, {"x": 1}).admitted
    ours.reset("u")
    assert ours.available("u", R) == {"x": 10}
    take(ours, x=10)
    ours.set_mode(None, "shadow")
    assert take(ours, x=1).shadow_refusal is not None
    ours.set_limits([replace(limit, soft=True)], mode="enforce")
    (exceeded,) = take(ours, x=2).exceeded
    assert exceeded.retry_after_seconds > 0
    assert ours.available("u", R) == {"x": 0}
    place.clock.seconds += 40 * 86_400
    assert ours.available("u", R) == {"x": 10}
    assert take(ours, x=2).exceeded == []


def test_concurrency_limits_are_soft_shadowed_and_denied_too(place: Place, mode: str) -> None:
    ours = either(place, mode)
    ours.set_limits([Limit.concurrency("slots", 1), Limit.concurrency("jobs", 0)])
    with pytest.raises(EntityDenied):
        take(ours, jobs=1)
    with ours.acquire("u", R, {"slots": 1}):
        assert not ours.check("u", R, {"slots": 1}).admitted
        ours.set_mode(None, "shadow")
        with ours.acquire("u", R, {"slots": 1}) as lease:
            assert isinstance(lease.shadow_refusal, RateLimitExceeded)
        ours.set_mode(None, None)
        assert not ours.check("u", R, {"slots": 1}).admitted
    assert ours.check("u", R, {"slots": 1}).admitted
    with ours.acquire("u", R, {"slots": 1}, also={"other": {"slots": 1}}):
        assert not ours.check("u", "other", {"slots": 1}).admitted
    assert ours.check("u", "other", {"slots": 1}).admitted


def test_a_process_that_has_read_newer_limits_does_not_undo_them(place: Place, mode: str) -> None:
    ours, other = (either(place, mode, cache_seconds=10**6, remember_rejections=0) for _ in range(2))
    ours.set_limits([Limit.per_hour("tpm", 1000)], entity="ann", resource="m")
    with other.acquire("ann", "m", {"tpm": 10}):
        pass
    ours.set_limits([Limit.per_hour("tpm", 20)], entity="ann", resource="m")
    assert other.available("ann", "m")["tpm"] == 20
    with other.acquire("ann", "m", {"tpm": 15}):
        pass
    with pytest.raises(RateLimitExceeded) as refused, other.acquire("ann", "m", {"tpm": 15}):
        pass
    assert refused.value.retry_after_seconds == pytest.approx(1800)


def test_what_is_taken_after_a_reset_stays_taken(place: Place, mode: str) -> None:
    ours, other = (either(place, mode, cache_seconds=10**6, remember_rejections=0) for _ in range(2))
    ours.set_limits([Limit.per_hour("tpm", 1000)])
    with other.acquire("ann", "m", {"tpm": 900}):
        ours.reset("ann", resource="m")
    # The bucket was read, and the limits were not.
    assert other.available("ann", "m")["tpm"] == 1000
    with other.acquire("ann", "m", {"tpm": 100}):
        pass
    assert ours.available("ann", "m")["tpm"] == 900
