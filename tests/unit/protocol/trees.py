"""Records with trees that DynamoDB takes, for the property that what is rendered decodes to itself."""

from __future__ import annotations

from typing import Any, TypeVar

from hypothesis import strategies as st

from solotable._expressions.ast import (
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Condition,
    Const,
    Contains,
    Delete,
    Exists,
    IfNotExists,
    In,
    KeyOperator,
    KeyTerm,
    ListAppend,
    Not,
    Or,
    Path,
    Remove,
    Size,
    TypeIs,
    Update,
)
from solotable._protocol.requests import (
    NO_UPDATE,
    BatchDelete,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    DeleteItem,
    GetItem,
    PutItem,
    Query,
    Request,
    Scan,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
)
from solotable._values import TYPES, canonical
from tests.unit.expressions.strategies import ITEMS, VALUES

Made = TypeVar("Made")

#: Reserved words, our own placeholders, and characters that mean something in an expression.
NAMES = st.sampled_from(["a", "name", "#0", ":0", "x.y", "x[0]", "AND", "é 😀", "0"])
PATHS: st.SearchStrategy[Path] = st.builds(
    lambda first, rest: (first, *rest), NAMES, st.lists(st.one_of(NAMES, st.integers(0, 99)), max_size=3)
)
TABLES = st.sampled_from(["Things", "other-table", "a.b_c"])
TEXTS = st.sampled_from(["", "1", "true", "a", "é"]).map(lambda text: {"S": text})
NUMBERS = st.sampled_from(["1", "0", "-2.5", "10"]).map(lambda text: {"N": text})
BYTES = st.sampled_from(["", "YQ==", "YWI="]).map(lambda text: {"B": text})
ORDERED = st.one_of(TEXTS, NUMBERS, BYTES)
SETS = st.sampled_from([{"SS": ["a", "b"]}, {"NS": ["1", "2"]}, {"BS": ["YQ=="]}]).map(canonical)
LISTS = st.lists(VALUES, max_size=2).map(lambda members: {"L": members})


def _some(made: st.SearchStrategy[Made]) -> st.SearchStrategy[Made | None]:
    return st.one_of(st.none(), made)


def _several(made: st.SearchStrategy[Made], *, least: int = 1) -> st.SearchStrategy[tuple[Made, ...]]:
    return st.lists(made, min_size=least, max_size=3).map(tuple)


# The first operand of a test must not come again, so paths of the others begin with another name.
_FIRST = st.one_of(st.builds(Attr, PATHS), st.builds(Size, st.builds(Attr, PATHS)))
_ELSEWHERE = PATHS.map(lambda path: Attr((f"other {path[0]}", *path[1:])))


def _others(values: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[Any]:
    return st.one_of(_ELSEWHERE, st.builds(Size, _ELSEWHERE), st.builds(Const, values))


def _bounds(kind: str, low: str, high: str) -> st.SearchStrategy[Condition]:
    between = Between(Const({kind: low}), Const({kind: low}), Const({kind: high}))
    return st.builds(lambda first: Between(first, between.low, between.high), _FIRST)


_PREFIXES = st.one_of(_ELSEWHERE, st.builds(Const, st.one_of(TEXTS, BYTES)))
_TESTS: st.SearchStrategy[Condition] = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "<>"]), _FIRST, _others(VALUES)),
    st.builds(Compare, st.sampled_from(["<", "<=", ">", ">="]), _FIRST, _others(ORDERED)),
    st.builds(Compare, st.just("="), st.builds(Const, VALUES), _ELSEWHERE),
    st.builds(Between, _FIRST, _ELSEWHERE, _others(ORDERED)),
    _bounds("N", "-1", "10"),
    _bounds("S", "a", "b"),
    st.builds(In, _FIRST, _several(_others(VALUES))),
    st.builds(Exists, PATHS),
    st.builds(TypeIs, _FIRST, st.sampled_from(TYPES)),
    st.builds(BeginsWith, st.builds(Attr, PATHS), _PREFIXES),
    st.builds(Contains, _FIRST, _others(VALUES)),
)
CONDITIONS: st.SearchStrategy[Condition] = st.recursive(
    _TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, _several(inner)),
        st.builds(Or, _several(inner)),
    ),
    max_leaves=8,
)


def normal(node: Condition) -> Condition:
    """The one tree of all that say the same in the same words: no group within its like, no NOT NOT."""
    match node:
        case Not(inner):
            term = normal(inner)
            return term.condition if isinstance(term, Not) else Not(term)
        case And(terms) | Or(terms):
            kind = type(node)
            flat: list[Condition] = []
            for term in map(normal, terms):
                flat.extend(term.terms if isinstance(term, kind) else [term])
            return flat[0] if len(flat) == 1 else kind(tuple(flat))
        case _:
            return node


NORMAL_CONDITIONS = CONDITIONS.map(normal)

_LEAVES = st.builds(Attr, PATHS)
_DEFAULTS = st.recursive(
    st.one_of(_LEAVES, st.builds(Const, VALUES)),
    lambda inner: st.builds(IfNotExists, PATHS, inner),
    max_leaves=3,
)
_SUMMANDS = st.one_of(_LEAVES, st.builds(Const, NUMBERS), st.builds(IfNotExists, PATHS, _DEFAULTS))
_APPENDED = st.one_of(_LEAVES, st.builds(Const, LISTS), st.builds(IfNotExists, PATHS, _DEFAULTS))
_ASSIGNED = st.one_of(
    _DEFAULTS,
    st.builds(Arithmetic, st.sampled_from(["+", "-"]), _SUMMANDS, _SUMMANDS),
    st.builds(ListAppend, _APPENDED, _APPENDED),
)


@st.composite
def _updates(draw: st.DrawFn) -> Update:
    """Actions gathered by section, none of them in another's way."""
    actions: list[Any] = []
    for section in draw(
        st.lists(st.sampled_from(["SET", "REMOVE", "ADD", "DELETE"]), min_size=1, unique=True)
    ):
        for _ in range(draw(st.integers(1, 2))):
            path = (f"{draw(NAMES)} {len(actions)}", *draw(PATHS)[1:])
            match section:
                case "SET":
                    actions.append(Assign(path, draw(_ASSIGNED)))
                case "REMOVE":
                    actions.append(Remove(path))
                case "ADD":
                    actions.append(Add(path, draw(st.one_of(NUMBERS, SETS))))
                case _:
                    actions.append(Delete(path, draw(SETS)))
    return Update(tuple(actions), creates=not all(isinstance(one, (Remove, Delete)) for one in actions))


UPDATES = _updates()
PROJECTIONS = st.lists(PATHS, min_size=1, max_size=3, unique_by=lambda path: path[0]).map(tuple)


_KEY_OPERATORS: list[KeyOperator] = ["=", "<", "<=", ">", ">=", "BETWEEN", "begins_with"]


@st.composite
def _key_conditions(draw: st.DrawFn) -> tuple[KeyTerm, ...]:
    terms = []
    for name in draw(st.lists(NAMES, min_size=1, max_size=3, unique=True)):
        match draw(st.sampled_from(_KEY_OPERATORS)):
            case "BETWEEN":
                terms.append(KeyTerm(name, "BETWEEN", ({"N": "-1"}, {"N": "1"})))
            case "begins_with":
                terms.append(KeyTerm(name, "begins_with", (draw(st.one_of(TEXTS, BYTES)),)))
            case operator:
                terms.append(KeyTerm(name, operator, (draw(ORDERED),)))
    return tuple(terms)


_CAPACITY = st.sampled_from(["NONE", "TOTAL", "INDEXES"])
_COLLECTION = st.sampled_from(["NONE", "SIZE"])
_FLAGS = st.booleans()
_ONCE: dict[str, Any] = {"table": TABLES, "returns_on_failure": _FLAGS}
_REPORTED: dict[str, Any] = {"capacity": _CAPACITY, "collection": _COLLECTION}
_TESTED: dict[str, Any] = {"condition": _some(NORMAL_CONDITIONS)}
_OLD: dict[str, Any] = {"returns": st.sampled_from(["NONE", "ALL_OLD"])}
_GETS = st.builds(
    GetItem, table=TABLES, key=ITEMS, consistent=_FLAGS, projection=_some(PROJECTIONS), capacity=_CAPACITY
)
_PAGED: dict[str, Any] = {
    "table": TABLES,
    "index": _some(st.just("by-name")),
    "filter": _some(NORMAL_CONDITIONS),
    "limit": _some(st.integers(1, 99)),
    "start": _some(ITEMS),
    "consistent": _FLAGS,
    "capacity": _CAPACITY,
}
_SELECTED: list[dict[str, Any]] = [
    {"projection": _some(PROJECTIONS)},
    {"select": st.sampled_from(["COUNT", "ALL_ATTRIBUTES"])},
    {"select": st.just("SPECIFIC_ATTRIBUTES"), "projection": PROJECTIONS},
]
_BATCH_WRITES = _several(st.one_of(st.builds(BatchPut, item=ITEMS), st.builds(BatchDelete, key=ITEMS)))
_ACTIONS = st.one_of(
    st.builds(PutItem, item=ITEMS, **_ONCE, **_TESTED),
    st.builds(UpdateItem, key=ITEMS, update=UPDATES, **_ONCE, **_TESTED),
    st.builds(DeleteItem, key=ITEMS, **_ONCE, **_TESTED),
    st.builds(ConditionCheck, key=ITEMS, condition=NORMAL_CONDITIONS, **_ONCE),
)
RECORDS: st.SearchStrategy[Request[Any]] = st.one_of(
    _GETS,
    st.builds(PutItem, item=ITEMS, **_ONCE, **_TESTED, **_OLD, **_REPORTED),
    st.builds(DeleteItem, key=ITEMS, **_ONCE, **_TESTED, **_OLD, **_REPORTED),
    st.builds(
        UpdateItem,
        key=ITEMS,
        update=st.one_of(st.just(NO_UPDATE), UPDATES),
        returns=st.sampled_from(["NONE", "ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW"]),
        **_ONCE,
        **_TESTED,
        **_REPORTED,
    ),
    *(st.builds(Query, key=_key_conditions(), forward=_FLAGS, **_PAGED, **chosen) for chosen in _SELECTED),
    *(st.builds(Scan, **_PAGED, **chosen) for chosen in _SELECTED),
    st.builds(Scan, segment=st.just(1), segments=st.just(4), **_PAGED),
    st.builds(
        BatchGetItem,
        tables=st.lists(
            st.builds(
                TableKeys,
                table=TABLES,
                keys=_several(ITEMS),
                consistent=_FLAGS,
                projection=_some(PROJECTIONS),
            ),
            min_size=1,
            unique_by=lambda part: part.table,
        ).map(tuple),
        capacity=_CAPACITY,
    ),
    st.builds(
        BatchWriteItem,
        tables=st.dictionaries(TABLES, _BATCH_WRITES, min_size=1).map(lambda made: tuple(made.items())),
        **_REPORTED,
    ),
    st.builds(
        TransactGetItems,
        gets=_several(
            st.builds(
                GetItem, table=TABLES, key=ITEMS, consistent=st.just(True), projection=_some(PROJECTIONS)
            )
        ),
        capacity=_CAPACITY,
    ),
    st.builds(TransactWriteItems, actions=_several(_ACTIONS), token=_some(st.just("import-7")), **_REPORTED),
)
