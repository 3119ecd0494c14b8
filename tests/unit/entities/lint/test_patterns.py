"""Patterns: what their ranges reach, whether a key serves them, and which patterns cannot be checked."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar, Literal, Optional

import pytest
from pydantic import BaseModel

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.fields import FROM_SCOPE
from solotable._entities.declare.table import Index, Table
from solotable._entities.keys.key import Key
from solotable._entities.lint import Finding, lint
from solotable._entities.patterns.conditions import exists
from solotable._entities.patterns.pattern import pattern
from solotable._entities.patterns.query import Query
from solotable._expressions.ast import KeyTerm


class Status(Enum):
    DRAFT = "draft"
    DONE = "done"


def of(table: Table, *codes: str) -> list[Finding]:
    return [finding for finding in lint(table) if finding.code in codes]


def shop(**settings: Any) -> Table:
    return Table("Shop", indexes=[Index("GSI1", **settings)])


def made(method: Any) -> Any:
    """The method as a pattern, as the decorators make it."""
    declare: Any = pattern
    return declare(classmethod(method))


def one_pattern(method: Callable[..., Any], **settings: Any) -> tuple[Table, type[Entity]]:
    """A table with an order that has this pattern."""
    table = shop(**settings)

    class Order(Entity, table=table):
        key = Key("ORG#{org}", "ORDER#{order_id}")
        by_status = Key("ORG#{org}#{status}", "{day}#{order_id}", index="GSI1")
        org: str
        order_id: str
        status: Status
        day: date
        note: str = ""
        found: ClassVar[Any] = made(method)

    return table, Order


# What a range reaches -----------------------------------------------------------------------------


def surveys() -> Table:
    table = Table("Surveys")

    class Survey(Entity, table=table):
        key = Key("T#{tenant}", "SURVEY#{survey_id}")
        tenant: str
        survey_id: str

        @pattern
        @classmethod
        def of_tenant(cls, tenant: str) -> Query[Any]:
            """All surveys."""
            return cls.key.query(tenant=tenant)

        @pattern
        @classmethod
        def one(cls, tenant: str, survey_id: str) -> Query[Any]:
            """One survey."""
            return cls.key.query(tenant=tenant, survey_id=survey_id)

    class Section(Entity, table=table):
        key = Key("T#{tenant}", "SURVEY#{survey_id}#SECTION#{section_id}")
        tenant: str
        survey_id: str
        section_id: str

        @pattern
        @classmethod
        def of_survey(cls, tenant: str, survey_id: str) -> Query[Any]:
            """The sections of a survey."""
            return cls.key.query(tenant=tenant, survey_id=survey_id)

    assert len(table.plans) == len((Survey, Section))
    return table


def test_a_prefix_that_reaches_the_children_of_its_items() -> None:
    (finding,) = of(surveys(), "ST102")
    assert (finding.severity, finding.entity) == ("error", "Survey")
    assert "Survey.of_tenant reads items that start with 'SURVEY#'" in finding.message
    assert "reaches Section.key (PK=T#x, SK=SURVEY#x#SECTION#x)" in finding.message
    assert "db.collection(Survey, Section, ...)" in finding.message
    assert finding.where is not None
    line = int(finding.where.rpartition(":")[2])
    assert finding.where.startswith(__file__)
    assert "def of_tenant" in Path(__file__).read_text(encoding="utf-8").splitlines()[line + 1]


#: Sort templates of entities that share one partition, over the fields a (text), k (a choice), n (digits).
SORTS = ["A#{a}", "A#{a}#B#{k}", "A#{k}", "A#v{n:02d}", "B#{a}", "B#{n:02d}#{a}", "AB", "{a}", "A#x", "{k}#A"]
VALUES: dict[str, list[Any]] = {"a": ["x", "A", "v07", "B", "07", "AB"], "k": ["x", "A"], "n": [7]}
#: How a range is opened over the first part that is not given.
VERBS = ["", "since", "until", "after", "before", "between", "starts_with"]


def brute(entities: list[type[Entity]]) -> set[tuple[str, str]]:
    """Which patterns reach which entities, found by trying values against the real key conditions."""
    reached = set()
    for one, other in itertools.permutations(entities, 2):
        keys = [other.plan().primary.encode(values) for values in every(other)]
        queries = [getattr(one, name)(**values) for name in one.plan().patterns for values in every(one)]
        for query in queries:
            terms = query.path.terms(query.arguments, query.sort_range)
            if any(key is not None and all(holds(term, key) for term in terms) for key in keys):
                reached.add((query.pattern, other.__name__))
    return reached


def every(entity: type[Entity]) -> list[dict[str, Any]]:
    fields = list(entity.model_fields)
    combined: Any = itertools.product(*[VALUES[name] for name in fields])
    return [dict(zip(fields, values, strict=True)) for values in combined]


def holds(term: KeyTerm, key: dict[str, Any]) -> bool:
    text = key[term.name]["S"]
    low, *high = (value["S"] for value in term.values)
    match term.operator:
        case "=":
            return bool(text == low)
        case "begins_with":
            return bool(text.startswith(low))
        case ">=":
            return bool(text >= low)
        case "<=":
            return bool(text <= low)
        case "BETWEEN":
            return bool(low <= text <= high[0])
        case _:
            raise AssertionError(term)


def declared(table: Table, name: str, sort: str) -> type[Entity]:
    """An entity with a pattern for every way to open its sort key, each taking all fields."""
    fields = {"a": str, "k": Literal["x", "A"], "n": int}
    used = [field for field in fields if f"{{{field}" in sort]
    order = sorted(used, key=lambda field: sort.index(f"{{{field}"))
    body: dict[str, Any] = {"key": Key("P", sort), "__annotations__": {each: fields[each] for each in order}}
    body["__module__"] = __name__
    for size, verb in itertools.product(range(len(order) + 1), VERBS):
        opened = order[size] if size < len(order) else None
        if not verb or (opened is not None and (verb != "starts_with" or opened == "a")):
            body[f"p{size}{verb}"] = made(opening(order[:size], opened, verb))
    metaclass: Any = type(Entity)
    entity: type[Entity] = metaclass(name, (Entity,), body, table=table)
    return entity


def opening(given: list[str], opened: str | None, verb: str) -> Callable[..., Query[Any]]:
    def method(cls: Any, a: str = "x", k: Literal["x", "A"] = "x", n: int = 7) -> Query[Any]:
        values = {"a": a, "k": k, "n": n}
        query = cls.key.query(**{name: values[name] for name in given})
        if not verb:
            return query  # type: ignore[no-any-return]
        value: Any = values[opened or ""]
        bound = {opened or "": (value, value) if verb == "between" else value}
        return getattr(query, verb)(**bound)  # type: ignore[no-any-return]

    return method


def test_what_patterns_reach_is_what_trying_finds() -> None:
    table = Table("Shop")
    entities = [declared(table, f"E{n}", sort) for n, sort in enumerate(SORTS)]
    patterns = [f"{each.__name__}.{name}" for each in entities for name in each.plan().patterns]
    said = {
        (name, other.__name__)
        for finding in of(table, "ST102")
        for name in patterns
        for other in entities
        if f"{name} reads " in finding.message and f"reaches {other.__name__}.key " in finding.message
    }
    assert of(table, "ST902", "ST501") == []
    found = brute(entities)
    assert found <= said
    # Ranges by since and the like are taken as the prefix they lie in; all else is exact.
    assert {pair for pair in said - found if not ranged(pair[0])} == set()
    assert found


def ranged(name: str) -> bool:
    return name.endswith(("since", "until", "after", "before", "between"))


def test_constants_of_a_pattern_are_known() -> None:
    table = Table("Shop")

    class Order(Entity, table=table):
        key = Key("ORG#{org}", "{kind}#{order_id}")
        org: str
        kind: Literal["ORDER", "DRAFT"]
        order_id: str

        @pattern
        @classmethod
        def drafts(cls, org: str) -> Query[Any]:
            """The drafts."""
            return cls.key.query(org=org, kind="DRAFT")

        @pattern
        @classmethod
        def of_kind(cls, org: str, kind: Literal["ORDER", "DRAFT"]) -> Query[Any]:
            """Those of a kind."""
            return cls.key.query(org=org, kind=kind)

    class Line(Entity, table=table):
        key = Key("ORG#{org}", "ORDER#{order_id}#LINE#{line:03d}")
        org: str
        order_id: str
        line: int

    assert len(table.plans) == len((Order, Line))
    (finding,) = of(table, "ST102")
    assert "Order.of_kind reads" in finding.message


def test_a_constant_beginning_is_known() -> None:
    table = Table("Shop")

    class Order(Entity, table=table):
        key = Key("ORG#{org}", "{order_id}")
        org: str
        order_id: str

        @pattern
        @classmethod
        def drafts(cls, org: str) -> Query[Any]:
            """Those with such a number."""
            return cls.key.query(org=org).starts_with(order_id="DRAFT-")

        @pattern
        @classmethod
        def like(cls, org: str, start: str) -> Query[Any]:
            """Those whose number starts so."""
            return cls.key.query(org=org).starts_with(order_id=start)

    class Line(Entity, table=table):
        key = Key("ORG#{org}", "LINE#{line:03d}")
        org: str
        line: int

    assert len(table.plans) == len((Order, Line))
    (finding,) = of(table, "ST102")
    assert "Order.like reads its whole partition" in finding.message


def test_the_tenant_is_given_by_the_scope() -> None:
    table = Table("Shop", tenant="tenant_id")

    class Order(Entity, table=table):
        key = Key("T#{tenant_id}", "ORDER#{tenant_id}#{order_id}")
        tenant_id: str = FROM_SCOPE
        order_id: str

        @pattern
        @classmethod
        def all_of_them(cls) -> Query[Any]:
            """All orders."""
            return cls.key.query()

    class Line(Entity, table=table):
        key = Key("T#{tenant_id}", "{order_id}#{tenant_id}#LINE#{line:03d}")
        tenant_id: str = FROM_SCOPE
        order_id: str
        line: int

    assert len(table.plans) == len((Order, Line))
    (finding,) = lint(table)
    assert "Order.all_of_them reads items that start with 'ORDER#{tenant_id}#', which" in finding.message
    assert "(PK=T#x, SK=ORDER#x#LINE#000)" in finding.message


def test_entities_of_one_index_reach_each_other_there_only() -> None:
    table = shop()

    class Order(Entity, table=table):
        key = Key("ORDER#{order_id}", "ORDER")
        recent = Key("DAY#{day}", "{at:s}", index="GSI1")
        order_id: str
        day: date
        at: datetime

        @pattern
        @classmethod
        def since(cls, day: date, at: datetime) -> Query[Any]:
            """The latest of a day."""
            return cls.recent.query(day=day).since(at=at)

    class Visit(Entity, table=table):
        key = Key("VISIT#{visit_id}", "VISIT")
        recent = Key("DAY#{day}", "VISIT#{at:s}", index="GSI1")
        visit_id: str
        day: date
        at: datetime

    assert len(table.plans) == len((Order, Visit))
    (finding,) = of(table, "ST102")
    assert "reads its whole partition, which reaches Visit.recent" in finding.message


# Served or not ------------------------------------------------------------------------------------


def unknown_part(cls: Any, org: str, state: str) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, state=state)  # type: ignore[no-any-return]


def half_a_partition(cls: Any, org: str) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org)  # type: ignore[no-any-return]


def a_gap(cls: Any, org: str, status: Status, order_id: str) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status, order_id=order_id)  # type: ignore[no-any-return]


def the_wrong_range(cls: Any, org: str, status: Status, order_id: str) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status).since(order_id=order_id)  # type: ignore[no-any-return]


def wrong_in_the_middle(cls: Any, org: str, way: Literal["left", "ahead", "right"]) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org) if way == "ahead" else cls.key.query(org=org)  # type: ignore[no-any-return]


def no_query(cls: Any, org: str) -> Any:
    """Doc."""
    return [org]


def only_without_the_optional(cls: Any, org: str, status: Status | None = None) -> Query[Any]:
    """Doc."""
    given = {} if status is None else {"status": status}
    return cls.by_status.query(org=org, **given)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (unknown_part, "has no part 'state'"),
        (half_a_partition, "Order.by_status needs status for its partition"),
        (a_gap, "order_id is given without day"),
        (the_wrong_range, "the first part that is not given is 'day'"),
        (no_query, "instead of a query"),
        (wrong_in_the_middle, "needs status for its partition"),
        (only_without_the_optional, "needs status for its partition"),
    ],
)
def test_a_pattern_that_no_key_serves(method: Callable[..., Any], reason: str) -> None:
    table, _ = one_pattern(method)
    (finding,) = of(table, "ST501", "ST902")
    assert (finding.code, finding.severity, finding.entity) == ("ST501", "error", "Order")
    assert reason in finding.message
    assert "the closest key is Order." in finding.message


def test_the_closest_key_is_the_one_with_the_most_of_its_parts() -> None:
    table, _ = one_pattern(half_a_partition)
    (finding,) = of(table, "ST501")
    assert "the closest key is Order.key, which takes org, order_id" in finding.message
    table, _ = one_pattern(a_gap)
    (finding,) = of(table, "ST501")
    assert "the closest key is Order.by_status, which takes org, status, day, order_id" in finding.message


def every_type(
    cls: Any,
    org: str,
    status: Literal["draft", "done"],
    days: tuple[date, date],
    more: Optional[int] = None,  # noqa: UP045 - the old way is met too
    *,
    flag: bool = False,
) -> Query[Any]:
    """Doc."""
    del more, flag
    return cls.by_status.query(org=org, status=Status(status)).between(day=days)  # type: ignore[no-any-return]


def text_for_a_choice(cls: Any, org: str, status: str, **_: Any) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status)  # type: ignore[no-any-return]


def text_made_a_choice(cls: Any, org: str, status: str) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=Status(status))  # type: ignore[no-any-return]


@pytest.mark.parametrize("method", [every_type, text_for_a_choice, text_made_a_choice])
def test_a_pattern_that_is_served(method: Callable[..., Any]) -> None:
    table, _ = one_pattern(method)
    assert of(table, "ST501", "ST902", "ST102") == []


def an_object(cls: Any, thing: object) -> Query[Any]:
    """Doc."""
    return cls.key.query(org=str(thing))  # type: ignore[no-any-return]


def no_type(cls: Any, thing) -> Query[Any]:  # type: ignore[no-untyped-def]
    """Doc."""
    return cls.key.query(org=thing)  # type: ignore[no-any-return]


def its_own_mind(cls: Any, org: str) -> Query[Any]:
    """Doc."""
    raise ValueError(f"{org} is unknown")


def a_missing_type(cls: Any, org: Nowhere) -> Query[Any]:  # type: ignore[name-defined]  # noqa: F821
    """Doc."""
    return cls.key.query(org=org)  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "reason"),
    [
        (an_object, "its parameter 'thing' has no sample of type <class 'object'>"),
        (no_type, "its parameter 'thing' has no type"),
        (its_own_mind, "it raised ValueError: org-one is unknown"),
        (a_missing_type, "cannot be read: Nowhere"),
    ],
)
def test_a_pattern_that_cannot_be_proved(method: Callable[..., Any], reason: str) -> None:
    table, _ = one_pattern(method)
    (finding,) = of(table, "ST501", "ST902")
    assert (finding.code, finding.severity) == ("ST902", "warning")
    assert reason in finding.message


def silent(cls: Any, org: str) -> Query[Any]:
    return cls.key.query(org=org)  # type: ignore[no-any-return]


def test_a_pattern_without_a_docstring() -> None:
    table, _ = one_pattern(silent)
    (finding,) = of(table, "ST502")
    assert finding.severity == "note"


# What an index holds ------------------------------------------------------------------------------


class Brief(BaseModel):
    order_id: str
    day: date


def whole(cls: Any, org: str, status: Status) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status)  # type: ignore[no-any-return]


def brief(cls: Any, org: str, status: Status) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status).select(Brief)  # type: ignore[no-any-return]


def filtered(cls: Any, org: str, status: Status) -> Query[Any]:
    """Doc."""
    return cls.by_status.query(org=org, status=status).where(lambda order: exists(order.note))  # type: ignore[no-any-return]


@pytest.mark.parametrize(
    ("method", "projection", "absent"),
    [
        (whole, "ALL", None),
        (whole, ["org", "order_id", "status", "day", "note"], None),
        (whole, ["org", "order_id", "status", "day"], "needs note, which index 'GSI1' does not project"),
        (brief, ["order_id", "day"], None),
        (brief, "KEYS_ONLY", "needs order_id, day, _type, which"),
    ],
)
def test_rows_that_an_index_does_not_hold(
    method: Callable[..., Any], projection: Any, absent: str | None
) -> None:
    table, _ = one_pattern(method, projection=projection)
    found = of(table, "ST303")
    assert [each.severity for each in found] == ([] if absent is None else ["note"])
    assert all((absent or "") in each.message for each in found)


def test_a_condition_that_an_index_cannot_judge() -> None:
    table, _ = one_pattern(filtered, projection="KEYS_ONLY")
    (finding,) = of(table, "ST501")
    assert "its condition is on 'note', which its index does not project" in finding.message
    table, _ = one_pattern(filtered)
    assert of(table, "ST501") == []


def test_samples_are_aware_moments() -> None:
    def at(cls: Any, day: date, at: datetime, status: Status) -> Query[Any]:
        """Doc."""
        assert at.tzinfo is UTC
        return cls.by_status.query(org="constant", status=status).since(day=day)  # type: ignore[no-any-return]

    table, _ = one_pattern(at)
    assert of(table, "ST501", "ST902") == []


def test_the_parts_of_a_mixed_query_are_not_foreign() -> None:
    table = Table("Mixed")

    class Survey(Entity, table=table):
        key = Key("T#{tenant}", "SURVEY#{survey_id}")
        tenant: str
        survey_id: str

    class Section(Entity, table=table):
        key = Key("T#{tenant}", "SURVEY#{survey_id}#SECTION#{section_id}")
        tenant: str
        survey_id: str
        section_id: str

        @pattern
        @classmethod
        def with_surveys(cls, tenant: str) -> Query[Any]:
            """The surveys of a tenant with their sections."""
            return Survey.key.query(tenant=tenant) | cls.key.query(tenant=tenant)

    assert of(table, "ST102") == []


def mixed_of(sorts: dict[str, str], *, others: dict[str, str], choose: Any = None) -> list[str]:
    """Return the messages of ST107 for a mixed query over keys, beside the keys of other entities."""
    table = Table("Mixed")

    def declare(name: str, sort: str) -> type[Entity]:
        members = {
            "__module__": __name__,
            "__annotations__": {"repo": str, "number": int, "status": Literal["open", "shut"]},
            "key": Key("REPO#{repo}", sort),
        }
        metaclass: Any = type(Entity)
        declared: type[Entity] = metaclass(name, (Entity,), members, table=table)
        return declared

    parts = [declare(name, sort) for name, sort in sorts.items()]
    for name, sort in others.items():
        declare(name, sort)

    def together(cls: Any, repo: str) -> Any:
        """Both."""
        found: Any = None
        for part in parts:
            query: Any = part.key.query(repo=repo)  # type: ignore[attr-defined]  # declared above
            query = query if choose is None else choose(query)
            found = query if found is None else found | query
        return found

    class Owner(Entity, table=table):
        key = Key("OWNER#{owner}", "OWNER")
        owner: str
        both: ClassVar[Any] = made(together)

    assert Owner.plan().patterns
    return [finding.message for finding in of(table, "ST107")]


def test_an_entity_between_the_parts_of_a_mixed_query_is_found() -> None:
    sorts = {"Issue": "ISSUE#{number:06d}", "Repo": "REPO"}
    [message] = mixed_of(
        sorts, others={"Pull": "PR#{number:06d}", "Star": "STAR#{number:06d}", "Fork": "FORK"}
    )
    assert message.startswith("Owner.both reads Issue and Repo as one range, and Pull.key (PR#{number:06d})")


@pytest.mark.parametrize(
    ("sorts", "others"),
    [
        # They sort next to each other, or the other entity is before or behind both.
        ({"Issue": "ISSUE#{number:06d}", "Repo": "ISSUES"}, {"Pull": "PR#{number:06d}"}),
        ({"Issue": "B#{number:06d}", "Repo": "D"}, {"Early": "A#{number:06d}", "Late": "E"}),
        # All keys of the range start with the same segment.
        ({"Issue": "{repo}#B#{number:06d}", "Repo": "{repo}#D"}, {"Late": "{repo}#Z", "Early": "{repo}#A#1"}),
        ({"Issue": "X#B#{number:06d}", "Repo": "X#D"}, {"Late": "Y#C#{number:06d}", "Short": "X"}),
        ({"Issue": "B#{number:06d}", "Repo": "D"}, {"Pull": "{status}"}),
        # One part contains the other.
        ({"Issue": "X#{number:06d}", "Repo": "X#{number:06d}#Y"}, {"Pull": "PR"}),
    ],
)
def test_an_entity_that_cannot_be_between_the_parts_is_not_reported(
    sorts: dict[str, str], others: dict[str, str]
) -> None:
    assert mixed_of(sorts, others=others) == []


@pytest.mark.parametrize(
    ("sorts", "other"),
    [
        ({"Issue": "X#B#{number:06d}", "Repo": "X#D"}, "X#C"),
        ({"Issue": "m#{number:06d}", "Repo": "p"}, "{status}"),
        ({"Issue": "B#{number:06d}", "Repo": "D"}, "C{repo}"),
    ],
)
def test_a_key_whose_fields_can_place_it_between_the_parts_is_reported(
    sorts: dict[str, str], other: str
) -> None:
    assert len(mixed_of(sorts, others={"Other": other})) == 1


def test_ranges_of_the_parts_bound_the_mixed_query() -> None:
    sorts = {"Issue": "A#{number:06d}", "Repo": "A#{number:06d}#X"}
    assert mixed_of(sorts, others={"Pull": "A"}, choose=lambda query: query.since(number=5)) == []
