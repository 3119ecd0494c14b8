"""Items, values and conditions for properties."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from solotable._expressions.ast import (
    And,
    Attr,
    BeginsWith,
    Between,
    Compare,
    Contains,
    Exists,
    In,
    Not,
    Or,
    Size,
    TypeIs,
)
from solotable._values import TYPES, canonical, canonical_item

NAMES = st.sampled_from("abc")
_NUMBERS = st.sampled_from(["0", "1", "-1", "2", "10", "1.5"])
_TEXTS = st.sampled_from(["", "a", "ab", "b", "é", "😀"])
_BYTES = st.sampled_from(["", "YQ==", "YWI="])

SCALARS = st.one_of(
    st.builds(lambda text: {"S": text}, _TEXTS),
    st.builds(lambda text: {"N": text}, _NUMBERS),
    st.builds(lambda text: {"B": text}, _BYTES),
    st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
    st.just({"NULL": True}),
    st.builds(lambda members: {"SS": sorted(members)}, st.sets(_TEXTS, min_size=1)),
    st.builds(lambda members: {"NS": sorted(members)}, st.sets(_NUMBERS, min_size=1)),
    st.builds(lambda members: {"BS": sorted(members)}, st.sets(_BYTES, min_size=1)),
).map(canonical)


def _containers(inner: st.SearchStrategy[dict[str, Any]]) -> st.SearchStrategy[dict[str, Any]]:
    return st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=4)),
        st.builds(lambda members: {"M": members}, st.dictionaries(NAMES, inner, max_size=3)),
    )


VALUES = st.recursive(SCALARS, _containers, max_leaves=6)
ITEMS = st.dictionaries(NAMES, VALUES, max_size=3).map(canonical_item)
PATHS = st.builds(
    lambda name, rest: (name, *rest), NAMES, st.lists(st.one_of(NAMES, st.integers(0, 5)), max_size=2)
)
ATTRIBUTES = st.builds(Attr, PATHS)
OPERANDS = st.one_of(ATTRIBUTES, st.builds(Size, ATTRIBUTES))
TESTS = st.one_of(
    st.builds(Compare, st.sampled_from(["=", "<>", "<", "<=", ">", ">="]), OPERANDS, OPERANDS),
    st.builds(Between, OPERANDS, OPERANDS, OPERANDS),
    st.builds(In, OPERANDS, st.lists(OPERANDS, min_size=1, max_size=3).map(tuple)),
    st.builds(Exists, PATHS),
    st.builds(TypeIs, OPERANDS, st.sampled_from(TYPES)),
    st.builds(BeginsWith, OPERANDS, OPERANDS),
    st.builds(Contains, OPERANDS, OPERANDS),
)
CONDITIONS = st.recursive(
    TESTS,
    lambda inner: st.one_of(
        st.builds(Not, inner),
        st.builds(And, st.lists(inner, max_size=3).map(tuple)),
        st.builds(Or, st.lists(inner, max_size=3).map(tuple)),
    ),
    max_leaves=5,
)
