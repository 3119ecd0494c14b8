"""Subscriptions: create, list, get, delete and restore them; the filters that they may have."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from solotable.errors import NotFound
from solotable.systems.portal.errors import TooMany
from solotable.systems.portal.services import subscriptions as service
from solotable.systems.portal.services.drafts import SubscriptionDraft
from solotable.systems.portal.services.subscriptions import forget_user
from solotable.systems.portal.tables import subscriptions

from .studio import BEN, VIC, Studio


def test_s3_17_a_subscription_has_its_keys_and_filters(portal: Studio) -> None:
    made = portal.subscribe(VIC, product_suite="Compass", product_concept="A#B", tags=["x", "y", "x"])
    portal.subscribe(VIC)
    full, empty = sorted(
        portal.raw(subscriptions), key=lambda item: "tags" not in item or not item["tags"]["L"]
    )
    assert full["user_id"] == {"S": "vic"}
    assert full["subscription_id"] == {"S": made.subscription_id}
    assert full["product_suite"] == {"S": "Compass"}
    assert full["tags"] == {"L": [{"S": "x"}, {"S": "y"}]}
    assert full["created_at"] == {"S": "2035-01-01T00:00:00.000000Z"}
    assert full["GSI1PK"]["S"].startswith("Compass#A%23B#0")
    assert not {"product_suite", "product_concept"} & set(empty)
    assert empty["GSI1PK"]["S"].startswith("*#*#0")


def test_s3_18_subscriptions_are_created_listed_read_and_deleted(portal: Studio) -> None:
    made = [portal.subscribe(VIC, product_suite=f"S{number}") for number in range(5)]
    other = portal.subscribe(BEN)
    portal.sent()
    first = portal.run(portal.subscriptions.list(VIC, limit=3))
    assert portal.sent() == ["Query"]
    rest = portal.run(portal.subscriptions.list(VIC, limit=3, cursor=first.cursor))
    assert sorted([*first, *rest], key=lambda each: each.subscription_id) == made
    assert portal.run(portal.subscriptions.get(VIC, made[0].subscription_id)) == made[0]
    with pytest.raises(NotFound):
        portal.run(portal.subscriptions.get(VIC, other.subscription_id))
    portal.run(portal.subscriptions.delete(VIC, made[0].subscription_id))
    for caller, gone in ((VIC, made[0]), (VIC, other)):
        with pytest.raises(NotFound):
            portal.run(portal.subscriptions.delete(caller, gone.subscription_id))
    assert len(portal.run(portal.subscriptions.list(VIC))) == 4


def test_the_end_of_a_subscription_can_be_undone_for_thirty_days(portal: Studio) -> None:
    made = portal.subscribe(VIC, product_suite="Compass")
    portal.run(portal.subscriptions.delete(VIC, made.subscription_id))
    portal.approved(product_suite="Compass")
    assert portal.announce().notified == 0
    assert portal.run(portal.subscriptions.restore(VIC, made.subscription_id)) == made
    portal.approved(product_suite="Compass")
    assert portal.announce().notified == 1
    portal.run(portal.subscriptions.delete(VIC, made.subscription_id))
    portal.pass_time(days=31)
    with pytest.raises(NotFound):
        portal.run(portal.subscriptions.restore(VIC, made.subscription_id))


@pytest.mark.parametrize(
    "fields",
    [
        {"tags": [f"t{n}" for n in range(1000)]},
        {"tags": [""]},
        {"product_suite": "x" * 101},
        {"product_suite": ""},
        {"user_id": "eve"},
    ],
)
def test_invalid_subscriptions_are_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        SubscriptionDraft(**fields)


def test_c3_11_a_star_is_the_same_as_no_product(portal: Studio) -> None:
    one = portal.subscribe(VIC, product_suite="*", product_concept="*")
    assert (one.product_suite, one.product_concept) == (None, None)


def test_a_user_has_a_limited_number_of_subscriptions(
    portal: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "MAX_SUBSCRIPTIONS", 3)
    for _ in range(3):
        portal.subscribe(VIC)
    with pytest.raises(TooMany):
        portal.subscribe(VIC)
    portal.subscribe(BEN)


def test_c3_12_a_user_who_left_hears_of_nothing(portal: Studio) -> None:
    for _ in range(3):
        portal.subscribe(VIC)
    portal.subscribe(BEN)
    assert portal.run(forget_user(portal.db, "vic")) == 3
    portal.approved()
    assert portal.announce().notified == 1
    assert portal.inbox_of(VIC) == []
