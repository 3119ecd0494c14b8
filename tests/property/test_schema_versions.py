"""Reading an old item gives what reading it after its backfill gives, whatever it holds."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from solotable import Entity, Index, Key, Table, downgrade, upgrade
from solotable._expressions.evaluate import evaluate
from solotable._expressions.update import apply_update
from solotable._flows.jobs.backfill import Work, assess
from solotable._values import Item, dump_item

things = Table("Things", indexes=[Index("GSI1")])


class Thing(Entity, table=things, schema_version=4):
    key = Key("THING#{thing_id}", "THING")
    by_group = Key("GROUP#{group}", "THING#{thing_id}", index="GSI1")
    thing_id: str
    group: str | None = None
    first: str = ""
    full: str = ""
    size: dict[str, int] = Field(default_factory=dict)
    tags: set[str] = Field(default_factory=set)

    @upgrade(to=2, replaces=("name",))
    @staticmethod
    def names(record: dict[str, Any]) -> dict[str, Any]:
        if "name" in record:
            record["first"] = record["name"]
        return record

    @upgrade(to=3)
    @staticmethod
    def fulls(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "full": f"{record.get('first', '')} of {record.get('group')}"}

    @upgrade(to=4, replaces=("width", "height"))
    @staticmethod
    def sizes(record: dict[str, Any]) -> dict[str, Any]:
        record.setdefault("size", {}).update(
            {side: record[side] for side in ("width", "height") if side in record}
        )
        return record

    @downgrade(to=3)
    @staticmethod
    def sides(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, **record.get("size", {})}


#: Key parts have no control characters to escape here; how keys are escaped is tested elsewhere.
words = st.text(st.characters(min_codepoint=97, max_codepoint=122), min_size=1, max_size=5)
whole = st.integers(-(10**6), 10**6)
attributes = st.fixed_dictionaries(
    {},
    optional={
        "name": words,
        "first": words,
        "full": words,
        "group": words,
        "width": whole,
        "height": whole,
        "size": st.dictionaries(st.sampled_from(["width", "height", "depth"]), whole),
        "tags": st.sets(words, min_size=1),
        "theirs": st.one_of(words, whole, st.lists(words)),
        "GSI1PK": words,
        "GSI1SK": words,
    },
)
marks = st.sampled_from([{}, {"_shape": 2}, {"_shape": 3}, {"_shape": 4}, {"_shape": 4, "_shape_from": 3}])


def item_of(values: dict[str, Any], mark: dict[str, Any]) -> Item:
    own = {"PK": "THING#t", "SK": "THING", "_type": "Thing", "thing_id": "t"}
    return dump_item({**own, **values, **mark})


class _Names:
    """Stands for a scope: only the table's name is asked for."""

    def table(self, table: Table) -> str:
        return table.name


@given(attributes, marks)
def test_upgrading_on_read_and_backfilling_are_the_same(values: dict[str, Any], mark: dict[str, Any]) -> None:
    plan = Thing.plan()
    work = Work(scope=_Names(), plan=plan)  # type: ignore[arg-type]  # no request is sent
    item = item_of(values, mark)
    read = plan.decode(item)
    rewrite = assess(work, item)
    after = item
    if rewrite is not None:
        assert rewrite.action.condition is not None
        assert evaluate(rewrite.action.condition, item), "an item that nobody changed is rewritten"
        after = apply_update(rewrite.action.update, item)
    again = plan.decode(after)
    assert again == read
    assert again.unknown_attributes == read.unknown_attributes
    assert assess(work, after) is None, "once is enough"


@given(attributes, marks, attributes, marks)
def test_a_rewrite_is_refused_whenever_it_would_be_another_one(
    values: dict[str, Any], mark: dict[str, Any], others: dict[str, Any], other_mark: dict[str, Any]
) -> None:
    work = Work(scope=_Names(), plan=Thing.plan())  # type: ignore[arg-type]  # no request is sent
    item, changed = item_of(values, mark), item_of(others, other_mark)
    rewrite = assess(work, item)
    if rewrite is None:
        return
    assert rewrite.action.condition is not None
    if evaluate(rewrite.action.condition, changed):
        after = apply_update(rewrite.action.update, changed)
        assert Thing.plan().decode(after) == Thing.plan().decode(changed)
