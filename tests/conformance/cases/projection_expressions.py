"""The language of projection expressions, as GetItem answers them."""

from __future__ import annotations

from ..harness import Case, Expectation, Json, Step, case, invalid

KEY: Json = {"pk": {"S": "a"}}
PAIR: Json = {"pk": {"S": "a"}, "sk": {"S": "b"}}


def n(number: int) -> Json:
    return {"N": str(number)}


ITEM: Json = {
    **KEY,
    "x": n(1),
    "y": {"S": "why"},
    "doc": {"M": {"p": n(2), "q": {"L": [n(3), n(4), {"M": {"r": n(5), "s": n(6)}}]}}},
    "arr": {"L": [n(7), n(8), n(9)]},
    "doc.p": n(10),
    "status": n(11),
    "_z": n(12),
}
SEED = Step("PutItem", {"TableName": "Hash", "Item": ITEM}, {})


def ask(projection: str, expect: Expectation, names: dict[str, str] | None = None, **more: object) -> Step:
    request: Json = {"TableName": "Hash", "Key": KEY, "ProjectionExpression": projection, **more}
    if names is not None:
        request["ExpressionAttributeNames"] = names
    return Step("GetItem", request, expect)


def q(*members: Json) -> Json:
    return {"doc": {"M": {"q": {"L": list(members)}}}}


RESULTS = [
    case(f"{' '.join(text.split())} gives {title}", SEED, ask(text, {"Item": item}, names), tables="Hash")
    for text, title, item, names in (
        ("x", "one attribute and no key", {"x": n(1)}, None),
        ("pk, x", "the key when asked for", {**KEY, "x": n(1)}, None),
        (" x\t,\n y ", "two, blanks apart", {"x": n(1), "y": {"S": "why"}}, None),
        ("nope", "an empty item", {}, None),
        ("x, nope", "what is there", {"x": n(1)}, None),
        ("doc", "a whole document", {"doc": ITEM["doc"]}, None),
        ("doc.p", "a member within its map", {"doc": {"M": {"p": n(2)}}}, None),
        ("doc.q[1]", "an element alone in its list", q(n(4)), None),
        ("doc.q[2].r", "a member within an element", q({"M": {"r": n(5)}}), None),
        ("doc.q[2].r, doc.q[0]", "elements in the order of the list", q(n(3), {"M": {"r": n(5)}}), None),
        ("arr[2], arr[0]", "elements without gaps", {"arr": {"L": [n(7), n(9)]}}, None),
        ("doc.q[2].s, doc.q[2].r", "one element with two members", q({"M": {"r": n(5), "s": n(6)}}), None),
        ("doc.p, doc.q[0]", "two members merged", {"doc": {"M": {"p": n(2), "q": {"L": [n(3)]}}}}, None),
        ("doc.nope", "nothing of a missing member", {}, None),
        ("doc.nope.p", "nothing below a missing member", {}, None),
        ("arr[3]", "nothing past the end", {}, None),
        ("doc[0]", "nothing of a map by index", {}, None),
        ("arr.p", "nothing of a list by name", {}, None),
        ("x.p", "nothing within a number", {}, None),
        ("x[0]", "nothing within a number by index", {}, None),
        ("doc.nope, x, arr[9].p", "what is there among what is not", {"x": n(1)}, None),
        ("#x", "an attribute by alias", {"x": n(1)}, {"#x": "x"}),
        ("#d.#p", "a member by aliases", {"doc": {"M": {"p": n(2)}}}, {"#d": "doc", "#p": "p"}),
        ("#d", "an attribute with a dot in its name", {"doc.p": n(10)}, {"#d": "doc.p"}),
        ("#s", "an attribute named by a reserved word", {"status": n(11)}, {"#s": "status"}),
        ("#z", "an attribute that starts with an underscore", {"_z": n(12)}, {"#z": "_z"}),
        (
            "#1, y",
            "an attribute by an alias that starts with a digit",
            {"x": n(1), "y": {"S": "why"}},
            {"#1": "x"},
        ),
    )
]

MISSING = [
    case("a missing item has no Item, whatever is projected", ask("x", {}), tables="Hash"),
    case(
        "names are case sensitive",
        SEED,
        ask("X", {"Item": {}}),
        tables="Hash",
    ),
]

SYNTAX = [
    case(
        f"syntax error in {text!r}",
        ask(text, invalid(f'Invalid ProjectionExpression: Syntax error; token: "{token}", near: "{near}"')),
        tables="Hash",
    )
    for text, token, near in (
        ("!!! INVALID !!!", "!", "!!"),
        (":a", ":a", ":a"),
        ("pk,", "<EOF>", ","),
        ("pk,,b", ",", ",,b"),
        ("a..b", ".", "..b"),
        ("a.", "<EOF>", "."),
        ("a[b]", "b", "[b]"),
        ("a[0", "<EOF>", "0"),
        ("a[1.5]", ".", "1.5"),
        ("[0]", "[", "[0"),
        ("(a)", "(", "(a"),
        ("a-b", "-", "a-b"),
        ("a b", "b", "a b"),
        ("_a", "_", "_a"),
        ("whatever(stuff)", "(", "whatever(stuff"),
    )
]

OVERLAP = "Two document paths overlap with each other; must remove or rewrite one of these paths; path one: "
CONFLICT = (
    "Two document paths conflict with each other; must remove or rewrite one of these paths; path one: "
)
LONG = ", ".join(f"a{number}" for number in range(800))
RULES = [
    case(
        f"rejected: {title or text}",
        ask(text, invalid(f"Invalid ProjectionExpression: {why}")),
        tables="Hash",
    )
    for title, text, why in (
        ("an empty projection", "", "The expression can not be empty;"),
        ("", "a.status", "Attribute name is a reserved keyword; reserved keyword: status"),
        ("", "x, ABSoLUTE", "Attribute name is a reserved keyword; reserved keyword: ABSoLUTE"),
        (
            "",
            "#x",
            "An expression attribute name used in the document path is not defined; attribute name: #x",
        ),
        ("", "a, a", f"{OVERLAP}[a], path two: [a]"),
        ("", "a, a.b", f"{OVERLAP}[a], path two: [a, b]"),
        ("", "a.b.c, a.b", f"{OVERLAP}[a, b, c], path two: [a, b]"),
        ("", "a[1], a[1]", f"{OVERLAP}[a, [1]], path two: [a, [1]]"),
        ("", "a.b, a[1]", f"{CONFLICT}[a, b], path two: [a, [1]]"),
        ("", "a.b[1], a[1]", f"{CONFLICT}[a, b, [1]], path two: [a, [1]]"),
        ("", "a[99999999999]", "List index is not within the allowable range; index: [99999999999]"),
        (
            "a path of 33 levels",
            ".".join("a" * 33),
            "The document path has too many nesting levels; nesting levels: 33",
        ),
        (
            "a projection of more than 4096 bytes",
            LONG,
            "Expression size has exceeded the maximum allowed size;",
        ),
    )
]

NAMES = [
    case(
        "rejected: paths that overlap by what an alias means",
        ask("a.b, #a", invalid(f"Invalid ProjectionExpression: {OVERLAP}[a, b], path two: [a]"), {"#a": "a"}),
        tables="Hash",
    ),
    case(
        "rejected: an unused name",
        ask(
            "x",
            invalid("Value provided in ExpressionAttributeNames unused in expressions: keys: {#x}"),
            {"#x": "x"},
        ),
        tables="Hash",
    ),
    case(
        "rejected: no names in the map",
        ask("x", invalid("ExpressionAttributeNames must not be empty"), {}),
        tables="Hash",
    ),
    case(
        "rejected: a name without a hash",
        ask(
            "x", invalid('ExpressionAttributeNames contains invalid key: Syntax error; key: "x"'), {"x": "x"}
        ),
        tables="Hash",
    ),
    case(
        "rejected: names without a projection",
        Step(
            "GetItem",
            {"TableName": "Hash", "Key": KEY, "ExpressionAttributeNames": {"#x": "x"}},
            invalid("ExpressionAttributeNames can only be specified when using expressions"),
        ),
        tables="Hash",
    ),
    *(
        case(
            f"rejected: {text}, a key has no parts",
            ask(
                text,
                invalid(
                    "Key attributes must be scalars; list random access '[]' and map lookup '.' "
                    "are not allowed: Key: pk"
                ),
            ),
            tables="Hash",
        )
        for text in ("pk.x", "pk[0]")
    ),
    case(
        "rejected: an index key has no parts",
        Step(
            "GetItem",
            {"TableName": "Indexed", "Key": PAIR, "ProjectionExpression": "gp.x"},
            invalid(
                "Key attributes must be scalars; list random access '[]' and map lookup '.' "
                "are not allowed: IndexKey: gp"
            ),
        ),
        tables="Indexed",
    ),
    case(
        "the size is that of the text, not of the names behind the aliases",
        SEED,
        ask(
            ", ".join(f"#a{number}" for number in range(30)),
            {"Item": {}},
            {f"#a{number}": "n" * 246 + f"q{number}" for number in range(30)},
        ),
        tables="Hash",
    ),
]

CASES: list[Case] = [*RESULTS, *MISSING, *SYNTAX, *RULES, *NAMES]
