"""The language of update expressions: clauses, functions, operators, paths and their refusals."""

from __future__ import annotations

from typing import Any

from .. import evidence
from ..harness import Case, Expectation, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
MISSING = invalid("The provided expression refers to an attribute that does not exist in the item")
WRONG_TYPE = invalid("An operand in the update expression has an incorrect data type")
PATH = invalid("The document path provided in the update expression is invalid for update")
OVERFLOW = "Number overflow. Attempting to store a number with magnitude larger than supported range"
UNDERFLOW = "Number underflow. Attempting to store a number with magnitude smaller than supported range"


def n(number: float) -> Json:
    return {"N": str(number)}


def numbers(*members: int) -> Json:
    return {"L": [n(member) for member in members]}


def update(
    expression: str,
    expect: Expectation | None = None,
    values: Json | None = None,
    names: dict[str, str] | None = None,
    **more: Any,
) -> Step:
    request: Json = {"TableName": "Hash", "Key": KEY, "UpdateExpression": expression, **more}
    if values:
        request["ExpressionAttributeValues"] = values
    if names:
        request["ExpressionAttributeNames"] = names
    return Step("UpdateItem", request, expect)


def refused(text: str, captured: str = evidence.EXPRESSION) -> Expectation:
    return counted(f"Invalid UpdateExpression: {text}", captured)


ITEM: Json = {
    **KEY,
    "x": n(5),
    "y": n(2),
    "word": {"S": "hello"},
    "arr": numbers(2, 3, 4, 5, 6, 7),
    "doc": {"M": {"p": n(1), "deep": {"M": {"q": numbers(1)}}, "tags": {"SS": ["p", "q"]}}},
    "tags": {"SS": ["p", "q"]},
    "ids": {"NS": ["1", "2"]},
    "raw": {"BS": ["YQ=="]},
}
SEED = Step("PutItem", {"TableName": "Hash", "Item": ITEM}, {})
V: Json = {":v": n(9)}


def becomes(title: str, expression: str, changes: Json, values: Json | None = None, **more: Any) -> Case:
    """The item after the update is the seed with these top-level changes; None removes."""
    after = {name: value for name, value in {**ITEM, **changes}.items() if value is not None}
    return case(
        title,
        SEED,
        update(expression, {"Attributes": after}, values, more.pop("names", None), ReturnValues="ALL_NEW"),
        tables="Hash",
        **more,
    )


def document(**changes: Any) -> Json:
    """The seed's document with changes; None removes."""
    members: Json = {**ITEM["doc"]["M"], **changes}
    return {"M": {name: member for name, member in members.items() if member is not None}}


EFFECTS = [
    becomes("SET assigns a value", "SET x = :v", {"x": n(9)}, V),
    becomes("SET copies an attribute", "SET z = word", {"z": {"S": "hello"}}),
    becomes("SET copies from within a document", "SET z = doc.deep.q[0]", {"z": n(1)}),
    becomes(
        "SET reads values from before the update, so two attributes swap",
        "SET x = y, y = x",
        {"x": n(2), "y": n(5)},
    ),
    becomes("REMOVE and SET may move a value", "REMOVE x SET z = x", {"x": None, "z": n(5)}),
    becomes(
        "clauses may come in any order and case",
        "rEmOvE y aDd x :v sEt z = :v",
        {"y": None, "x": n(14), "z": n(9)},
        V,
    ),
    becomes("blanks are free", "  SET\n x\t=:v,z=:v ", {"x": n(9), "z": n(9)}, V),
    becomes("blanks are free within a path", "SET doc . p = :v", {"doc": document(p=n(9))}, V),
    becomes(
        "an alias is one name, also with a dot", "SET #d = :v", {"doc.p": n(9)}, V, names={"#d": "doc.p"}
    ),
    becomes(
        "an alias may be used within a path",
        "SET doc.#p = :v",
        {"doc": document(p=n(9))},
        V,
        names={"#p": "p"},
    ),
    becomes("an alias may start with a digit", "SET #1 = :_", {"x": n(9)}, {":_": n(9)}, names={"#1": "x"}),
    becomes("an alias allows a reserved word", "SET #s = :v", {"status": n(9)}, V, names={"#s": "status"}),
    becomes("SET replaces a whole document", "SET doc = :v", {"doc": {"M": {}}}, {":v": {"M": {}}}),
    becomes("SET adds a member to a map", "SET doc.z = :v", {"doc": document(z=n(9))}, V),
    becomes("SET replaces an element of a list", "SET arr[1] = :v", {"arr": numbers(2, 9, 4, 5, 6, 7)}, V),
    becomes(
        "SET past the end of a list appends", "SET arr[50] = :v", {"arr": numbers(2, 3, 4, 5, 6, 7, 9)}, V
    ),
    becomes(
        "elements set past the end come in the order of their index",
        "SET arr[84] = :a, arr[37] = :b, arr[50] = :c",
        {"arr": numbers(2, 3, 4, 5, 6, 7, 11, 12, 10)},
        {":a": n(10), ":b": n(11), ":c": n(12)},
    ),
    becomes("REMOVE takes an element and closes the gap", "REMOVE arr[1]", {"arr": numbers(2, 4, 5, 6, 7)}),
    becomes(
        "REMOVE of several elements counts from before", "REMOVE arr[0], arr[2]", {"arr": numbers(3, 5, 6, 7)}
    ),
    becomes("REMOVE past the end of a list is nothing", "REMOVE arr[17]", {}),
    becomes("REMOVE of a missing attribute is nothing", "REMOVE nope", {}),
    becomes("REMOVE of a missing member is nothing", "REMOVE doc.nope", {}),
    becomes(
        "REMOVE of the last element leaves an empty list",
        "REMOVE doc.deep.q[0]",
        {"doc": document(deep={"M": {"q": {"L": []}}})},
    ),
    becomes(
        "REMOVE of the last member leaves an empty map",
        "REMOVE doc.deep.q",
        {"doc": document(deep={"M": {}})},
    ),
    becomes(
        "REMOVE before SET: indexes are those before the update",
        "REMOVE arr[1] SET arr[3] = :v",
        {"arr": numbers(2, 4, 9, 6, 7)},
        V,
    ),
    becomes(
        "SET before REMOVE: indexes are those before the update",
        "SET arr[3] = :v REMOVE arr[1]",
        {"arr": numbers(2, 4, 9, 6, 7)},
        V,
    ),
    becomes("SET adds", "SET x = x + :v", {"x": n(14)}, V),
    becomes("SET subtracts", "SET x = :v - x", {"x": n(4)}, V),
    becomes("SET adds two attributes into a third", "SET z = x + y", {"z": n(7)}),
    becomes("sums are exact decimals", "SET z = :a + :b", {"z": n(0.3)}, {":a": n(0.1), ":b": n(0.2)}),
    becomes("a sum may be in parentheses", "SET x = (x + :v)", {"x": n(14)}, V),
    becomes(
        "sums keep 38 digits",
        "SET z = :a + :b",
        {"z": {"N": "9" * 38}},
        {":a": {"N": "9" * 37 + "8"}, ":b": n(1)},
    ),
    becomes("if_not_exists keeps a value", "SET x = if_not_exists(x, :v)", {}, V),
    becomes("if_not_exists gives a default", "SET z = if_not_exists(z, :v)", {"z": n(9)}, V),
    becomes("if_not_exists reads another attribute", "SET z = if_not_exists(x, :v)", {"z": n(5)}, V),
    becomes(
        "if_not_exists nests in its second place",
        "SET z = if_not_exists(a, if_not_exists(b, :v))",
        {"z": n(9)},
        V,
    ),
    becomes("if_not_exists adds", "SET z = if_not_exists(z, :v) + :v", {"z": n(18)}, V),
    becomes(
        "list_append appends",
        "SET arr = list_append(arr, :v)",
        {"arr": numbers(2, 3, 4, 5, 6, 7, 8)},
        {":v": numbers(8)},
    ),
    becomes(
        "list_append prepends",
        "SET arr = list_append(:v, arr)",
        {"arr": numbers(8, 2, 3, 4, 5, 6, 7)},
        {":v": numbers(8)},
    ),
    becomes(
        "list_append takes if_not_exists",
        "SET z = list_append(if_not_exists(z, :e), :v)",
        {"z": numbers(8)},
        {":e": {"L": []}, ":v": numbers(8)},
    ),
    becomes("ADD adds to a number", "ADD x :v", {"x": n(14)}, V),
    becomes("ADD starts a number from zero", "ADD z :v", {"z": n(9)}, V),
    becomes("ADD takes a negative number", "ADD x :v", {"x": n(-4)}, {":v": n(-9)}),
    becomes("ADD adds to a number in a document", "ADD doc.p :v", {"doc": document(p=n(10))}, V),
    becomes("ADD unites sets", "ADD tags :v", {"tags": {"SS": ["p", "q", "r"]}}, {":v": {"SS": ["q", "r"]}}),
    becomes(
        "ADD unites number sets by value",
        "ADD ids :v",
        {"ids": {"NS": ["1", "2", "3"]}},
        {":v": {"NS": ["1.0", "3"]}},
    ),
    becomes("ADD starts a set", "ADD z :v", {"z": {"SS": ["r"]}}, {":v": {"SS": ["r"]}}),
    becomes(
        "DELETE takes members from a set",
        "DELETE tags :v",
        {"tags": {"SS": ["q"]}},
        {":v": {"SS": ["p", "z"]}},
    ),
    becomes(
        "DELETE of the last members removes the attribute",
        "DELETE tags :v",
        {"tags": None},
        {":v": {"SS": ["p", "q"]}},
    ),
    becomes(
        "DELETE of the last members removes the member of a map",
        "DELETE doc.tags :v",
        {"doc": document(tags=None)},
        {":v": {"SS": ["p", "q"]}},
    ),
    becomes("DELETE from a missing attribute is nothing", "DELETE z :v", {}, {":v": {"SS": ["p"]}}),
    becomes(
        "DELETE of numbers is by value", "DELETE ids :v", {"ids": {"NS": ["2"]}}, {":v": {"NS": ["1.0"]}}
    ),
    becomes("an empty string may be set", "SET z = :v", {"z": {"S": ""}}, {":v": {"S": ""}}),
]

FAILURES = [
    case(
        f"{text}: {title}",
        SEED,
        update(text, expect, values),
        Step("GetItem", {"TableName": "Hash", "Key": KEY}, {"Item": ITEM}),
        tables="Hash",
        local="names the precision" if "38 digits" in title else "",
    )
    for title, text, values, expect in (
        ("a missing attribute cannot be copied", "SET z = nope", None, MISSING),
        ("a missing element cannot be copied", "SET z = arr[17]", None, MISSING),
        ("a missing attribute cannot be added to", "SET z = nope + :v", V, MISSING),
        ("a missing list cannot be appended to", "SET z = list_append(nope, arr)", None, MISSING),
        ("a string cannot be added to", "SET z = word + :v", V, WRONG_TYPE),
        ("a string cannot be appended to", "SET z = list_append(word, arr)", None, WRONG_TYPE),
        ("a string takes no ADD", "ADD word :v", V, WRONG_TYPE),
        ("a string set takes no numbers", "ADD tags :v", {":v": {"NS": ["1"]}}, WRONG_TYPE),
        ("a number takes no DELETE", "DELETE x :v", {":v": {"NS": ["1"]}}, WRONG_TYPE),
        ("a number set takes no strings", "DELETE ids :v", {":v": {"SS": ["1"]}}, WRONG_TYPE),
        ("a missing map has no members to set", "SET nope.z = :v", V, PATH),
        ("a missing list has no elements to set", "SET nope[0] = :v", V, PATH),
        ("a string has no members", "SET word.z = :v", V, PATH),
        ("a list has no members", "SET arr.z = :v", V, PATH),
        ("a map has no elements", "SET doc[0] = :v", V, PATH),
        ("a path does not create maps on its way", "SET doc.fresh.z = :v", V, PATH),
        ("a string has no members to remove", "REMOVE word.z", None, PATH),
        ("a map has no elements to remove", "REMOVE doc[0]", None, PATH),
        ("a missing map has no members to add to", "ADD nope.z :v", V, PATH),
        ("a missing map has no members to delete from", "DELETE nope.z :v", {":v": {"SS": ["p"]}}, PATH),
        ("one clause that fails undoes all", "SET x = :v, z = nope", V, MISSING),
        ("a sum beyond the range", "SET x = :a + :a", {":a": {"N": "9E+125"}}, invalid(OVERFLOW)),
        (
            "a difference below the range",
            "SET x = :a - :b",
            {":a": {"N": "1.5E-130"}, ":b": {"N": "1E-130"}},
            invalid(UNDERFLOW),
        ),
        (
            "a sum of more than 38 digits",
            "SET x = :a + :b",
            {":a": {"N": "1E+50"}, ":b": n(1)},
            invalid(OVERFLOW),
        ),
        ("ADD of more than 38 digits", "ADD x :a", {":a": {"N": "1E+50"}}, invalid(OVERFLOW)),
    )
]

SYNTAX = [
    case(
        f"syntax error in {text!r}",
        update(text, refused(f'Syntax error; token: "{token}", near: "{near}"'), V if ":v" in text else None),
        tables="Hash",
    )
    for text, token, near in (
        ("whatever", "whatever", "whatever"),
        ("INVALID SYNTAX HERE", "INVALID", "INVALID SYNTAX"),
        ("SET", "<EOF>", "SET"),
        ("SET x", "<EOF>", "x"),
        ("SET x =", "<EOF>", "="),
        ("SET x = y,", "<EOF>", ","),
        ("SET x = y z = w", "z", "y z ="),
        ("SET :v = y", ":v", "SET :v ="),
        ("SET x = y / z", "/", "y / z"),
        ("SET x = y + z + w", "+", "z + w"),
        ("SET x = 5", "5", "= 5"),
        ("SET x = -y", "-", "= -y"),
        ("SET (x = y)", "(", "SET (x"),
        ("SET x = (y.z).d + e", ".", ").d"),
        ("SET x = if_not_exists(y, z + w)", "+", "z + w"),
        ("SET if_not_exists(x, y) = x", "(", "if_not_exists(x"),
        ("SET _x = y", "_", "SET _x"),
        ("SET x = _f(y)", "_", "= _f"),
        ("SET a[:v] = y", ":v", "[:v]"),
        ("SET a[#v] = y", "#v", "[#v]"),
        ("SET a.1 = y", "1", ".1 ="),
        ("SET x = y AND z = w", "AND", "y AND z"),
        ("REMOVE x = y", "=", "x = y"),
        ("REMOVE x y", "y", "x y"),
        ("ADD x", "<EOF>", "x"),
        ("ADD x y", "y", "x y"),
        ("ADD x if_not_exists(x, y)", "if_not_exists", "x if_not_exists("),
        ("DELETE x y", "y", "x y"),
    )
]

OVERLAP = "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
CONFLICT = (
    "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: "
)
ONCE = 'The "{}" section can only be used once in an update expression;'
COUNT = "Incorrect number of operands for operator or function; operator or function: "
RULES = [
    case(
        f"rejected: {text or 'an empty expression'}",
        update(text, refused(message), V if ":v" in text else None),
        tables="Hash",
    )
    for text, message in (
        ("SET x = y SET z = w", ONCE.format("SET")),
        ("REMOVE x SET z = w REMOVE y", ONCE.format("REMOVE")),
        ("ADD x :v ADD y :v", ONCE.format("ADD")),
        ("SET x = y, x = z", f"{OVERLAP}[x], path two: [x]"),
        ("SET x = y REMOVE x", f"{OVERLAP}[x], path two: [x]"),
        ("SET x.p = y, x = z", f"{OVERLAP}[x, p], path two: [x]"),
        ("REMOVE x, x.p", f"{OVERLAP}[x], path two: [x, p]"),
        ("REMOVE x[0], x[0]", f"{OVERLAP}[x, [0]], path two: [x, [0]]"),
        ("SET x[0] = y REMOVE x[0].p", f"{OVERLAP}[x, [0]], path two: [x, [0], p]"),
        ("SET x.p = y, x[1] = z", f"{CONFLICT}[x, p], path two: [x, [1]]"),
        ("SET status = y", "Attribute name is a reserved keyword; reserved keyword: status"),
        ("REMOVE doc.Absolute", "Attribute name is a reserved keyword; reserved keyword: Absolute"),
        ("SET x = dog(y)", "Invalid function name; function: dog"),
        ("SET x = LIST_APPEND(y, z)", "Invalid function name; function: LIST_APPEND"),
        ("SET x = size(y)", "The function is not allowed in an update expression; function: size"),
        ("SET x = if_not_exists(y)", f"{COUNT}if_not_exists, number of operands: 1"),
        ("SET x = list_append(y, z, w)", f"{COUNT}list_append, number of operands: 3"),
        (
            "SET x = if_not_exists(:v, y)",
            "Operator or function requires a document path; operator or function: if_not_exists",
        ),
        (
            "SET x = list_append(list_append(y, z), w)",
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        (
            "SET x = if_not_exists(y, list_append(z, w))",
            "The function is not allowed to be used this way in an expression; function: list_append",
        ),
        ("SET x = ((y))", "The expression has redundant parentheses;"),
        ("", "The expression can not be empty;"),
        (
            "SET #x = y",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
    )
]

LETTERS: Json = {
    "S": ("STRING", "a"),
    "N": ("NUMBER", "1"),
    "B": ("BINARY", "YQ=="),
    "BOOL": ("BOOLEAN", True),
    "NULL": ("NULL", True),
    "L": ("LIST", []),
    "M": ("MAP", {}),
    "SS": ("STRING_SET", ["a"]),
}
OPERANDS = [
    *(
        case(
            f"{verb} takes no operand of type {letter}",
            update(
                f"{verb} z :v",
                refused(
                    f"Incorrect operand type for operator or function; operator: {verb}, operand type: "
                    f"{LETTERS[letter][0]}, typeSet: ALLOWED_FOR_{verb}_OPERAND"
                ),
                {":v": {letter: LETTERS[letter][1]}},
            ),
            tables="Hash",
        )
        for verb, letters in (("ADD", "S B BOOL NULL L M"), ("DELETE", "S N B BOOL NULL L M"))
        for letter in letters.split()
    ),
    *(
        case(
            f"{operator} takes no operand of type {letter}",
            update(
                text,
                refused(
                    "Incorrect operand type for operator or function; operator or function: "
                    f"{operator}, operand type: {letter}"
                ),
                {":v": {letter: LETTERS[letter][1]}},
            ),
            tables="Hash",
        )
        for operator, text, letters in (
            ("+", "SET z = x + :v", "S B BOOL NULL L M SS"),
            ("-", "SET z = :v - x", "S L"),
            ("list_append", "SET z = list_append(arr, :v)", "S N M SS"),
        )
        for letter in letters.split()
    ),
    case(
        "an expression of 4096 bytes is accepted, blanks included",
        update(f"SET z ={' ' * 4087}:v", {}, V),
        tables="Hash",
    ),
    case(
        "an expression of 4097 bytes is rejected",
        update(
            f"SET z ={' ' * 4088}:v",
            refused("Expression size has exceeded the maximum allowed size;", evidence.EXPRESSION_SIZE),
            V,
        ),
        tables="Hash",
    ),
    case(
        "a path of 33 levels is rejected",
        update(
            f"REMOVE {'.'.join('x' * 33)}",
            refused("The document path has too many nesting levels; nesting levels: 33"),
        ),
        tables="Hash",
    ),
    case(
        "a value that is not defined",
        update(
            "SET x = :w",
            refused("An expression attribute value used in expression is not defined; attribute value: :w"),
            V,
        ),
        tables="Hash",
    ),
    case(
        "a value that is not used",
        update(
            "SET x = y",
            counted(
                "Value provided in ExpressionAttributeValues unused in expressions: keys: {:v}",
                evidence.UNUSED,
            ),
            V,
        ),
        tables="Hash",
    ),
    case(
        "a name that is not used",
        update(
            "SET x = y",
            counted(
                "Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}",
                evidence.UNUSED,
            ),
            names={"#x": "x"},
        ),
        tables="Hash",
    ),
    case(
        "paths overlap by what their aliases mean",
        update(
            "SET #x = :v, x = :v", refused(f"{OVERLAP}[x], path two: [x]", evidence.OVERLAP), V, {"#x": "x"}
        ),
        tables="Hash",
    ),
]

CASES: list[Case] = [*EFFECTS, *FAILURES, *SYNTAX, *RULES, *OPERANDS]
