"""The legacy parameters of item operations: Expected, ConditionalOperator, AttributeUpdates, AttributesToGet."""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
INVALID = "One or more parameter values were invalid: "
LOCAL_TEXT = "has a different text"
ITEM: Json = {
    **KEY,
    "n": {"N": "5"},
    "s": {"S": "hello"},
    "b": {"B": "aGVsbG8="},
    "t": {"BOOL": True},
    "z": {"NULL": True},
    "l": {"L": [{"N": "5"}, {"S": "p"}]},
    "m": {"M": {"p": {"N": "1"}}},
    "ss": {"SS": ["p", "q"]},
    "ns": {"NS": ["1", "2"]},
}
SEED = Step("PutItem", {"TableName": "Hash", "Item": ITEM}, {})


def n(number: float) -> Json:
    return {"N": str(number)}


def s(text: str) -> Json:
    return {"S": text}


def op(operator: str, *values: Json) -> Json:
    return {"ComparisonOperator": operator, "AttributeValueList": list(values)}


def delete(expected: Json | None, expect: Expectation, **more: Any) -> Step:
    request: Json = {"TableName": "Hash", "Key": KEY, **more}
    if expected is not None:
        request["Expected"] = expected
    return Step("DeleteItem", request, expect)


def shown(condition: Json) -> str:
    values = condition.get("AttributeValueList", [])
    return f"{condition['ComparisonOperator']} {', '.join(str(*value.values()) for value in values)}".strip()


def truths(expect: Expectation, *conditions: tuple[str, Json]) -> list[Case]:
    verdict = "holds" if expect == {} else "fails"
    return [
        case(f"{verdict}: {name} {shown(condition)}", SEED, delete({name: condition}, expect), tables="Hash")
        for name, condition in conditions
    ]


COMPARISONS = [
    *truths(
        {},
        ("n", op("EQ", n(5.0))),
        ("ss", op("EQ", {"SS": ["q", "p"]})),
        ("m", op("EQ", {"M": {"p": n(1)}})),
        ("n", op("NE", n(4))),
        ("n", op("NE", s("5"))),
        ("nope", op("NE", n(5))),
        ("n", op("LT", n(6))),
        ("n", op("LE", n(5))),
        ("n", op("GT", n(4))),
        ("n", op("GE", n(5))),
        ("s", op("GT", s("Zoo"))),
        ("nope", {"ComparisonOperator": "NULL"}),
        ("z", {"ComparisonOperator": "NOT_NULL"}),
        ("n", op("IN", n(4), n(5))),
        ("n", op("BETWEEN", n(5), n(6))),
        ("s", op("BEGINS_WITH", s("he"))),
        ("b", op("BEGINS_WITH", {"B": "aGVs"})),
        ("s", op("CONTAINS", s("ell"))),
        ("ss", op("CONTAINS", s("p"))),
        ("ns", op("CONTAINS", n(2))),
        ("l", op("CONTAINS", n(5))),
        ("s", op("NOT_CONTAINS", s("zoo"))),
        ("ss", op("NOT_CONTAINS", s("z"))),
        ("s", op("NOT_CONTAINS", n(1))),
    ),
    *truths(
        FAILED,
        ("n", op("EQ", s("5"))),
        ("t", op("EQ", n(1))),
        ("nope", op("EQ", n(5))),
        ("n", op("NE", n(5))),
        ("n", op("LT", s("6"))),
        ("nope", op("LT", n(6))),
        ("l", op("LT", n(6))),
        ("z", {"ComparisonOperator": "NULL"}),
        ("nope", {"ComparisonOperator": "NOT_NULL"}),
        ("ss", op("IN", s("p"), s("q"))),
        ("n", op("BETWEEN", s("1"), s("9"))),
        ("nope", op("BETWEEN", n(1), n(9))),
        ("s", op("BEGINS_WITH", s("He"))),
        ("n", op("BEGINS_WITH", s("5"))),
        ("ss", op("CONTAINS", s("pq"))),
        ("nope", op("CONTAINS", s("p"))),
        ("nope", op("NOT_CONTAINS", s("p"))),
        ("ss", op("NOT_CONTAINS", s("p"))),
    ),
]

SHORTHAND = [
    case(f"{'holds' if expect == {} else 'fails'}: {title}", SEED, delete(expected, expect), tables="Hash")
    for title, expected, expect in (
        ("Value alone means equality", {"n": {"Value": n(5)}}, {}),
        ("Value of another attribute", {"n": {"Value": n(6)}}, FAILED),
        ("Value of a missing attribute", {"nope": {"Value": n(5)}}, FAILED),
        ("Exists true with its value", {"n": {"Exists": True, "Value": n(5)}}, {}),
        ("Exists true with another value", {"n": {"Exists": True, "Value": n(6)}}, FAILED),
        ("Exists false of a missing attribute", {"nope": {"Exists": False}}, {}),
        ("Exists false of an attribute", {"n": {"Exists": False}}, FAILED),
        ("Value with a ComparisonOperator", {"n": {"Value": n(4), "ComparisonOperator": "GT"}}, {}),
        ("no conditions at all", {}, {}),
        ("two conditions, both met", {"n": {"Value": n(5)}, "nope": {"Exists": False}}, {}),
        ("two conditions, one met", {"n": {"Value": n(6)}, "nope": {"Exists": False}}, FAILED),
    )
]

EITHER: Json = {"n": {"Value": n(6)}, "nope": {"Exists": False}}
NEITHER: Json = {"n": {"Value": n(6)}, "s": {"Exists": False}}
OPERATOR = [
    case(
        "OR holds when one condition does", SEED, delete(EITHER, {}, ConditionalOperator="OR"), tables="Hash"
    ),
    case("OR fails when none does", SEED, delete(NEITHER, FAILED, ConditionalOperator="OR"), tables="Hash"),
    case(
        "AND fails when one does not", SEED, delete(EITHER, FAILED, ConditionalOperator="AND"), tables="Hash"
    ),
    case(
        "ConditionalOperator needs Expected",
        delete(
            None,
            counted("ConditionalOperator cannot be used without Filter or Expected", evidence.INFERRED),
            ConditionalOperator="OR",
        ),
        tables="Hash",
    ),
    case(
        "ConditionalOperator needs conditions in Expected",
        delete(
            {},
            counted("ConditionalOperator cannot be used without Filter or Expected", evidence.INFERRED),
            ConditionalOperator="OR",
        ),
        tables="Hash",
    ),
    case(
        "ConditionalOperator needs two conditions",
        delete(
            {"n": {"Value": n(5)}},
            counted(
                "ConditionalOperator can only be used when Filter or Expected has two or more elements",
                evidence.INFERRED,
            ),
            ConditionalOperator="OR",
        ),
        tables="Hash",
    ),
]

COUNT = "Invalid number of argument(s) for the {} ComparisonOperator"
NOT_VALID = "ComparisonOperator {} is not valid for {} AttributeValue type"
REFUSED = [
    case(
        f"rejected: {title}",
        delete({"a": condition}, counted(f"{INVALID}{why}", evidence.EXPECTED)),
        tables="Hash",
    )
    for title, condition, why in (
        ("nothing expected", {}, "Value must be provided when Exists is null for Attribute: a"),
        (
            "Exists true without Value",
            {"Exists": True},
            "Value must be provided when Exists is true for Attribute: a",
        ),
        (
            "Exists false with Value",
            {"Exists": False, "Value": s("a")},
            "Value cannot be used when Exists is false for Attribute: a",
        ),
        (
            "an operator without values",
            {"ComparisonOperator": "LT"},
            "Value or AttributeValueList must be used with ComparisonOperator: LT for Attribute: a",
        ),
        (
            "an operator with Exists",
            {"ComparisonOperator": "LT", "Exists": True},
            "Exists and ComparisonOperator cannot be used together for Attribute: a",
        ),
        (
            "Value with AttributeValueList",
            {"Value": s("a"), **op("LT", s("a"))},
            "Value and AttributeValueList cannot be used together for Attribute: a",
        ),
        (
            "AttributeValueList without an operator",
            {"AttributeValueList": [s("a")]},
            "AttributeValueList can only be used with a ComparisonOperator for Attribute: a",
        ),
        ("EQ of nothing", op("EQ"), COUNT.format("EQ")),
        ("EQ of two", op("EQ", s("a"), s("b")), COUNT.format("EQ")),
        ("NULL of one", op("NULL", s("a")), COUNT.format("NULL")),
        ("NOT_NULL of one", {"Value": s("a"), "ComparisonOperator": "NOT_NULL"}, COUNT.format("NOT_NULL")),
        ("IN of nothing", op("IN"), COUNT.format("IN")),
        ("BETWEEN of one", op("BETWEEN", n(1)), COUNT.format("BETWEEN")),
        ("BETWEEN of three", op("BETWEEN", n(1), n(2), n(3)), COUNT.format("BETWEEN")),
        (
            "IN of two types",
            op("IN", s("a"), n(1)),
            "AttributeValues inside AttributeValueList must be of same type",
        ),
        ("LT of a set", op("LT", {"SS": ["a"]}), NOT_VALID.format("LT", "SS")),
        ("GE of a boolean", op("GE", {"BOOL": True}), NOT_VALID.format("GE", "BOOL")),
        ("BEGINS_WITH of a number", op("BEGINS_WITH", n(1)), NOT_VALID.format("BEGINS_WITH", "N")),
        ("CONTAINS of a list", op("CONTAINS", {"L": []}), NOT_VALID.format("CONTAINS", "L")),
        ("IN of a list", op("IN", {"L": []}), NOT_VALID.format("IN", "L")),
        ("BETWEEN of sets", op("BETWEEN", {"SS": ["a"]}, {"SS": ["b"]}), NOT_VALID.format("BETWEEN", "SS")),
    )
]
BOUNDS = [
    case(
        "rejected: BETWEEN with its bounds reversed",
        delete(
            {"a": op("BETWEEN", s("b"), s("a"))},
            counted(
                "The BETWEEN condition was provided a range where the lower bound is greater than the upper "
                "bound",
                evidence.INFERRED,
            ),
        ),
        tables="Hash",
    ),
    case(
        "Expected guards a put",
        SEED,
        Step("PutItem", {"TableName": "Hash", "Item": KEY, "Expected": {"pk": {"Exists": False}}}, FAILED),
        tables="Hash",
    ),
    case(
        "Expected guards an update",
        SEED,
        Step(
            "UpdateItem",
            {
                "TableName": "Hash",
                "Key": KEY,
                "AttributeUpdates": {"x": {"Value": n(1)}},
                "Expected": {"n": {"Value": n(6)}},
            },
            FAILED,
        ),
        tables="Hash",
    ),
]


def update(updates: Json, expect: Expectation | None = None, **more: Any) -> Step:
    return Step("UpdateItem", {"TableName": "Hash", "Key": KEY, "AttributeUpdates": updates, **more}, expect)


def act(action: str | None, value: Json | None = None) -> Json:
    return {
        **({"Action": action} if action else {}),
        **({"Value": value} if value is not None else {}),
    }


UPDATES_REFUSED: list[tuple[str, Json, Fails, str]] = [
    (
        "PUT without a value",
        {"x": act("PUT")},
        counted(
            f"{INVALID}Only DELETE action is allowed when no attribute value is specified", evidence.INFERRED
        ),
        "",
    ),
    (
        "an update of nothing",
        {"x": {}},
        counted(
            f"{INVALID}Only DELETE action is allowed when no attribute value is specified", evidence.INFERRED
        ),
        "",
    ),
    *(
        (
            f"DELETE with a value of type {tag}",
            {"x": act("DELETE", {tag: value})},
            counted(
                f"{INVALID}DELETE action with value is not supported for the type {tag}", evidence.INFERRED
            ),
            "writes the full name of the type",
        )
        for tag, value in (
            ("S", "1"),
            ("N", "1"),
            ("B", "Yg=="),
            ("BOOL", True),
            ("L", []),
            ("M", {}),
        )
    ),
    *(
        (
            f"ADD of type {tag}",
            {"x": act("ADD", {tag: value})},
            counted(f"{INVALID}ADD action is not supported for the type {tag}", evidence.INFERRED),
            "writes the full name of the type",
        )
        for tag, value in (("S", "1"), ("B", "Yg=="), ("BOOL", True), ("M", {}))
    ),
    (
        "ADD of a number to a string",
        {"s": act("ADD", n(1))},
        invalid("Type mismatch for attribute to update"),
        "",
    ),
    (
        "ADD of numbers to strings",
        {"ss": act("ADD", {"NS": ["1"]})},
        invalid("Type mismatch for attribute to update"),
        "",
    ),
    (
        "DELETE of numbers from strings",
        {"ss": act("DELETE", {"NS": ["1"]})},
        invalid("Type mismatch for attribute to update"),
        "",
    ),
    (
        "DELETE of a set from a number",
        {"n": act("DELETE", {"NS": ["1"]})},
        invalid("Type mismatch for attribute to update"),
        "",
    ),
    (
        "an update of the key",
        {"pk": act("PUT", s("b"))},
        invalid(f"{INVALID}Cannot update attribute pk. This attribute is part of the key"),
        "",
    ),
    (
        "an empty set",
        {"x": act("PUT", {"SS": []})},
        counted(f"{INVALID}An string set  may not be empty", evidence.EMPTY_SET),
        "",
    ),
]
UPDATES = [
    *(
        case(
            title,
            SEED,
            update(
                updates,
                {
                    "Attributes": {
                        name: value for name, value in {**ITEM, **after}.items() if value is not None
                    }
                },
                ReturnValues="ALL_NEW",
            ),
            tables="Hash",
        )
        for title, updates, after in (
            ("PUT sets an attribute", {"x": act("PUT", n(1))}, {"x": n(1)}),
            ("a name with a dot is one name", {"m.p": act("PUT", n(9))}, {"m.p": n(9)}),
            ("ADD adds to a number", {"n": act("ADD", n(2))}, {"n": n(7)}),
            ("ADD subtracts a negative number", {"n": act("ADD", n(-7.5))}, {"n": n(-2.5)}),
            ("ADD starts from zero", {"x": act("ADD", n(2))}, {"x": n(2)}),
            ("ADD unites sets", {"ss": act("ADD", {"SS": ["q", "r"]})}, {"ss": {"SS": ["p", "q", "r"]}}),
            ("ADD starts a set", {"x": act("ADD", {"NS": ["1"]})}, {"x": {"NS": ["1"]}}),
            (
                "ADD appends to a list",
                {"l": act("ADD", {"L": [s("q")]})},
                {"l": {"L": [n(5), s("p"), s("q")]}},
            ),
            ("DELETE removes an attribute", {"n": act("DELETE")}, {"n": None}),
            ("DELETE of a missing attribute is nothing", {"nope": act("DELETE")}, {}),
            (
                "DELETE takes members from a set",
                {"ss": act("DELETE", {"SS": ["p", "z"]})},
                {"ss": {"SS": ["q"]}},
            ),
            (
                "DELETE of the last members removes the attribute",
                {"ss": act("DELETE", {"SS": ["p", "q"]})},
                {"ss": None},
            ),
            ("an empty update changes nothing", {}, {}),
            (
                "several attributes are updated at once",
                {"n": act("ADD", n(1)), "s": act("DELETE"), "x": act("PUT", n(3))},
                {"n": n(6), "s": None, "x": n(3)},
            ),
        )
    ),
    *(
        case(
            f"{title} leaves {'the key' if left else 'no item'} where there was none",
            update(updates, {"Attributes": KEY} if left else {}, ReturnValues="ALL_NEW"),
            Step("GetItem", {"TableName": "Hash", "Key": KEY}, {"Item": KEY} if left else {}),
            tables="Hash",
            local="" if left else "creates the item",
        )
        for title, updates, left in (
            ("an empty update", {}, True),
            ("DELETE of an attribute", {"x": act("DELETE")}, False),
            ("DELETE from a set", {"x": act("DELETE", {"SS": ["p"]})}, False),
        )
    ),
    *(
        case(
            f"{kind} after {title}",
            SEED,
            update(updates, reply, ReturnValues=kind),
            tables="Hash",
        )
        for kind, title, updates, reply in (
            ("UPDATED_OLD", "an empty update is nothing", {}, {}),
            ("UPDATED_NEW", "an empty update is nothing", {}, {}),
            ("UPDATED_OLD", "an ADD is the old number", {"n": act("ADD", n(2))}, {"Attributes": {"n": n(5)}}),
            ("UPDATED_NEW", "an ADD is the new number", {"n": act("ADD", n(2))}, {"Attributes": {"n": n(7)}}),
            ("UPDATED_NEW", "a DELETE is nothing", {"n": act("DELETE")}, {}),
            ("ALL_OLD", "a PUT is the old item", {"n": act("PUT", n(2))}, {"Attributes": ITEM}),
        )
    ),
    *(
        case(f"rejected: {title}", SEED, update(updates, refusal), tables="Hash", local=local)
        for title, updates, refusal, local in UPDATES_REFUSED
    ),
    case(
        "an update without an action is a PUT",
        update({"n": act(None, s("new"))}, {"Attributes": {"n": s("new")}}, ReturnValues="UPDATED_NEW"),
        tables="Hash",
        local="ignores an update without an action",
    ),
    case(
        "AttributeUpdates and ConditionExpression exclude each other",
        update(
            {"x": act("PUT", n(1))},
            counted(
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributeUpdates} Expression parameters: {ConditionExpression}",
                evidence.MIXED,
            ),
            ConditionExpression="attribute_exists(pk)",
        ),
        tables="Hash",
    ),
]


def get(attributes: list[str], expect: Expectation, **more: Any) -> Step:
    return Step("GetItem", {"TableName": "Hash", "Key": KEY, "AttributesToGet": attributes, **more}, expect)


GETS = [
    case(
        "AttributesToGet gives what it names",
        SEED,
        get(["n", "pk"], {"Item": {**KEY, "n": n(5)}}),
        tables="Hash",
    ),
    case(
        "AttributesToGet that matches nothing gives an empty item",
        SEED,
        get(["nope"], {"Item": {}}),
        tables="Hash",
    ),
    case("AttributesToGet of a missing item gives none", get(["n"], {}), tables="Hash"),
    case("AttributesToGet knows no paths", SEED, get(["m.p"], {"Item": {}}), tables="Hash"),
    case("AttributesToGet may name a reserved word", get(["status"], {}), tables="Hash"),
    case(
        "rejected: one attribute twice",
        get(["n", "n"], invalid(f"{INVALID}Duplicate value in attribute name: n")),
        tables="Hash",
        local=LOCAL_TEXT,
    ),
    case(
        "rejected: no attributes to get",
        get(
            [],
            invalid(
                "1 validation error detected: Value '[]' at 'attributesToGet' failed to satisfy constraint: "
                "Member must have length greater than or equal to 1"
            ),
        ),
        tables="Hash",
        local="treats an empty list as all attributes",
    ),
    case(
        "AttributesToGet and ProjectionExpression exclude each other",
        get(
            ["n"],
            invalid(
                "Can not use both expression and non-expression parameters in the same request: "
                "Non-expression parameters: {AttributesToGet} Expression parameters: {ProjectionExpression}"
            ),
            ProjectionExpression="n",
        ),
        tables="Hash",
    ),
    case(
        "names are not for AttributesToGet",
        get(
            ["n"],
            invalid("ExpressionAttributeNames can only be specified when using expressions"),
            ExpressionAttributeNames={"#n": "n"},
        ),
        tables="Hash",
    ),
]

CASES: list[Case] = [*COMPARISONS, *SHORTHAND, *OPERATOR, *REFUSED, *BOUNDS, *UPDATES, *GETS]
