"""KeyConditionExpression: which items each operator selects, and how a wrong condition is rejected."""

from __future__ import annotations

import base64

from ..harness import Case, Fails, Json, Step, case, invalid

#: One partition per sort key type, in the order in which DynamoDB keeps it.
STRINGS = ["A", "B", "a", "ab", "abc", "b", "%", "_"]
STRINGS.sort(key=str.encode)
NUMBERS = ["-1000", "-10", "-1.5", "-0.001", "0", "0.5", "2", "10", "100"]
BINARIES = [
    base64.b64encode(octets).decode() for octets in (b"\0", b"\1", b"\1\xff", b"\x7f", b"\x80", b"\xff")
]
PARTITIONS: dict[str, tuple[str, str, list[str]]] = {
    "string": ("Pair", "S", STRINGS),
    "number": ("NumberSort", "N", NUMBERS),
    "binary": ("BinarySort", "B", BINARIES),
}


def octets(*values: int) -> str:
    return base64.b64encode(bytes(values)).decode()


def asked(table: str, condition: str, values: Json, **more: object) -> Json:
    return {
        "TableName": table,
        "KeyConditionExpression": condition,
        "ExpressionAttributeValues": values,
        **more,
    }


def selects(kind: str, clause: str, operands: list[str], expected: list[str]) -> Case:
    """`clause` on the sort key sk of a filled partition gives exactly `expected`, in order."""
    table, tag, partition = PARTITIONS[kind]
    items = [{"pk": {"S": "p"}, "sk": {tag: value}} for value in partition]
    values = {":p": {"S": "p"}} | {f":{place}": {tag: value} for place, value in enumerate(operands)}
    return case(
        f"{clause} with {operands} on a {kind} sort key gives {len(expected)} items in order",
        *(Step("PutItem", {"TableName": table, "Item": item}) for item in reversed(items)),
        # Another partition, to see that it does not leak in.
        Step("PutItem", {"TableName": table, "Item": {"pk": {"S": "other"}, "sk": {tag: partition[2]}}}),
        Step(
            "Query",
            asked(table, f"pk = :p AND {clause}", values),
            {
                "Items": [{"pk": {"S": "p"}, "sk": {tag: value}} for value in expected],
                "Count": len(expected),
                "ScannedCount": len(expected),
            },
        ),
        tables=table,
    )


def refused(
    name: str,
    condition: str,
    values: Json,
    text: str,
    *,
    table: str = "Pair",
    local: str = "",
    **more: object,
) -> Case:
    request = asked(table, condition, values, **more)
    if not values:
        del request["ExpressionAttributeValues"]
    return case(name, Step("Query", request, invalid(text)), tables=table, local=local)


SELECTIONS = [
    selects("string", "sk = :0", ["ab"], ["ab"]),
    selects("string", "sk = :0", ["AB"], []),
    selects("string", "sk < :0", ["a"], ["%", "A", "B", "_"]),
    selects("string", "sk <= :0", ["a"], ["%", "A", "B", "_", "a"]),
    selects("string", "sk > :0", ["ab"], ["abc", "b"]),
    selects("string", "sk >= :0", ["ab"], ["ab", "abc", "b"]),
    selects("string", "sk BETWEEN :0 AND :1", ["B", "ab"], ["B", "_", "a", "ab"]),
    selects("string", "sk BETWEEN :0 AND :1", ["ab", "ab"], ["ab"]),
    selects("string", "begins_with(sk, :0)", ["a"], ["a", "ab", "abc"]),
    selects("string", "begins_with(sk, :0)", ["A"], ["A"]),
    selects("string", "begins_with(sk, :0)", ["%"], ["%"]),
    selects("string", "begins_with(sk, :0)", ["_"], ["_"]),
    selects("string", "begins_with(sk, :0)", ["abcd"], []),
    selects("string", ":0 = sk", ["b"], ["b"]),
    selects("string", ":0 < sk", ["ab"], ["abc", "b"]),
    selects("string", ":0 >= sk", ["A"], ["%", "A"]),
    selects("string", "(sk > :0)", ["abc"], ["b"]),
    selects("number", "sk = :0", ["2.0"], ["2"]),
    selects("number", "sk < :0", ["-1.5"], ["-1000", "-10"]),
    selects("number", "sk <= :0", ["-1.5"], ["-1000", "-10", "-1.5"]),
    selects("number", "sk > :0", ["2"], ["10", "100"]),
    selects("number", "sk >= :0", ["0"], ["0", "0.5", "2", "10", "100"]),
    selects("number", "sk BETWEEN :0 AND :1", ["-0.5", "1e1"], ["-0.001", "0", "0.5", "2", "10"]),
    selects("number", ":0 > sk", ["-10"], ["-1000"]),
    selects("binary", "sk = :0", [octets(1)], [octets(1)]),
    selects("binary", "sk < :0", [octets(0x7F)], [octets(0), octets(1), octets(1, 255)]),
    selects("binary", "sk <= :0", [octets(1)], [octets(0), octets(1)]),
    selects("binary", "sk > :0", [octets(0x7F)], [octets(0x80), octets(0xFF)]),
    selects("binary", "sk >= :0", [octets(0x80)], [octets(0x80), octets(0xFF)]),
    selects(
        "binary",
        "sk BETWEEN :0 AND :1",
        [octets(1, 0), octets(0x80)],
        [octets(1, 255), octets(127), octets(128)],
    ),
    selects("binary", "begins_with(sk, :0)", [octets(1)], [octets(1), octets(1, 255)]),
    selects("binary", "begins_with(sk, :0)", [octets(255)], [octets(255)]),
]

A: Json = {":a": {"S": "a"}}
AB: Json = {":a": {"S": "a"}, ":b": {"S": "b"}}
AN: Json = {":a": {"S": "a"}, ":n": {"N": "1"}}
MISSED = "Query condition missed key schema element: "
UNNAMED = "does not name the key element"
UNSUPPORTED = "Query key condition not supported"
MISTYPED = "One or more parameter values were invalid: Condition parameter type does not match schema type"
OPERATOR = "Invalid operator used in KeyConditionExpression: "
CONDITION = "Invalid condition in KeyConditionExpression: "
PREFIX = "Invalid KeyConditionExpression: "
EMPTY_KEY = (
    "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an "
    "empty {} value. Key: {}"
)

#: name, condition, values, text
REFUSALS = [
    refused("the partition key must be in the condition", "sk = :a", A, MISSED + "pk", local=UNNAMED),
    refused(
        "a condition on an unrelated attribute alone misses the partition key",
        "z = :a",
        A,
        MISSED + "pk",
        local=UNNAMED,
    ),
    refused(
        "a second condition must be on the sort key", "pk = :a AND z = :a", A, MISSED + "sk", local=UNNAMED
    ),
    refused(
        "three conditions are too many",
        "pk = :a AND sk = :a AND z = :a",
        A,
        "The number of query conditions (3) exceeds the number of key attributes defined in the schema (2)",
        local="names the maximum number of conditions",
    ),
    refused(
        "a table without sort key takes one condition", "pk = :a AND z = :a", A, UNSUPPORTED, table="Hash"
    ),
    refused(
        "two unrelated attributes on a table without sort key are not supported",
        "y = :a AND z = :a",
        A,
        UNSUPPORTED,
        table="Hash",
    ),
    *(
        refused(f"the partition key does not take {clause}", clause, values, UNSUPPORTED)
        for clause, values in (
            ("pk < :a", A),
            ("pk <= :a", A),
            ("pk > :a", A),
            (":a < pk", A),
            ("begins_with(pk, :a)", A),
            ("pk BETWEEN :a AND :b", AB),
        )
    ),
    *(
        refused(
            f"two conditions on one key are rejected: {condition}",
            condition,
            AB,
            "Invalid KeyConditionExpression: KeyConditionExpressions must only contain one condition per key",
            local="does not name the expression",
        )
        for condition in (
            "pk = :a AND pk = :b",
            "pk = :a AND sk > :a AND sk < :b",
            "(pk = :a AND sk > :a) AND sk < :b",
        )
    ),
    *(
        refused(f"{operator} is not an operator of key conditions", condition, A, OPERATOR + operator)
        for operator, condition in (
            ("OR", "pk = :a OR sk = :a"),
            ("NOT", "pk = :a AND NOT sk = :a"),
            ("IN", "pk = :a AND sk IN (:a)"),
            ("<>", "pk = :a AND sk <> :a"),
            ("contains", "pk = :a AND contains(sk, :a)"),
            ("attribute_exists", "pk = :a AND attribute_exists(sk)"),
            ("attribute_not_exists", "pk = :a AND attribute_not_exists(sk)"),
        )
    ),
    refused(
        "attribute_type is not an operator of key conditions",
        "pk = :a AND attribute_type(sk, :a)",
        {":a": {"S": "S"}},
        OPERATOR + "attribute_type",
    ),
    refused(
        "size is a nested operation",
        "pk = :a AND size(sk) > :n",
        AN,
        "KeyConditionExpressions cannot contain nested operations",
    ),
    *(
        refused(
            f"a condition on a nested attribute is rejected: {path}",
            f"pk = :a AND {path} = :a",
            A,
            "Invalid KeyConditionExpression: KeyConditionExpressions cannot have conditions on nested attributes",
            local=local,
        )
        for path, local in (
            ("sk.b", "has a different text: key attributes must be scalars"),
            ("sk[0]", "has a different text: key attributes must be scalars"),
        )
    ),
    refused(
        "two attributes cannot be compared",
        "pk = sk",
        {},
        CONDITION + "Multiple attribute names used in one condition",
    ),
    refused("two values cannot be compared", ":a = :b", AB, CONDITION + "No key attribute specified"),
    refused(
        "BETWEEN takes the attribute first",
        "pk = :a AND :a BETWEEN sk AND :b",
        AB,
        CONDITION + "BETWEEN operator must have the key attribute as its first operand",
    ),
    refused(
        "begins_with takes the attribute first",
        "pk = :a AND begins_with(:a, sk)",
        A,
        CONDITION + "begins_with operator must have the key attribute as its first operand",
    ),
    refused(
        "BETWEEN rejects a string range that is upside down",
        "pk = :a AND sk BETWEEN :b AND :a",
        AB,
        PREFIX + "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
        "lower bound operand: AttributeValue: {S:b}, upper bound operand: AttributeValue: {S:a}",
    ),
    refused(
        "BETWEEN compares its bounds as numbers",
        "pk = :a AND sk BETWEEN :ten AND :nine",
        {":a": {"S": "a"}, ":ten": {"N": "10"}, ":nine": {"N": "9"}},
        PREFIX + "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
        "lower bound operand: AttributeValue: {N:10}, upper bound operand: AttributeValue: {N:9}",
        table="NumberSort",
    ),
    refused(
        "BETWEEN rejects bounds of two types",
        "pk = :a AND sk BETWEEN :n AND :a",
        AN,
        PREFIX + "The BETWEEN operator requires same data type for lower and upper bounds; "
        "lower bound operand: AttributeValue: {N:1}, upper bound operand: AttributeValue: {S:a}",
    ),
    refused("a number does not fit a string partition key", "pk = :n", {":n": {"N": "1"}}, MISTYPED),
    refused("a string does not fit a number partition key", "pk = :a", A, MISTYPED, table="NumberHash"),
    refused("a number does not fit a string sort key", "pk = :a AND sk = :n", AN, MISTYPED),
    refused(
        "a string does not fit a number sort key", "pk = :a AND sk = :a", A, MISTYPED, table="NumberSort"
    ),
    refused(
        "a string does not fit a binary sort key", "pk = :a AND sk >= :a", A, MISTYPED, table="BinarySort"
    ),
    refused(
        "a wrong type is reported before a wrong operator on the partition key",
        "pk > :n",
        {":n": {"N": "1"}},
        MISTYPED,
    ),
    refused(
        "begins_with takes no number",
        "pk = :a AND begins_with(sk, :n)",
        AN,
        PREFIX
        + "Incorrect operand type for operator or function; operator or function: begins_with, operand type: N",
        table="NumberSort",
    ),
    refused(
        "an empty partition key value is rejected",
        "pk = :e",
        {":e": {"S": ""}},
        EMPTY_KEY.format("string", "pk"),
    ),
    refused(
        "an empty sort key value is rejected",
        "pk = :a AND sk > :e",
        {":a": {"S": "a"}, ":e": {"S": ""}},
        EMPTY_KEY.format("string", "sk"),
    ),
    refused(
        "an empty binary sort key value is rejected",
        "pk = :a AND sk > :e",
        {":a": {"S": "a"}, ":e": {"B": ""}},
        EMPTY_KEY.format("binary", "sk"),
        table="BinarySort",
    ),
    refused("an empty key condition is rejected", "", A, PREFIX + "The expression can not be empty;"),
    refused(
        "an undefined value is rejected",
        "pk = :a",
        {},
        PREFIX + "An expression attribute value used in expression is not defined; attribute value: :a",
    ),
    refused(
        "an undefined name is rejected",
        "#p = :a",
        A,
        PREFIX + "An expression attribute name used in the document path is not defined; attribute name: #p",
    ),
    refused(
        "an unused value is rejected",
        "pk = :a",
        AB,
        "Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}",
    ),
    refused(
        "an unused name is rejected",
        "pk = :a",
        A,
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}",
        ExpressionAttributeNames={"#n": "x"},
    ),
    refused(
        "an unknown function is rejected",
        "pk = :a AND dog(sk, :a)",
        A,
        PREFIX + "Invalid function name; function: dog",
    ),
    refused(
        "begins_with is case sensitive",
        "pk = :a AND BEGINS_WITH(sk, :a)",
        A,
        PREFIX + "Invalid function name; function: BEGINS_WITH",
    ),
    refused(
        "begins_with takes two operands",
        "pk = :a AND begins_with(sk)",
        A,
        PREFIX + "Incorrect number of operands for operator or function; operator or function: begins_with, "
        "number of operands: 1",
    ),
    refused(
        "double parentheses are redundant",
        "((pk = :a)) AND sk = :a",
        A,
        PREFIX + "The expression has redundant parentheses;",
    ),
    refused(
        "!= is a syntax error", "pk = :a AND sk != :a", A, PREFIX + 'Syntax error; token: "!", near: "sk !="'
    ),
    refused("a lone name is a syntax error", "pk", {}, PREFIX + 'Syntax error; token: "<EOF>", near: "pk"'),
    refused(
        "a reserved word needs a placeholder",
        "pk = :a AND name = :a",
        A,
        PREFIX + "Attribute name is a reserved keyword; reserved keyword: name",
    ),
]


def accepted(name: str, condition: str, values: Json, **more: object) -> Case:
    """The condition finds the one item (a, b)."""
    item = {"pk": {"S": "a"}, "sk": {"S": "b"}}
    return case(
        name,
        Step("PutItem", {"TableName": "Pair", "Item": item}),
        Step("PutItem", {"TableName": "Pair", "Item": {"pk": {"S": "a"}, "sk": {"S": "c"}}}),
        Step(
            "Query",
            asked("Pair", condition, values, **more),
            {"Items": [item], "Count": 1, "ScannedCount": 1},
        ),
        tables="Pair",
    )


FORMS = [
    accepted("the sort key may come first", "sk = :b AND pk = :a", AB),
    accepted("one pair of parentheses on each level is fine", "((sk = :b) AND (pk = :a))", AB),
    accepted("keywords take any case", "pk = :a aNd sk bEtWeEn :b AnD :b", AB),
    accepted("blanks do not matter", "  pk=:a AND\n\tsk  =  :b ", AB),
    accepted(
        "placeholders replace the key names",
        "#1 = :a AND #s = :b",
        AB,
        ExpressionAttributeNames={"#1": "pk", "#s": "sk"},
    ),
    accepted("one value may serve twice", "pk = :a AND sk BETWEEN :b AND :b", AB),
]

ORDER = [
    case(
        "an unused value is reported before a missing table",
        Step(
            "Query",
            asked("Nowhere", "pk = :a", AB),
            invalid("Value provided in ExpressionAttributeValues unused in expressions: keys: {:b}"),
        ),
        local="looks up the table first",
    ),
    case(
        "a forbidden operator is reported before a missing table",
        Step("Query", asked("Nowhere", "pk = :a OR sk = :a", A), invalid(OPERATOR + "OR")),
        local="looks up the table first",
    ),
    case(
        "a missing table is reported before a missing key element",
        Step(
            "Query",
            asked("Nowhere", "z = :a", A),
            Fails("ResourceNotFoundException", "Requested resource not found"),
        ),
        local="has a different text for the missing table",
    ),
    refused(
        "an undefined value is reported before an unused one",
        "pk = :x",
        A,
        PREFIX + "An expression attribute value used in expression is not defined; attribute value: :x",
    ),
    refused(
        "a bad key condition is reported before a bad filter",
        "pk = :a AND dog(sk)",
        A,
        PREFIX + "Invalid function name; function: dog",
        FilterExpression="cat(x)",
        local="parses the filter first",
    ),
    refused(
        "an unused name is reported before an unused value",
        "pk = :a",
        AB,
        "Value provided in ExpressionAttributeNames unused in expressions: keys: {#n}",
        ExpressionAttributeNames={"#n": "x"},
    ),
]

CASES: list[Case] = [*SELECTIONS, *REFUSALS, *FORMS, *ORDER]
