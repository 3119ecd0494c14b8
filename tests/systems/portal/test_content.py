"""Content in its table: keys, required and optional fields, index keys, and the optimistic lock."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from solotable.errors import NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.errors import Forbidden, IllegalTransition
from solotable.systems.portal.services.drafts import ContentDraft, ContentPatch
from solotable.systems.portal.tables import TABLES

from .studio import ADA, ANN, BEN, EVA, VIC, Studio


def stored(portal: Studio, content: Content) -> dict[str, Any]:
    (item,) = [item for item in portal.raw() if item["content_id"] == {"S": content.content_id}]
    return {name: next(iter(value.values())) for name, value in item.items()}


def test_s3_1_four_tables_have_the_keys_of_the_design() -> None:
    keys = {table.name: table.key_names for table in TABLES}
    assert keys == {
        "content_registry": ("content_id",),
        "notifications": ("user_id", "created_at#notification_id"),
        "subscriptions": ("user_id", "subscription_id"),
        "events": ("date_bucket", "ts#event_id"),
    }


def test_s3_2_content_is_read_by_its_id_with_one_get(portal: Studio) -> None:
    made = portal.draft()
    portal.sent()
    assert portal.run(portal.contents.get(ANN, made.content_id)) == made
    assert portal.sent() == ["GetItem"]
    with pytest.raises(NotFound):
        portal.run(portal.contents.get(ANN, "none"))


@pytest.mark.parametrize("status", ["draft", "Archived", "", "Approved#00"])
def test_s3_3_another_status_is_rejected(status: str) -> None:
    with pytest.raises(ValidationError, match="status"):
        Content(title="t", owner_user_id="ann", status=status)  # type: ignore[arg-type]


def test_s3_3_content_has_the_required_attributes(portal: Studio) -> None:
    item = stored(portal, portal.draft(summary="How we price", tags=["pricing"]))
    assert item["status"] == "Draft"
    assert item["title"] == "Pricing 101"
    assert item["summary"] == "How we price"
    assert item["owner_user_id"] == "ann"
    assert item["tags"] == [{"S": "pricing"}]
    assert item["version"] == "1.0"
    assert item["last_updated"] == "2035-01-01T00:00:00.000000Z"
    with pytest.raises(ValidationError):
        ContentDraft()  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        ContentDraft(title="")


def test_s3_4_content_is_valid_without_optional_attributes(portal: Studio) -> None:
    item = stored(portal, portal.draft())
    optional = {"product_suite", "product_concept", "audience_role", "lifecycle_stage"}
    optional |= {"review_due_date", "effective_date", "expiry_date", "expiry_policy"}
    assert not optional & set(item)


def test_s3_5_another_expiry_policy_is_rejected() -> None:
    assert ContentDraft(title="t", expiry_policy="soft_expire").expiry_policy == "soft_expire"
    with pytest.raises(ValidationError):
        ContentDraft(title="t", expiry_policy="never")  # type: ignore[arg-type]


def test_s3_9_an_update_moves_content_in_every_index(portal: Studio) -> None:
    made = portal.draft(product_suite="Compass", product_concept="Billing")
    portal.pass_time(hours=1)
    patch = ContentPatch(title="Pricing 102", product_suite="Atlas")
    portal.run(portal.contents.update(ANN, made.content_id, patch))
    item = stored(portal, made)
    assert item["GSI1SK"] == f"Draft#2035-01-01T01:00:00.000000Z#{made.content_id}"
    assert item["GSI2PK"] == "Atlas#Billing"
    assert item["GSI2SK"] == f"2035-01-01T01:00:00.000000Z#{made.content_id}"
    portal.run(portal.contents.delete(ADA, made.content_id))
    assert portal.raw() == []


def test_s3_10_index_keys_are_attributes_of_the_item(portal: Studio) -> None:
    made = portal.draft(product_suite="Compass", product_concept="Billing")
    item = stored(portal, made)
    time = "2035-01-01T00:00:00.000000Z"
    assert item["GSI1PK"].startswith("Draft#0")
    assert item["GSI1SK"] == f"Draft#{time}#{made.content_id}"
    assert item["GSI2PK"] == "Compass#Billing"
    assert item["GSI2SK"] == f"{time}#{made.content_id}"


def test_c3_2_index_keys_follow_every_write(portal: Studio) -> None:
    made = portal.approved(product_suite="Compass", product_concept="Billing")
    portal.pass_time(minutes=5)
    portal.run(portal.contents.update(EVA, made.content_id, ContentPatch(title="Renamed")))
    portal.pass_time(minutes=5)
    portal.run(portal.contents.transfer(ADA, made.content_id, "ben"))
    portal.pass_time(minutes=5)
    portal.run(portal.lifecycle.deprecate(EVA, made.content_id))
    item = stored(portal, made)
    assert item["GSI1SK"] == f"Deprecated#2035-01-01T00:15:00.000000Z#{made.content_id}"
    assert item["GSI2SK"] == item["GSI1SK"].removeprefix("Deprecated#")
    assert list(portal.run(portal.contents.list(VIC))) == []
    (listed,) = portal.run(portal.contents.list(VIC, status="Deprecated"))
    assert (listed.title, listed.owner_user_id) == ("Renamed", "ben")


@pytest.mark.parametrize("product", [{}, {"product_suite": "Compass"}, {"product_concept": "Billing"}])
def test_c3_3_content_without_a_product_is_not_in_the_index(portal: Studio, product: dict[str, Any]) -> None:
    made = portal.approved(**product)
    assert "GSI2PK" not in stored(portal, made)
    (listed,) = portal.run(portal.contents.list(VIC))
    assert listed.content_id == made.content_id
    patch = ContentPatch(product_suite="Compass", product_concept="Billing")
    portal.run(portal.contents.update(EVA, made.content_id, patch))
    assert stored(portal, made)["GSI2PK"] == "Compass#Billing"
    portal.run(portal.contents.update(EVA, made.content_id, ContentPatch(product_concept=None)))
    assert "GSI2PK" not in stored(portal, made)


def test_c3_4_a_delimiter_in_a_product_name_mixes_no_products(portal: Studio) -> None:
    one = portal.approved(product_suite="A#B", product_concept="C")
    two = portal.approved(product_suite="A", product_concept="B#C")
    for suite, concept, content in (("A#B", "C", one), ("A", "B#C", two)):
        (found,) = portal.run(portal.contents.list(VIC, product_suite=suite, product_concept=concept))
        assert found.content_id == content.content_id
        (found,) = portal.run(portal.contents.list(VIC, product_suite=suite))
        assert found.content_id == content.content_id
    with pytest.raises(InvalidInput, match="needs a product_suite"):
        portal.run(portal.contents.list(VIC, product_concept="C"))


def test_c3_5_reserved_names_and_names_with_a_delimiter_are_stored(portal: Studio) -> None:
    portal.subscribe(VIC)
    portal.approved()
    portal.announce()
    (notification,) = portal.inbox_of(VIC)
    # One update of last_updated, beside a change of the status; `read` and `type` are reserved.
    portal.run(portal.inbox.mark_read(VIC, notification.notification_id))
    assert portal.inbox_of(VIC)[0].read
    (item,) = [item for item in portal.raw(TABLES[1]) if item["_type"] == {"S": "Notification"}]
    assert item["created_at#notification_id"]["S"].endswith(f"Z#{notification.notification_id}")


def test_c3_8_the_partition_of_a_status_has_shards(portal: Studio) -> None:
    for _ in range(20):
        portal.draft()
    partitions = {item["GSI1PK"]["S"] for item in portal.raw()}
    assert partitions == {f"Draft#0{shard}" for shard in range(4)}


def test_c3_12_an_edit_of_an_older_revision_is_rejected(portal: Studio) -> None:
    made = portal.draft()
    one = portal.run(
        portal.contents.update(ANN, made.content_id, ContentPatch(title="One"), revision=made.revision)
    )
    with pytest.raises(VersionConflict):
        portal.run(
            portal.contents.update(ANN, made.content_id, ContentPatch(title="Two"), revision=made.revision)
        )
    with pytest.raises(VersionConflict):
        portal.run(portal.lifecycle.approve(EVA, made.content_id, revision=made.revision))
    with pytest.raises(VersionConflict):
        portal.run(portal.contents.delete(ADA, made.content_id, revision=made.revision))
    assert portal.run(portal.contents.get(ANN, made.content_id)) == one
    assert one.version == "1.0"


def test_c3_12_content_of_a_user_who_left_stays_until_it_is_transferred(portal: Studio) -> None:
    made = portal.draft(ANN)
    with pytest.raises(Forbidden):
        portal.run(portal.contents.transfer(EVA, made.content_id, "ben"))
    with pytest.raises(InvalidInput, match="owner_user_id"):
        portal.run(portal.contents.transfer(ADA, made.content_id, "b#n"))
    portal.run(portal.contents.transfer(ADA, made.content_id, "ben"))
    changed = portal.run(portal.contents.update(BEN, made.content_id, ContentPatch(title="Mine")))
    assert (changed.title, changed.owner_user_id) == ("Mine", "ben")
    with pytest.raises(NotFound):
        portal.run(portal.contents.get(ANN, made.content_id))


def test_drafts_are_for_their_owner_and_for_approvers(portal: Studio) -> None:
    made = portal.draft(ANN)
    for caller in (ANN, EVA, ADA):
        assert portal.run(portal.contents.get(caller, made.content_id)) == made
    for caller in (VIC, BEN):
        with pytest.raises(NotFound):
            portal.run(portal.contents.get(caller, made.content_id))
        with pytest.raises(NotFound):
            portal.run(portal.contents.update(caller, made.content_id, ContentPatch(title="x")))
    with pytest.raises(Forbidden):
        portal.run(portal.contents.update(EVA, made.content_id, ContentPatch(title="x")))
    with pytest.raises(Forbidden):
        portal.run(portal.contents.create(VIC, ContentDraft(title="x")))
    with pytest.raises(Forbidden):
        portal.run(portal.contents.delete(ANN, made.content_id))


def test_approved_content_is_changed_by_approvers_and_expired_content_by_no_role(portal: Studio) -> None:
    made = portal.approved(ANN)
    with pytest.raises(Forbidden):
        portal.run(portal.contents.update(ANN, made.content_id, ContentPatch(title="x")))
    portal.run(portal.contents.update(EVA, made.content_id, ContentPatch(title="y")))
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    with pytest.raises(IllegalTransition, match="reopen it first"):
        portal.run(portal.contents.update(ADA, made.content_id, ContentPatch(title="z")))


@pytest.mark.parametrize(
    "fields",
    [
        {"title": "x" * 201},
        {"title": "x", "tags": [f"t{n}" for n in range(1000)]},
        {"title": "x", "tags": ["t" * 51]},
        {"title": "x", "product_suite": "*"},
        {"title": "x", "expiry_date": "31.12.2026"},
        {"title": "x", "expiry_date": "2026-12-31T10:00:00"},
        {"title": "x", "expiry_date": 1794873600},
        {"title": "x", "expiry_date": "9999-12-31T23:59:59-14:00"},
        {"title": "x", "owner_user_id": "eve"},
        {"title": "x", "status": "Approved"},
    ],
)
def test_invalid_content_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ContentDraft(**fields)


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ({"product_suite": ""}, "at least 1 character"),
        ({"product_suite": "x" * 101}, "at most 100 characters"),
        ({"title": " "}, "at least 1 character"),
        ({"version": "x" * 51}, "at most 50 characters"),
        ({"summary": "x" * 5001}, "at most 5000 characters"),
        ({"tags": ["x" * 51]}, "at most 50 characters"),
        ({"tags": [str(number) for number in range(51)]}, "at most 50 items"),
    ],
)
def test_a_text_that_is_too_long_or_empty_is_counted_in_characters(fields: dict[str, Any], text: str) -> None:
    with pytest.raises(ValidationError, match=text):
        ContentDraft(**{"title": "x", **fields})


@pytest.mark.parametrize(
    "text",
    [
        "2026-12-31T10:00:00Z",
        "2026-12-31T10:00:00+00:00",
        "2026-12-31T10:00:00.000Z",
        "2026-12-31T11:00:00.000000+01:00",
        "20261231T100000Z",
    ],
)
def test_c3_10_times_in_mixed_forms_are_stored_in_one(portal: Studio, text: str) -> None:
    made = portal.draft(expiry_date=text)
    assert made.expiry_date == datetime(2026, 12, 31, 10, tzinfo=UTC)
    item = stored(portal, made)
    assert item["expiry_date"] == "2026-12-31T10:00:00.000000Z"
    assert item["GSI5SK"] == f"2026-12-31T10:00:00.000000Z#{made.content_id}"


def test_the_revision_of_content_increases_with_every_write(portal: Studio) -> None:
    made = portal.draft()
    portal.pass_time(seconds=1)
    changed = portal.run(portal.contents.update(ANN, made.content_id, ContentPatch(title="x")))
    assert (made.revision, changed.revision) == (1, 2)
    assert made.last_updated is not None
    assert changed.last_updated == made.last_updated + timedelta(seconds=1)
    assert changed.created_at == made.created_at
