"""The router: where reads and writes go, before, during and after a switch; blocking and awaited."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import ANY, flow
from solotable._protocol.requests import ConditionCheck, GetItem, PutItem, Request, TransactWriteItems
from solotable.errors import (
    AlreadyExists,
    ConditionFailed,
    CursorRejected,
    DataError,
    NotFound,
    OutcomeUnknown,
    TransportError,
    WritesPaused,
)
from solotable.migrations.router import StoreSide
from tests.migrations.stored_items import stored_items

from .conftest import Shop
from .shop import Order, User, announce, change, close, flip, open_side


def names(shop: Shop) -> tuple[set[str], set[str]]:
    """Return the names of the users on each side."""
    old = {item["name"]["S"] for item in stored_items(shop.old, "Users")}
    new = {item["name"]["S"] for item in stored_items(shop.new, "Shop") if "name" in item}
    return old, new


def switch(shop: Shop) -> None:
    announce(shop.migration)
    close(shop.migration)
    flip(shop.migration)


def test_writes_go_to_the_source_until_they_are_switched_and_then_to_the_target(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1", name="before"))
    switch(one)
    one.clock.seconds += 1
    router.put(User(user_id="2", name="after"))
    assert names(one) == ({"before"}, {"after"})


def test_without_a_record_the_source_serves_everything(one: Shop) -> None:
    one.migration.name = "unknown"
    router = one.router()
    router.put(User(user_id="1", name="Zoe"))
    assert router.require(User, user_id="1", consistent=True).name == "Zoe"
    assert names(one) == ({"Zoe"}, set())


def test_the_record_is_read_at_most_once_in_the_time_of_a_lease(one: Shop) -> None:
    router = one.router()
    one.new_spy.sent.clear()
    for number in range(50):
        router.put(Order(user_id="1", number=str(number)))
        router.get(User, user_id="1")
    assert len(one.new_spy.of(GetItem)) == 1
    one.clock.seconds += 0.7
    router.get(User, user_id="1")
    router.get(User, user_id="1")
    assert len(one.new_spy.of(GetItem)) == 2


def test_a_router_whose_lease_has_ended_does_not_write_before_it_has_read_the_record(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1", name="before"))
    one.clock.seconds += 1.5

    def unreachable(request: Request[Any]) -> None:
        raise TransportError("no route", retryable=True)

    one.new_spy.before = unreachable
    one.old_spy.sent.clear()
    with pytest.raises(TransportError):
        router.put(User(user_id="2", name="lost"))
    assert one.old_spy.sent == []
    # A read that may lag goes on with the route that it knows.
    assert router.require(User, user_id="1").name == "before"
    with pytest.raises(TransportError):
        router.get(User, user_id="1", consistent=True)


def test_during_a_switch_every_write_carries_a_check_of_the_fence(one: Shop) -> None:
    router = one.router()
    announce(one.migration)
    router.create(User(user_id="1", name="Zoe"))
    router.update(User, user_id="1", add={"visits": 2})
    router.modify(User, lambda user: user.model_copy(update={"name": "Zoë"}), user_id="1")
    with router.transaction() as tx:
        tx.put(Order(user_id="1", number="1", total=5))
        tx.put(Order(user_id="1", number="2", total=6))
    router.delete(Order, user_id="1", number="2")
    sent = one.old_spy.of(TransactWriteItems)
    assert len(sent) == 5
    assert all(any(isinstance(each, ConditionCheck) for each in request.actions) for request in sent)
    assert one.old_spy.of(PutItem) == []
    found = router.require(User, user_id="1", consistent=True)
    assert (found.name, found.visits, found.version) == ("Zoë", 2, 3)
    assert router.get(Order, user_id="1", number="2", consistent=True) is None


def test_a_write_that_meets_the_fence_waits_and_goes_to_the_new_side(one: Shop) -> None:
    router = one.router()
    router.get(User, user_id="1")
    announce(one.migration)
    close(one.migration)
    one.clock.seconds += 1

    def sleep(seconds: float) -> None:
        one.clock.seconds += 0.25
        one.new_spy.sleep = lambda _: None
        flip(one.migration)

    one.new_spy.sleep = sleep
    stored = router.put(User(user_id="1", name="Zoe"))
    assert stored.version == 1
    assert names(one) == (set(), {"Zoe"})
    assert list(router.status().pauses.seconds) == [0.25]


def test_a_write_that_met_a_fence_of_an_undone_switch_goes_to_the_old_side(one: Shop) -> None:
    router = one.router()
    announce(one.migration)
    close(one.migration)

    def sleep(seconds: float) -> None:
        one.new_spy.sleep = lambda _: None
        change(one.migration, state="Verified")

    one.new_spy.sleep = sleep
    router.put(User(user_id="1", name="Zoe"))
    assert names(one) == ({"Zoe"}, set())


def test_a_write_waits_a_bounded_time_and_then_says_that_nothing_was_written(one: Shop) -> None:
    router = one.router(wait_seconds=5.0)
    announce(one.migration)
    close(one.migration)

    def sleep(seconds: float) -> None:
        one.clock.seconds += 1

    one.new_spy.sleep = sleep
    with pytest.raises(WritesPaused, match="nothing was written") as raised:
        router.put(User(user_id="1", name="Zoe"))
    assert 5 < raised.value.seconds < 7
    assert names(one) == (set(), set())


def test_a_modify_that_meets_the_fence_reads_again_on_the_new_side(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1", name="old", visits=1))
    one.new.put(User(user_id="1", name="old", visits=1))
    announce(one.migration)
    close(one.migration)
    one.clock.seconds += 1
    seen = []

    def sleep(seconds: float) -> None:
        one.new_spy.sleep = lambda _: None
        one.new.update(User, user_id="1", set={"visits": 10}, version=ANY)
        flip(one.migration)

    def visit(user: User) -> User:
        seen.append(user.visits)
        return user.model_copy(update={"visits": user.visits + 1})

    one.new_spy.sleep = sleep
    assert router.modify(User, visit, user_id="1").visits == 11
    assert seen == [1, 10]


def test_errors_of_guarded_writes_are_those_of_plain_ones(one: Shop) -> None:
    router = one.router()
    router.create(User(user_id="1", name="Zoe"))
    announce(one.migration)
    one.clock.seconds += 1
    with pytest.raises(AlreadyExists):
        router.create(User(user_id="1", name="again"))
    with pytest.raises(ConditionFailed):
        router.put(User(user_id="1", name="outdated", version=7))
    with pytest.raises(NotFound):
        router.update(User, user_id="2", add={"visits": 1})
    assert router.delete(User, user_id="3") is None
    deleted = router.delete(User, user_id="1")
    assert deleted is not None
    assert deleted.name == "Zoe"


def test_errors_of_guarded_writes_to_a_store_are_those_of_plain_ones(one: Shop) -> None:
    router = one.router()
    change(one.migration, writes="target", flips=1)
    router.create(User(user_id="1", name="Zoe"))
    announce(one.migration)
    open_side(one.migration, "target")
    one.clock.seconds += 1
    with pytest.raises(AlreadyExists):
        router.create(User(user_id="1", name="again"))
    with pytest.raises(ConditionFailed):
        router.put(User(user_id="1", name="outdated", version=7))
    with pytest.raises(NotFound):
        router.update(User, user_id="2", add={"visits": 1}, version=ANY)
    changed = router.update(User, user_id="1", add={"visits": 3}, set={"name": "Zoë"}, version=ANY)
    assert (changed.visits, changed.name, changed.version) == (3, "Zoë", 2)
    assert router.delete(User, user_id="3", version=ANY) is None
    deleted = router.delete(User, user_id="1", version=2)
    assert deleted is not None
    assert deleted.visits == 3


def test_a_late_write_is_not_acknowledged(one: Shop) -> None:
    router = one.router()
    router.get(User, user_id="1")

    def pause(request: Request[Any]) -> None:
        if isinstance(request, PutItem):
            # The process stops here, between its check of the lease and the request.
            one.old_spy.before = None
            switch(one)
            one.clock.seconds += 60

    one.old_spy.before = pause
    with pytest.raises(OutcomeUnknown, match="after the lease"):
        router.put(User(user_id="1", name="late"))
    assert router.put(User(user_id="2", name="Zoe")).version == 1
    assert names(one)[1] == {"Zoe"}


def test_a_slow_write_is_acknowledged_if_its_side_stayed_open(one: Shop) -> None:
    router = one.router()
    router.get(User, user_id="1")

    def pause(request: Request[Any]) -> None:
        if isinstance(request, PutItem):
            one.clock.seconds += 60
            announce(one.migration)

    one.old_spy.before = pause
    assert router.put(User(user_id="1", name="slow")).version == 1


def test_a_router_that_checks_every_write_never_writes_late(one: Shop) -> None:
    router = one.router(always_check=True)
    router.get(User, user_id="1")

    def pause(request: Request[Any]) -> None:
        if isinstance(request, TransactWriteItems):
            one.old_spy.before = None
            switch(one)

    one.old_spy.before = pause
    assert router.put(User(user_id="1", name="Zoe")).version == 1
    assert names(one) == (set(), {"Zoe"})


def test_a_consistent_read_that_overlaps_a_switch_is_read_again_on_the_new_side(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1", name="before"))
    announce(one.migration)
    one.clock.seconds += 1

    def during(request: Request[Any]) -> None:
        if isinstance(request, GetItem):
            one.old_spy.before = None
            close(one.migration)
            flip(one.migration)
            one.new.put(User(user_id="1", name="after"))

    one.old_spy.before = during
    assert router.require(User, user_id="1", consistent=True).name == "after"


def test_reads_follow_the_share_and_consistent_reads_the_writes(one: Shop) -> None:
    router = one.router()
    router.put(User(user_id="1", name="on the source"))
    one.new.put(User(user_id="1", name="on the target"))
    change(one.migration, reads_percent=100)
    one.clock.seconds += 1
    assert router.require(User, user_id="1").name == "on the target"
    assert router.require(User, user_id="1", consistent=True).name == "on the source"
    change(one.migration, reads_percent=100, reads_by_entity={"User": 0})
    one.clock.seconds += 1
    assert router.require(User, user_id="1").name == "on the source"


def test_a_cursor_stays_on_the_side_that_served_its_page(one: Shop) -> None:
    router = one.router()
    for number in range(5):
        router.put(Order(user_id="1", number=str(number), total=1))
        one.new.put(Order(user_id="1", number=str(number), total=2))
    query = Order.key.query(user_id="1")
    first = router.page(query, limit=2)
    change(one.migration, reads_percent=100)
    one.clock.seconds += 1
    second = router.page(query, limit=2, cursor=first.cursor)
    assert [order.total for order in (*first, *second)] == [1, 1, 1, 1]
    assert [order.number for order in second] == ["2", "3"]
    new = router.page(query, limit=2)
    assert [order.total for order in router.page(query, limit=2, cursor=new.cursor)] == [2, 2]
    assert [order.total for order in router.query(query, limit=2)] == [2] * 5


def test_a_cursor_that_its_side_cannot_serve_is_rejected_with_a_reason(one: Shop) -> None:
    router = one.router()
    for number in range(3):
        router.put(Order(user_id="1", number=str(number)))
    query = Order.key.query(user_id="1")
    consistent = router.page(query.consistent(), limit=1)
    any_page = router.page(query, limit=1)
    switch(one)
    one.clock.seconds += 1
    with pytest.raises(CursorRejected, match="moved to the target"):
        router.page(query.consistent(), limit=1, cursor=consistent.cursor)
    assert len(router.page(query, limit=1, cursor=any_page.cursor)) == 1
    change(one.migration, state="Completed")
    one.clock.seconds += 1
    with pytest.raises(CursorRejected, match="migration is complete"):
        router.page(query, limit=1, cursor=any_page.cursor)


def test_only_the_tenants_that_move_are_routed(one: Shop) -> None:
    # The shop's entities have no tenant, so both adapters use the scope of all.
    router = one.router(new=lambda _: StoreSide(one.new.scope), tenants={"acme"})
    switch(one)
    router.tenant("zoe").put(User(user_id="1", name="stays"))
    router.tenant("acme").put(User(user_id="1", name="moves"))
    assert names(one) == ({"stays"}, {"moves"})
    assert router.tenant("zoe").require(User, user_id="1").name == "stays"


def test_a_read_operation_may_not_write(one: Shop) -> None:
    router = one.router()
    with pytest.raises(DataError, match="use write"):
        router.read(lambda side: side.put(User(user_id="1")))
    assert names(one) == (set(), set())


def test_a_transaction_without_room_for_the_check_waits_for_the_end_of_the_switch(one: Shop) -> None:
    router = one.router()
    announce(one.migration)

    def sleep(seconds: float) -> None:
        one.new_spy.sleep = lambda _: None
        close(one.migration)
        flip(one.migration)

    one.new_spy.sleep = sleep
    with router.transaction() as tx:
        for number in range(99):
            tx.put(Order(user_id="1", number=f"{number:03}"))
    assert one.old_spy.of(TransactWriteItems) == []
    assert len(list(router.query(Order.key.query(user_id="1").consistent()))) == 99


def test_a_batch_carries_the_check_and_starts_again_on_the_new_side(one: Shop) -> None:
    router = one.router()
    change(one.migration, writes="target", flips=1)
    open_side(one.migration, "target")
    announce(one.migration)

    def write(scope: flow.Scope) -> flow.Flow[int]:
        batch = flow.Batch(scope)
        for number in range(30):
            batch.put(Order(user_id="1", number=f"{number:03}"))
        return (yield from batch.write())

    assert router.write(lambda side: write(side._scope)) == 30
    assert all(
        any(isinstance(each, ConditionCheck) for each in request.actions)
        for request in one.new_spy.of(TransactWriteItems)
    )
    assert len(one.new_spy.of(TransactWriteItems)) >= 1
    assert len([item for item in stored_items(one.new, "Shop") if "number" in item]) == 30
