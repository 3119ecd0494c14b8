"""Over arbitrary items, the inferred models can be declared, and every item is read or reported."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solotable._entities.adoption.sample import TableSample
from solotable._values import Item
from solotable.cli.design.adoption import adopt, as_json_report, text_report

NAMES = st.sampled_from(
    [
        "id",
        "name",
        "createdAt",
        "type",
        "key",
        "plan",
        "class",
        "Straße",
        "a-b",
        "2x",
        "_v",
        "date",
        "str",
        "x\n#",
        '""")',
    ]
)
TEXTS = st.text(st.sampled_from("aB1#|:$_% é\x00\"\\{}'\n"), min_size=1, max_size=6)
VALUES = st.one_of(
    TEXTS.map(lambda text: {"S": text}),
    st.sampled_from(["2026-01-01T00:00:00Z", "2026-01-01", "{}", ""]).map(lambda text: {"S": text}),
    st.integers(-5, 4 * 10**12).map(lambda number: {"N": str(number)}),
    st.sampled_from([{"N": "1.50"}, {"BOOL": True}, {"NULL": True}, {"B": "AAE="}, {"SS": ["a", "b"]}]),
    st.sampled_from([{"NS": ["1", "2.5"]}, {"L": [{"S": "x"}, {"N": "1"}]}, {"M": {"a": {"NULL": True}}}]),
)
KEYS = st.lists(st.one_of(TEXTS, st.sampled_from(["USER", "ORDER", "order", "$app"])), min_size=1, max_size=3)
ATTRIBUTES = st.dictionaries(NAMES, VALUES, max_size=4)


@st.composite
def items(draw: st.DrawFn) -> list[Item]:
    """Draw items whose keys repeat words and values of their attributes."""
    delimiter = draw(st.sampled_from("#|:"))
    found: dict[str, Item] = {}
    for _ in range(draw(st.integers(1, 6))):
        attributes: dict[str, Any] = draw(ATTRIBUTES)
        own = [value["S"] for value in attributes.values() if value.get("S")]
        sides = [draw(KEYS) + draw(st.sampled_from([own, []])) for _ in range(3)]
        partition, sort, index = (delimiter.join(side) for side in sides)
        item = {**attributes, "PK": {"S": partition}, "SK": {"S": sort}}
        found[partition + "\0" + sort] = {**item, "GSI1PK": {"S": index}} if draw(st.booleans()) else item
    return list(found.values())


DESCRIPTION = {
    "TableName": "Live",
    "KeySchema": [
        {"AttributeName": "PK", "KeyType": "HASH"},
        {"AttributeName": "SK", "KeyType": "RANGE"},
    ],
    "AttributeDefinitions": [
        {"AttributeName": name, "AttributeType": "S"} for name in ("PK", "SK", "GSI1PK")
    ],
    "GlobalSecondaryIndexes": [
        {
            "IndexName": "GSI1",
            "KeySchema": [{"AttributeName": "GSI1PK", "KeyType": "HASH"}],
            "Projection": {"ProjectionType": "ALL"},
        }
    ],
}


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(items())
def test_models_of_any_table_can_be_declared_and_account_for_every_item(sampled: list[Item]) -> None:
    adoption = adopt(TableSample.of(DESCRIPTION, None, sampled))
    check = adoption.check
    assert check.items == len(sampled)
    assert check.unchanged + len(check.problems) + len(check.unknown) == len(sampled)
    assert as_json_report(adoption)["unchanged"] == check.unchanged
    assert text_report(adoption)
