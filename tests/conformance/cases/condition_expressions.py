"""The language of conditions: comparisons, functions, logic, precedence, limits and refusals.

Every condition is asked of one item, through DeleteItem.
"""

from __future__ import annotations

from .. import evidence
from ..harness import Case, Expectation, Fails, Json, Step, case, counted, invalid

KEY: Json = {"pk": {"S": "a"}}
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
ITEM: Json = {
    **KEY,
    "one": {"N": "1"},
    "five": {"N": "5"},
    "big": {"N": "1E+3"},
    "word": {"S": "hello"},
    "wild": {"S": "50%_x"},
    "wide": {"S": "h\u00e9\U0001f600"},
    "octets": {"B": "aGVsbG8="},
    "truth": {"BOOL": True},
    "nil": {"NULL": True},
    "blank": {"S": ""},
    "arr": {"L": [{"N": "1"}, {"S": "two"}, {"SS": ["p"]}, {"L": [{"N": "3"}]}]},
    "doc": {"M": {"p": {"N": "1"}, "q": {"L": [{"N": "-1"}, {"N": "2"}]}, "and": {"N": "7"}}},
    "tags": {"SS": ["q", "p"]},
    "ids": {"NS": ["1", "2.50"]},
    "blobs": {"BS": ["aGk=", "aG8="]},
}
VALUES: Json = {
    ":one": {"N": "1"},
    ":uno": {"N": "1.0"},
    ":two": {"N": "2"},
    ":four": {"N": "4"},
    ":five": {"N": "5"},
    ":eight": {"N": "8"},
    ":thousand": {"N": "1000"},
    ":digit": {"S": "1"},
    ":word": {"S": "hello"},
    ":upper": {"S": "Hello"},
    ":he": {"S": "he"},
    ":ell": {"S": "ell"},
    ":zoo": {"S": "zoo"},
    ":hi": {"B": "aGk="},
    ":hb": {"B": "aGVs"},
    ":lo": {"B": "bG8="},
    ":half": {"S": "50"},
    ":percent": {"S": "5%"},
    ":empty": {"S": ""},
    ":p": {"S": "p"},
    ":two_and_a_half": {"N": "2.5"},
    ":pq": {"SS": ["p", "q"]},
    ":ps": {"SS": ["p"]},
    ":three": {"L": [{"N": "3.0"}]},
    ":true": {"BOOL": True},
    ":false": {"BOOL": False},
    ":null": {"NULL": True},
    ":S": {"S": "S"},
    ":N": {"S": "N"},
    ":B": {"S": "B"},
    ":BOOL": {"S": "BOOL"},
    ":NULL": {"S": "NULL"},
    ":L": {"S": "L"},
    ":M": {"S": "M"},
    ":SS": {"S": "SS"},
    ":NS": {"S": "NS"},
    ":BS": {"S": "BS"},
    ":list": {"L": [{"N": "1"}]},
    ":map": {"M": {}},
}


def used(condition: str) -> Json:
    """The values that a condition names; a name must not be the beginning of another in use."""
    words = condition.replace("(", " ").replace(")", " ").replace(",", " ").replace("=", " ").split()
    return {name: value for name, value in VALUES.items() if name in words}


def ask(
    condition: str, expect: Expectation | None, values: Json | None = None, names: Json | None = None
) -> Step:
    request: Json = {"TableName": "Hash", "Key": KEY, "ConditionExpression": condition}
    values = used(condition) if values is None else values
    if values:
        request["ExpressionAttributeValues"] = values
    if names:
        request["ExpressionAttributeNames"] = names
    return Step("DeleteItem", request, expect)


SEED = Step("PutItem", {"TableName": "Hash", "Item": ITEM}, {})


def truths(expect: Expectation, *conditions: str) -> list[Case]:
    verdict = "holds" if expect == {} else "fails"
    return [case(f"{verdict}: {text}", SEED, ask(text, expect), tables="Hash") for text in conditions]


COMPARISONS = [
    *truths(
        {},
        "one = :uno",
        "big = :thousand",
        "tags = :pq",
        "truth = :true",
        "nil = :null",
        "blank = :empty",
        "one <> :two",
        "one <> :digit",
        "truth <> :one",
        "nope <> :one",
        "nope <> gone",
        "one < five",
        "one < :two",
        "five <= :five",
        "five > :four",
        "five >= :five",
        "word > :upper",
        "word < :zoo",
        "octets < :lo",
        ":one < five",
        "five BETWEEN :one AND :eight",
        "five BETWEEN one AND big",
        "five between :five and :five",
        "word BETWEEN :he AND :zoo",
        "one IN (:five, :uno)",
        "one IN (:word, :one)",
        "doc.p = one",
        "doc.q[0] < doc.p",
        "arr[1] <> :word",
        "arr[3] = :three",
    ),
    *truths(
        FAILED,
        "one = :digit",
        "truth = :one",
        "nope = :one",
        "nope = gone",
        "nope < gone",
        "nope >= gone",
        "nope BETWEEN gone AND lost",
        "nope IN (:one)",
        "one < :digit",
        "nope < :one",
        ":one < nope",
        "arr < :one",
        "truth > :one",
        "one <> :uno",
        "five BETWEEN :eight AND big",
        "five BETWEEN big AND one",
        "word BETWEEN one AND :zoo",
        "arr[17] = :one",
        "word.p = :one",
        "tags = :ps",
    ),
]

FUNCTIONS = [
    *truths(
        {},
        "attribute_exists(nil)",
        "attribute_exists(doc.q[1])",
        "attribute_not_exists(doc.z)",
        "attribute_not_exists(arr[17])",
        "attribute_not_exists(word.z)",
        *(
            f"attribute_type({name}, {type_})"
            for name, type_ in (
                ("word", ":S"),
                ("one", ":N"),
                ("octets", ":B"),
                ("truth", ":BOOL"),
                ("nil", ":NULL"),
                ("arr", ":L"),
                ("doc", ":M"),
                ("tags", ":SS"),
                ("ids", ":NS"),
                ("blobs", ":BS"),
            )
        ),
        "begins_with(word, :he)",
        "begins_with(word, :empty)",
        "begins_with(octets, :hb)",
        "begins_with(wild, :half)",
        "begins_with(:word, word)",
        "contains(word, :ell)",
        "contains(word, :empty)",
        "contains(octets, :lo)",
        "contains(tags, :p)",
        "contains(ids, :two_and_a_half)",
        "contains(blobs, :hi)",
        "contains(arr, :uno)",
        "contains(arr, :ps)",
        "contains(arr, :three)",
        "size(word) = :five",
        "size(blank) < :one",
        "size(octets) = :five",
        "size(tags) = :two",
        "size(ids) = :two",
        "size(arr) = :four",
        "size(doc) > :two",
        "size(word) = five",
        "size(word) <> :word",
        "size(arr) BETWEEN one AND five",
        "size(arr) IN (:one, :four)",
        "size(tags) < size(arr)",
        "attribute_exists (word)",
    ),
    *truths(
        FAILED,
        "attribute_exists(nope)",
        "attribute_not_exists(nil)",
        "attribute_type(one, :S)",
        "attribute_type(nope, :NULL)",
        "begins_with(word, :upper)",
        "begins_with(wild, :percent)",
        "begins_with(one, :he)",
        "begins_with(nope, :he)",
        "begins_with(word, nope)",
        "begins_with(nope, gone)",
        "begins_with(octets, :he)",
        "contains(word, :one)",
        "contains(one, :one)",
        "contains(nope, :one)",
        "contains(word, nope)",
        "contains(tags, :ps)",
        "contains(ids, :digit)",
        "contains(doc, :p)",
        "size(one) = :one",
        "size(truth) = :one",
        "size(nil) = :one",
        "size(nope) < :one",
        "size(word) = :word",
    ),
    case(
        "size of a string is in UTF-16 units, not in bytes or characters",
        SEED,
        ask("size(wide) = :four", {}),
        tables="Hash",
    ),
]

LOGIC = [
    *truths(
        {},
        "one = :one AND five = :five",
        "one = :two OR five = :five",
        "NOT one = :two",
        "nOt NOT nOt NOT one = :one",
        "one = :one OR one = :one AND one = :two",
        "NOT one = :two AND five = :five",
        "NOT nope = :one",
        "NOT nope < :one",
        "five BETWEEN one AND big AND one = :one",
        "(one = :two OR five = :five) AND (one = :one)",
        "((one = :one) AND five = :five)",
        "(one) = (:one)",
        "NOT (one = :two OR five = :one)",
        "one=:one aNd five<>:one oR nope=:two",
    ),
    *truths(
        FAILED,
        "(one = :one OR one = :one) AND one = :two",
        "NOT one = :one AND five = :five",
        "NOT (one = :one AND five = :five)",
        "NOT NOT one = :two",
        "NOT nope <> :one",
    ),
    case(
        "a value that short circuit never reaches counts as used",
        SEED,
        ask("one = :one OR word = :zoo", {}),
        tables="Hash",
    ),
    case(
        "an alias reaches a reserved word in a document",
        SEED,
        ask("#d.#a = :n", {}, {":n": {"N": "7"}}, {"#d": "doc", "#a": "and"}),
        tables="Hash",
    ),
]


def refused(why: str, captured: str = evidence.EXPRESSION) -> Fails:
    return counted(f"Invalid ConditionExpression: {why}", captured)


SYNTAX = [
    case(
        f"syntax error in {text!r}",
        ask(text, refused(f'Syntax error; token: "{token}", near: "{near}"')),
        tables="Hash",
    )
    for text, token, near in (
        ("a", "<EOF>", "a"),
        ("a = ", "<EOF>", "= "),
        ("a == b", "=", "== b"),
        ("= a", "=", "= a"),
        ("a = b AND", "<EOF>", "AND"),
        ("a = b extra", "extra", "b extra"),
        ("_a = b", "_", "_a"),
        ("1a = b", "1", "1a"),
        ("a = 5", "5", "= 5"),
        ('a = "x"', '"', '= "x'),
        ("a != b", "!", "a !="),
        ("a[b] = c", "b", "[b]"),
        ("a[-1] = b", "-", "[-1"),
        ("a.b. = c", "=", ". = c"),
        ("a IN ()", ")", "()"),
        ("a BETWEEN b", "<EOF>", "b"),
        ("NOT", "<EOF>", "NOT"),
        ("(a = b", "<EOF>", "b"),
        ("a = b)", ")", "b)"),
        ("attribute_exists()", ")", "()"),
        ("a = b; c", ";", "b; c"),
    )
]

MISUSED = "The function is not allowed to be used this way in an expression; function: "
COUNT = "Incorrect number of operands for operator or function; operator or function: "
WRONG = "Incorrect operand type for operator or function; operator or function: "
NEEDS_PATH = "Operator or function requires a document path; operator or function: "
DISTINCT = (
    "The first operand must be distinct from the remaining operands for this operator or function; operator: "
)
NAME = "An expression attribute name used in the document path is not defined; attribute name: "
VALUE = "An expression attribute value used in expression is not defined; attribute value: "
RESERVED = "Attribute name is a reserved keyword; reserved keyword: "
RULES = [
    case(
        f"rejected: {text or 'an empty condition'}",
        ask(text, refused(why)),
        tables="Hash",
    )
    for text, why in (
        ("", "The expression can not be empty;"),
        ("((a = b))", "The expression has redundant parentheses;"),
        ("((a)) = b", "The expression has redundant parentheses;"),
        ("status = b", f"{RESERVED}status"),
        ("a.Name = b", f"{RESERVED}Name"),
        ("#a = b", f"{NAME}#a"),
        ("a = :a", f"{VALUE}:a"),
        ("dog(a)", "Invalid function name; function: dog"),
        ("Size(a) = b", "Invalid function name; function: Size"),
        ("size(a)", f"{MISUSED}size"),
        ("attribute_exists(a) = b", f"{MISUSED}attribute_exists"),
        (
            "if_not_exists(a, b) = c",
            "The function is not allowed in a condition expression; function: if_not_exists",
        ),
        (
            "list_append(a, b) = c",
            "The function is not allowed in a condition expression; function: list_append",
        ),
        ("size(a, b) = c", f"{COUNT}size, number of operands: 2"),
        ("attribute_exists(a, b)", f"{COUNT}attribute_exists, number of operands: 2"),
        ("begins_with(a)", f"{COUNT}begins_with, number of operands: 1"),
        ("attribute_exists(:one)", f"{NEEDS_PATH}attribute_exists"),
        ("attribute_not_exists(:one)", f"{NEEDS_PATH}attribute_not_exists"),
        ("a = a", f"{DISTINCT}=, first operand: [a]"),
        ("a.b <> a.b", f"{DISTINCT}<>, first operand: [a, b]"),
        ("a IN (b, a)", f"{DISTINCT}IN, first operand: [a]"),
        ("contains(a, a)", f"{DISTINCT}contains, first operand: [a]"),
        ("a < :list", f"{WRONG}<, operand type: L"),
        (":true < a", f"{WRONG}<, operand type: BOOL"),
        ("a <= :null", f"{WRONG}<=, operand type: NULL"),
        ("a > :map", f"{WRONG}>, operand type: M"),
        ("a >= :pq", f"{WRONG}>=, operand type: SS"),
        ("a BETWEEN :list AND :list", f"{WRONG}BETWEEN, operand type: L"),
        ("begins_with(a, :one)", f"{WRONG}begins_with, operand type: N"),
        ("begins_with(:list, a)", f"{WRONG}begins_with, operand type: L"),
        ("size(:one) = a", f"{WRONG}size, operand type: N"),
        ("size(size(a)) = b", f"{WRONG}size, operand type: N"),
        ("attribute_type(a, :one)", f"{WRONG}attribute_type, operand type: N"),
        (
            "a BETWEEN :two AND :one",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        (
            "a BETWEEN :two AND :word",
            "The BETWEEN operator requires same data type for lower and upper bounds; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {S:hello}",
        ),
    )
]

MANY: Json = {f":v{number}": {"N": str(number)} for number in range(101)}


def operands(count: int) -> tuple[str, Json]:
    values = dict(list(MANY.items())[:count])
    return f"one IN ({', '.join(values)})", values


LIMITS = [
    case("IN takes 100 operands", SEED, ask(operands(100)[0], {}, operands(100)[1]), tables="Hash"),
    case(
        "IN takes no more than 100 operands",
        ask(
            operands(101)[0],
            refused("The IN operator is provided with too many operands; number of operands: 101"),
            operands(101)[1],
        ),
        tables="Hash",
    ),
    case(
        "a condition may have 299 operators", SEED, ask(" AND ".join(["one=:one"] * 150), {}), tables="Hash"
    ),
    *(
        case(
            f"rejected: more than 300 operators, {title}",
            ask(
                text,
                refused("The expression contains too many operators; operator count: 301"),
            ),
            tables="Hash",
        )
        for title, text in (
            ("in a row", " AND ".join(["one=:one"] * 151)),
            ("nested in parentheses", "a<b " + "or (a<b " * 400 + ")" * 400),
            ("of NOT", "NOT " * 1000 + "a<b"),
        )
    ),
    case(
        "a condition may have 4096 bytes",
        SEED,
        ask(f"one{' ' * 4086} = :one", {}),
        tables="Hash",
    ),
    *(
        case(
            f"rejected: {title}",
            ask(
                text,
                refused(
                    f"Expression size has exceeded the maximum allowed size; expression size: {len(text)}",
                    evidence.EXPRESSION_SIZE,
                ),
                {},
            ),
            tables="Hash",
        )
        for title, text in (
            ("a condition of 4097 bytes", f"a{' ' * 4093}= b"),
            ("20000 open parentheses, by their size", "(" * 20_000),
        )
    ),
    case(
        "2000 redundant parentheses are reported, not a stack overflow",
        ask(
            "(" * 2000 + "a<b" + ")" * 2000,
            refused("The expression has redundant parentheses;", evidence.PARENTHESES),
        ),
        tables="Hash",
    ),
    case(
        "680 nested functions are reported, not a stack overflow",
        ask(
            "a < " + "f(" * 680 + "b" + ")" * 680,
            refused("Invalid function name; function: f"),
        ),
        tables="Hash",
    ),
    case(
        "a path may have 32 levels",
        SEED,
        ask(f"attribute_not_exists({'.'.join('a' * 32)})", {}),
        tables="Hash",
    ),
    case(
        "a path may not have 33 levels",
        ask(
            f"attribute_not_exists({'.'.join('a' * 33)})",
            refused("The document path has too many nesting levels; nesting levels: 33"),
        ),
        tables="Hash",
    ),
    case(
        "an unknown type name is reported with the known ones",
        ask(
            "attribute_type(a, :t)",
            refused(
                "Invalid attribute type name found; type: DOG, valid types: {B,NULL,SS,BOOL,L,BS,N,NS,S,M}"
            ),
            {":t": {"S": "DOG"}},
        ),
        tables="Hash",
        local="lists the types in another order",
    ),
]

EMPTY_SET = "One or more parameter values were invalid: An string set  may not be empty"


def unused(kind: str, key: str) -> Fails:
    return counted(
        f"Value provided in ExpressionAttribute{kind} unused in expressions: keys: {{{key}}}", evidence.UNUSED
    )


def bad_key(kind: str, key: str) -> Fails:
    return counted(
        f'ExpressionAttribute{kind} contains invalid key: Syntax error; key: "{key}"', evidence.INFERRED
    )


ALIASES = [
    case(f"rejected: {title}", ask("a = b", why, values, names), tables="Hash")
    for title, values, names, why in (
        ("an unused value", {":v": {"N": "1"}}, None, unused("Values", ":v")),
        ("an unused name", {}, {"#n": "n"}, unused("Names", "#n")),
        (
            "unused names before unused values",
            {":v": {"N": "1"}},
            {"#n": "n"},
            unused("Names", "#n"),
        ),
        (
            "a value without a colon",
            {"v": {"N": "1"}},
            None,
            bad_key("Values", "v"),
        ),
        (
            "a value with a hyphen",
            {":v-1": {"N": "1"}},
            None,
            bad_key("Values", ":v-1"),
        ),
        (
            "a name without a hash",
            {},
            {"n": "n"},
            bad_key("Names", "n"),
        ),
        (
            "an empty value",
            {":v": {}},
            None,
            invalid(
                "ExpressionAttributeValues contains invalid value: Supplied AttributeValue is empty, must "
                "contain exactly one of the supported datatypes for key :v"
            ),
        ),
        (
            "an empty set as a value",
            {":v": {"SS": []}},
            None,
            counted(
                EMPTY_SET,
                evidence.EMPTY_SET,
                older=f"ExpressionAttributeValues contains invalid value: {EMPTY_SET} for key :v",
            ),
        ),
        (
            "a value with two types",
            {":v": {"S": "a", "N": "1"}},
            None,
            invalid(
                "ExpressionAttributeValues contains invalid value: Supplied AttributeValue has more than one "
                "datatypes set, must contain exactly one of the supported datatypes for key :v"
            ),
        ),
    )
]
EMPTIES = [
    case(
        f"rejected: empty {member}",
        Step(
            "DeleteItem",
            {"TableName": "Hash", "Key": KEY, "ConditionExpression": "a = b", member: {}},
            counted(f"{member} must not be empty", evidence.EMPTY_MAP),
        ),
        tables="Hash",
    )
    for member in ("ExpressionAttributeNames", "ExpressionAttributeValues")
]

CASES: list[Case] = [
    *COMPARISONS,
    *FUNCTIONS,
    *LOGIC,
    *SYNTAX,
    *RULES,
    *LIMITS,
    *ALIASES,
    *EMPTIES,
]
