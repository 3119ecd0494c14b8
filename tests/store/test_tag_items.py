"""The job that adds type tags: it tags what one entity matches, and changes nothing else."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solotable import Entity, Key, Table
from solotable._protocol.requests import DeleteItem, PutItem, TransactWriteItems, UpdateItem
from solotable._values import Item
from solotable.errors import DataError, DeclarationError
from solotable.jobs.tag_items import tag_items

from .opening import Opening

forum = Table("Forum", tag_required=False)
loose = Table("Loose", tag="kind")


class Topic(Entity, table=forum):
    """A topic."""

    key = Key("TOPIC#{topic}", "TOPIC")
    topic: str
    title: str = ""


class Reply(Entity, table=forum, tag="R"):
    """A reply."""

    key = Key("TOPIC#{topic}", "REPLY#{number:04d}")
    topic: str
    number: int


class Cat(Entity, table=loose):
    """An entity whose key another one can have."""

    key = Key("PET#{pet}", "{name}")
    pet: str
    name: str


class Dog(Entity, table=loose):
    """The other one."""

    key = Key("PET#{pet}", "{name}")
    pet: str
    name: str


def foreign(partition: str, sort: str, **more: Any) -> Item:
    """Return an item as another program writes it."""
    return {"PK": {"S": partition}, "SK": {"S": sort}, "note": {"S": "x"}, **more}


ITEMS = [
    foreign("TOPIC#a", "TOPIC", topic={"S": "a"}),
    foreign("TOPIC#a", "REPLY#0001", topic={"S": "a"}, number={"N": "1"}),
    foreign("TOPIC#a", "REPLY#0002", topic={"S": "a"}, number={"N": "2"}),
    foreign("TOPIC#a", "REPLY#two"),
    foreign("TOPIC#b", "TOPIC", _type={"S": "Topic"}),
    foreign("TOPIC#c", "TOPIC", _type={"S": "Robot"}),
    foreign("LEASE#x", "LEASE", _type={"S": "_lease"}),
]


@pytest.fixture
def filled(opening: Opening) -> Opening:
    """A table with items of another program."""
    if opening.runner is not None:
        pytest.skip("the job is a blocking one")
    opening(forum)
    for item in ITEMS:
        opening.plant(forum, item)
    return opening


def stored(opening: Opening, table: Table = forum) -> dict[tuple[str, str], Item]:
    """Return the stored items by key."""
    return {(item["PK"]["S"], item["SK"]["S"]): item for item in opening.raw(table)}


def test_a_dry_run_counts_and_writes_nothing(filled: Opening) -> None:
    before = stored(filled)
    report = tag_items(filled(forum).admin(), budget=100, dry_run=True)
    counts = report.counts
    assert (counts.seen, counts.matched, counts.tagged) == (7, {"Topic": 1, "Reply": 2}, 0)
    assert (counts.known, counts.internal, counts.unknown_tags) == (1, 1, {"Robot": 1})
    assert (counts.unmatched, counts.unmatched_samples[0]["SK"]) == (1, {"S": "REPLY#two"})
    assert report.done
    assert report.checkpoint is None
    assert stored(filled) == before


@pytest.mark.parametrize("together", [None, 2])
def test_the_job_adds_the_tag_and_changes_nothing_else(filled: Opening, together: int | None) -> None:
    before = stored(filled)
    report = tag_items(filled(forum).admin(), budget=100, segments=3, together=together)
    assert (report.counts.tagged, report.counts.conflicts) == (3, 0)
    added = {("TOPIC#a", "TOPIC"): "Topic", ("TOPIC#a", "REPLY#0001"): "R", ("TOPIC#a", "REPLY#0002"): "R"}
    assert stored(filled) == {
        key: {**item, "_type": {"S": added[key]}} if key in added else item for key, item in before.items()
    }
    again = tag_items(filled(forum).admin(), budget=100)
    assert (again.counts.matched, again.counts.known, again.counts.tagged) == ({}, 4, 0)


@pytest.mark.parametrize("together", [1, 2, 100])
def test_a_concurrent_write_is_kept(filled: Opening, together: int) -> None:
    changed = foreign("TOPIC#a", "TOPIC", topic={"S": "a"}, title={"S": "new"})
    key = {name: ITEMS[1][name] for name in ("PK", "SK")}
    name = filled.prefix + forum.name

    def interfere() -> None:
        filled.engine.handle(PutItem(table=name, item=changed))
        filled.engine.handle(DeleteItem(table=name, key=key))

    db = filled(forum).admin()
    filled.spy.once(UpdateItem if together == 1 else TransactWriteItems, interfere)
    report = tag_items(db, budget=100, together=together)
    found = stored(filled)
    assert found["TOPIC#a", "TOPIC"] == {**changed, "_type": {"S": "Topic"}}
    assert ("TOPIC#a", "REPLY#0001") not in found
    assert (report.counts.tagged, report.counts.conflicts) == (2, 1)


def test_the_tag_of_another_writer_is_not_replaced(filled: Opening) -> None:
    robot = {**ITEMS[0], "_type": {"S": "Robot"}}
    db = filled(forum).admin()
    filled.spy.once(UpdateItem, lambda: filled.plant(forum, robot))
    report = tag_items(db, budget=100)
    assert stored(filled)["TOPIC#a", "TOPIC"] == robot
    assert report.counts.conflicts == 1


def test_a_budget_ends_the_job_and_a_checkpoint_continues_it(filled: Opening) -> None:
    db = filled(forum).admin()
    report = tag_items(db, budget=3, segments=2)
    seen = report.counts.seen
    while not report.done:
        report = tag_items(db, budget=3, resume=report.checkpoint)
        assert report.counts.seen <= 3
        seen += report.counts.seen
    assert (seen, report.done) == (len(ITEMS), True)
    assert sum("_type" in item for item in stored(filled).values()) == 6
    with pytest.raises(DataError, match="is not a checkpoint of table 'Forum'"):
        tag_items(db, budget=3, resume=json.dumps({"table": "Other", "starts": [None]}))


def test_an_item_that_two_entities_match_is_not_tagged(filled: Opening) -> None:
    db = filled(loose).admin()
    item = foreign("PET#p", "x")
    filled.plant(loose, item)
    report = tag_items(db, loose, budget=10)
    assert (report.counts.ambiguous, report.counts.tagged) == (1, 0)
    assert report.counts.ambiguous_samples[0][1] == ["Cat", "Dog"]
    assert stored(filled, loose) == {("PET#p", "x"): item}


def test_the_rate_limits_the_capacity(filled: Opening) -> None:
    db = filled(forum).admin()
    waits: list[float] = []
    filled.spy.sleep = waits.append
    report = tag_items(db, budget=100, rate=0.5)
    assert report.counts.units >= 3
    assert sum(waits) > 0


def test_a_table_without_tags_is_rejected(filled: Opening) -> None:
    table = Table("NoTags", tag=None)
    with pytest.raises(DeclarationError, match="has tag=None, so its items get no type tag"):
        tag_items(filled(table).admin(), table, budget=1)


def test_an_item_whose_fields_derive_another_key_is_counted_and_left(opening: Opening) -> None:
    if opening.runner is not None:
        pytest.skip("the job is a blocking one")
    opening(forum)
    for item in (
        foreign("TOPIC#a", "TOPIC", topic={"S": "other"}),
        foreign("TOPIC#a", "REPLY#0001", topic={"S": "a"}, number={"N": "2"}),
        foreign("TOPIC#a", "REPLY#0003", topic={"S": "a"}, number={"S": "three"}),
        foreign("TOPIC#b", "TOPIC"),
    ):
        opening.plant(forum, item)
    before = stored(opening)
    for dry_run in (True, False):
        counts = tag_items(opening(forum).admin(), budget=100, dry_run=dry_run).counts
        assert (counts.mismatched, counts.matched) == (3, {"Topic": 1})
        assert {"PK": {"S": "TOPIC#a"}, "SK": {"S": "TOPIC"}} in counts.mismatched_samples
    tagged = {**before["TOPIC#b", "TOPIC"], "_type": {"S": "Topic"}}
    assert stored(opening) == {**before, ("TOPIC#b", "TOPIC"): tagged}
