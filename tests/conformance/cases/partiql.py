"""PartiQL: ExecuteStatement, BatchExecuteStatement and ExecuteTransaction over the four statements."""

from __future__ import annotations

import uuid
from typing import Any

from ..harness import Case, Expectation, Fails, Json, Step, case, invalid

OWN_WORDS = "has a different text"
MALFORMED = "Statement wasn't well formed, can't be processed: "
LEFTOVER = MALFORMED + "Unexpected token after expression"
COUNT = "Number of parameters in request and statement don't match."
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"
FAILED = Fails("ConditionalCheckFailedException", "The conditional request failed")
NOTHING: Json = {"Items": []}
TOKENS = [uuid.uuid4().hex for _ in range(2)]


def text(value: str) -> Json:
    return {"S": value}


def number(value: str) -> Json:
    return {"N": value}


def run(statement: str, expect: Expectation | None, *parameters: Json, **members: Any) -> Step:
    request: Json = {"Statement": statement, **members}
    if parameters:
        request["Parameters"] = list(parameters)
    return Step("ExecuteStatement", request, expect)


def found(statement: str, *items: Json, parameters: tuple[Json, ...] = ()) -> Step:
    return run(statement, {"Items": list(items)}, *parameters)


def put(name: str = "Hash", **item: Json) -> Step:
    return Step("PutItem", {"TableName": name, "Item": item})


def stored(item: Json | None, value: str = "1") -> Step:
    return Step(
        "GetItem", {"TableName": "Hash", "Key": {"pk": text(value)}}, {} if item is None else {"Item": item}
    )


def batch(expect: Expectation | None, *statements: str | Json, **members: Any) -> Step:
    return Step("BatchExecuteStatement", {"Statements": list(map(_statement, statements)), **members}, expect)


def transact(expect: Expectation | None, *statements: str | Json, **members: Any) -> Step:
    return Step(
        "ExecuteTransaction", {"TransactStatements": list(map(_statement, statements)), **members}, expect
    )


def _statement(statement: str | Json) -> Json:
    return {"Statement": statement} if isinstance(statement, str) else statement


def error(code: str, message: str, **more: Any) -> Json:
    return {"Error": {"Code": code, "Message": message}, **more}


def cancelled(*reasons: Json) -> Fails:
    codes = ", ".join(str(reason["Code"]) for reason in reasons)
    return Fails(
        "TransactionCanceledException",
        f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
        {"CancellationReasons": list(reasons)},
    )


def units(count: float) -> Expectation:
    def expect(reply: Json) -> None:
        assert reply["ConsumedCapacity"]["TableName"] == "Hash"
        assert reply["ConsumedCapacity"]["CapacityUnits"] == count

    return expect


def paged() -> Case:
    following: Json = {"Statement": "SELECT sk FROM \"Pair\" WHERE pk = '1'", "Limit": 2}

    def first(reply: Json) -> None:
        assert reply["Items"] == [{"sk": text("a")}, {"sk": text("b")}]
        following["NextToken"] = reply["NextToken"]

    return case(
        "NextToken continues after a full page",
        *SORTED,
        Step("ExecuteStatement", {"Statement": following["Statement"], "Limit": 2}, first),
        Step("ExecuteStatement", following, {"Items": [{"sk": text("c")}]}),
        tables="Pair",
    )


def empty_page(reply: Json) -> None:
    assert reply["Items"] == []
    assert reply["NextToken"]


def last_key(reply: Json) -> None:
    assert reply["LastEvaluatedKey"] == {"pk": text("1"), "sk": text("b")}


ITEM: Json = {"pk": text("1"), "n": number("5"), "l": {"L": [text("a")]}, "s": {"NS": ["1", "2"]}}
ONE = put(**ITEM)
SORTED = tuple(put("Pair", pk=text("1"), sk=text(letter)) for letter in "cab")
FAILED_REASON = {"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}
LITERAL = (
    "INSERT INTO \"Hash\" VALUE {'pk': '1', 'n': -1.50, 'b': true, 'z': null, 'l': [1, 'a'], "
    "'m': {'x': {'y': false}}, 'ns': <<1, 2>>, 'ss': <<'a'>>}"
)

REFUSED: list[tuple[str, str, str | None, str]] = [
    ("a word is not a statement", "foo", "Unsupported operation: VariableReference", ""),
    (
        "a misspelt SELECT is not a statement",
        "SLECT * FROM \"Hash\" WHERE pk = '1'",
        MALFORMED + "Expected data manipulation",
        OWN_WORDS,
    ),
    ("half a statement is rejected", "SELECT", None, ""),
    ("a token after WHERE is left over", "SELECT * FROM \"Hash\" WHERE pk = '1' foo", LEFTOVER, OWN_WORDS),
    ("a token after an item is left over", "INSERT INTO \"Hash\" VALUE {'pk': '1'} foo", LEFTOVER, OWN_WORDS),
    (
        "ORDER BY does not go with DELETE",
        "DELETE FROM \"Hash\" WHERE pk = '1' ORDER BY pk",
        LEFTOVER,
        OWN_WORDS,
    ),
    ("a hash begins no comment", "SELECT * FROM \"Hash\" WHERE pk = '1' # note", MALFORMED, OWN_WORDS),
    ("a table has no alias", "SELECT * FROM \"Hash\" t WHERE pk = '1'", "Aliasing is not supported", ""),
    (
        "a table updated has no alias",
        "UPDATE \"Hash\" t SET a = 1 WHERE pk = '1'",
        "Aliasing is not supported",
        "",
    ),
    ("a schema cannot be changed", 'DROP TABLE "Hash"', None, ""),
    ("groups are not supported", 'SELECT * FROM "Hash" GROUP BY pk', "Unsupported clause: GROUP BY", ""),
    ("items cannot be counted", 'SELECT COUNT(*) FROM "Hash"', "Unexpected path component at 1:8:5", ""),
    (
        "ORDER BY needs a WHERE",
        'SELECT * FROM "Hash" ORDER BY pk',
        "Must have WHERE clause in the statement when using ORDER BY clause.",
        "",
    ),
    ("a parameter must be given", 'SELECT * FROM "Hash" WHERE pk = ?', COUNT, ""),
    ("an UPDATE needs the whole key", "UPDATE \"Pair\" SET a = 1 WHERE pk = '1'", NO_KEY, ""),
    ("an UPDATE needs a WHERE", 'UPDATE "Hash" SET a = 1', NO_KEY, ""),
    ("a DELETE needs the key", 'DELETE FROM "Hash" WHERE a = 1', NO_KEY, ""),
    (
        "an inserted item needs its key",
        "INSERT INTO \"Hash\" VALUE {'a': '1'}",
        "Key attribute should be present in the item: Key pk",
        "",
    ),
    (
        "an inserted key has the schema's type",
        "INSERT INTO \"Hash\" VALUE {'pk': 1}",
        "Key attribute's data type should match its data type in table's schema: Key pk",
        "",
    ),
    (
        "an inserted key cannot be empty",
        "INSERT INTO \"Hash\" VALUE {'pk': ''}",
        "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain "
        "an empty string value. Key: pk",
        "",
    ),
    (
        "a DELETE returns old values only",
        "DELETE FROM \"Hash\" WHERE pk = '1' RETURNING ALL NEW *",
        "Invalid returning clause: RETURNING ALL NEW *. Only RETURNING ALL OLD * is allowed in DELETE statements.",
        "",
    ),
    (
        "a missing index is not named",
        'SELECT * FROM "Indexed"."nope" WHERE gp = \'1\'',
        "The table does not have the specified index",
        "names the index",
    ),
    (
        "an empty set literal is not supported",
        "UPDATE \"Hash\" SET s = set_add(s, <<>>) WHERE pk = '1'",
        "Empty bags are not supported",
        OWN_WORDS,
    ),
    (
        "a number literal has a range",
        "SELECT * FROM \"Hash\" WHERE pk = '1' AND n = 1e126",
        "Number overflow. Attempting to store a number with magnitude larger than supported range under root",
        OWN_WORDS,
    ),
]

CASES: list[Case] = [
    *(
        case(name, run(statement, invalid(message)), tables="Hash Pair Indexed", local=local)
        for name, statement, message, local in REFUSED
    ),
    case(
        "a missing table is not named",
        run('SELECT * FROM "Nowhere"', Fails("ResourceNotFoundException", "Requested resource not found")),
        local=OWN_WORDS,
    ),
    case(
        "a page of no items is too small",
        run(
            'SELECT * FROM "Hash"',
            invalid(
                "1 validation error detected: Value '0' at 'limit' failed to satisfy constraint: "
                "Member must have value greater than or equal to 1"
            ),
            Limit=0,
        ),
        tables="Hash",
    ),
    case(
        "what an index does not hold is missing in a branch of OR",
        put("Indexed", pk=text("1"), sk=text("a"), gp=text("g"), v=text("v")),
        put("Indexed", pk=text("2"), sk=text("b"), gp=text("h")),
        found(
            "SELECT pk FROM \"Indexed\".\"gkeys\" WHERE (gp = 'g' AND v = 'v') OR gp = 'h'", {"pk": text("2")}
        ),
        tables="Indexed",
        local="rejects the attribute",
    ),
    case(
        "operands are checked before the table is looked up",
        run(
            'SELECT * FROM "Nowhere" WHERE pk = ? AND v < ?',
            invalid(
                "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL"
            ),
            text("1"),
            {"BOOL": True},
        ),
        run('SELECT * FROM "Nowhere" WHERE pk = ?', Fails("ResourceNotFoundException"), text("1")),
    ),
    case(
        "a global index has no consistent reads",
        run(
            'SELECT * FROM "Indexed"."gall"',
            invalid("Strongly consistent read is not supported on Global Secondary Indexes"),
            ConsistentRead=True,
        ),
        tables="Indexed",
        local="has the text of Query",
    ),
    case(
        "a key cannot be updated",
        ONE,
        run(
            "UPDATE \"Hash\" SET pk = 'x' WHERE pk = '1'",
            invalid(
                "One or more parameter values were invalid: "
                "Cannot update attribute pk. This attribute is part of the key"
            ),
        ),
        tables="Hash",
    ),
    case(
        "an INSERT answers with no items",
        run("INSERT INTO \"Hash\" VALUE {'pk': '1'}", NOTHING),
        tables="Hash",
    ),
    case(
        "literals have DynamoDB's types",
        run(LITERAL, NOTHING),
        stored(
            {
                "pk": text("1"),
                "n": number("-1.5"),
                "b": {"BOOL": True},
                "z": {"NULL": True},
                "l": {"L": [number("1"), text("a")]},
                "m": {"M": {"x": {"M": {"y": {"BOOL": False}}}}},
                "ns": {"NS": ["1", "2"]},
                "ss": {"SS": ["a"]},
            }
        ),
        tables="Hash",
    ),
    case(
        "parameters are taken in order",
        run("INSERT INTO \"Hash\" VALUE {'pk': ?, 'v': ?}", NOTHING, text("1"), number("1e1")),
        stored({"pk": text("1"), "v": number("10")}),
        tables="Hash",
    ),
    case(
        "a doubled quote is a quote",
        run("INSERT INTO \"Hash\" VALUE {'pk': 'o''k'}", NOTHING),
        stored({"pk": text("o'k")}, "o'k"),
        tables="Hash",
    ),
    case(
        "an item that exists is not inserted",
        ONE,
        run(
            "INSERT INTO \"Hash\" VALUE {'pk': '1'}",
            Fails("DuplicateItemException", "Duplicate primary key exists in table"),
        ),
        stored(ITEM),
        tables="Hash",
        local="names the error DuplicateItem",
    ),
    case("a key finds one item", ONE, found("SELECT * FROM \"Hash\" WHERE pk = '1'", ITEM), tables="Hash"),
    case(
        "a table's name needs no quotes", ONE, found("SELECT * FROM Hash WHERE pk = '1'", ITEM), tables="Hash"
    ),
    case("a missing item is not an item", found("SELECT * FROM \"Hash\" WHERE pk = '1'"), tables="Hash"),
    case(
        "a parameter can be a key",
        ONE,
        found(
            'SELECT pk, n FROM "Hash" WHERE pk = ?',
            {"pk": text("1"), "n": number("5")},
            parameters=(text("1"),),
        ),
        tables="Hash",
    ),
    case(
        "a path is projected under its last name",
        put(pk=text("1"), m={"M": {"x": text("y")}}),
        found("SELECT m.x FROM \"Hash\" WHERE pk = '1'", {"x": text("y")}),
        tables="Hash",
    ),
    case(
        "a list element is projected under its index",
        ONE,
        found("SELECT l[0] FROM \"Hash\" WHERE pk = '1'", {"l[0]": text("a")}),
        tables="Hash",
    ),
    case(
        "attributes that are not keys filter a scan",
        ONE,
        put(pk=text("2"), n=number("6")),
        found('SELECT pk FROM "Hash" WHERE n > 5', {"pk": text("2")}),
        tables="Hash",
    ),
    *(
        case(
            f"{name} filters",
            ONE,
            put(pk=text("2")),
            found(f'SELECT pk FROM "Hash" WHERE {where}', {"pk": text(pk)}),
            tables="Hash",
        )
        for name, where, pk in (
            ("BETWEEN", "n BETWEEN 4 AND 6", "1"),
            ("IN", "n IN [5, 7]", "1"),
            ("IS MISSING", "n IS MISSING", "2"),
            ("IS NOT MISSING", "n IS NOT MISSING", "1"),
            ("begins_with", "begins_with(pk, '2')", "2"),
            ("contains", "contains(s, 2)", "1"),
            ("attribute_type", "attribute_type(n, 'N')", "1"),
            ("size", "size(l) = 1", "1"),
            ("NOT", "NOT pk = '1'", "2"),
            ("<>", "pk <> '1'", "2"),
            ("OR with AND", "pk = '2' OR n = 5 AND pk = '3'", "2"),
        )
    ),
    case(
        "a partition is read by its sort key",
        *SORTED,
        found("SELECT sk FROM \"Pair\" WHERE pk = '1' AND sk > 'a'", {"sk": text("b")}, {"sk": text("c")}),
        tables="Pair",
    ),
    case(
        "ORDER BY DESC turns a partition around",
        *SORTED,
        found(
            "SELECT sk FROM \"Pair\" WHERE pk = '1' ORDER BY sk DESC",
            *({"sk": text(letter)} for letter in "cba"),
        ),
        tables="Pair",
        local="fails with an internal error unless the partition key is selected",
    ),
    case(
        "an index is read by its own keys",
        put("Indexed", pk=text("1"), sk=text("1"), gp=text("g")),
        found(
            'SELECT * FROM "Indexed"."gkeys" WHERE gp = \'g\'',
            {"pk": text("1"), "sk": text("1"), "gp": text("g")},
        ),
        tables="Indexed",
    ),
    case(
        "comments are blank",
        ONE,
        found("SELECT pk FROM \"Hash\" -- a note\nWHERE /* another */ pk = '1'", {"pk": text("1")}),
        tables="Hash",
    ),
    case(
        "a number may have an exponent",
        put("NumberHash", pk=number("7310000")),
        found('SELECT * FROM "NumberHash" WHERE pk = 731E4', {"pk": number("7310000")}),
        tables="NumberHash",
    ),
    paged(),
    case(
        "a full page reports the last key beside the token",
        *SORTED,
        run("SELECT sk FROM \"Pair\" WHERE pk = '1'", last_key, Limit=2),
        tables="Pair",
        local="returns only the token",
    ),
    case(
        "Limit counts before the filter",
        *SORTED,
        run("SELECT * FROM \"Pair\" WHERE pk = '1' AND x = 1", empty_page, Limit=1),
        tables="Pair",
    ),
    case(
        "SET and REMOVE work together",
        ONE,
        run("UPDATE \"Hash\" SET n = n + 1 SET q = 'x' REMOVE l REMOVE s WHERE pk = '1'", NOTHING),
        stored({"pk": text("1"), "n": number("6"), "q": text("x")}),
        tables="Hash",
    ),
    case(
        "list_append lengthens a list",
        ONE,
        run("UPDATE \"Hash\" SET l = list_append(l, ['b']) WHERE pk = '1'", NOTHING),
        stored(ITEM | {"l": {"L": [text("a"), text("b")]}}),
        tables="Hash",
    ),
    case(
        "set_add and set_delete change a set",
        ONE,
        run("UPDATE \"Hash\" SET s = set_add(s, <<3>>) WHERE pk = '1'", NOTHING),
        run("UPDATE \"Hash\" SET s = set_delete(s, <<1>>) WHERE pk = '1'", NOTHING),
        stored(ITEM | {"s": {"NS": ["2", "3"]}}),
        tables="Hash",
    ),
    *(
        case(
            f"RETURNING {clause} * returns its side",
            put(pk=text("1"), n=number("5"), a=text("x")),
            run(f"UPDATE \"Hash\" SET n = 6 WHERE pk = '1' RETURNING {clause} *", {"Items": [item]}),
            tables="Hash",
        )
        for clause, item in (
            ("ALL OLD", {"pk": text("1"), "n": number("5"), "a": text("x")}),
            ("ALL NEW", {"pk": text("1"), "n": number("6"), "a": text("x")}),
            ("MODIFIED OLD", {"n": number("5")}),
            ("MODIFIED NEW", {"n": number("6")}),
        )
    ),
    case(
        "an UPDATE does not create an item",
        run("UPDATE \"Hash\" SET n = 6 WHERE pk = 'none'", FAILED),
        stored(None, "none"),
        tables="Hash",
    ),
    case(
        "a further condition must hold for an UPDATE",
        ONE,
        run("UPDATE \"Hash\" SET n = 6 WHERE pk = '1' AND n = 99", FAILED),
        stored(ITEM),
        tables="Hash",
    ),
    case(
        "a DELETE removes the item",
        ONE,
        run("DELETE FROM \"Hash\" WHERE pk = '1'", NOTHING),
        stored(None),
        tables="Hash",
    ),
    case("a DELETE of nothing is fine", run("DELETE FROM \"Hash\" WHERE pk = '1'", NOTHING), tables="Hash"),
    case(
        "a DELETE returns the old item when asked",
        ONE,
        run("DELETE FROM \"Hash\" WHERE pk = '1' RETURNING ALL OLD *", {"Items": [ITEM]}),
        tables="Hash",
    ),
    case(
        "a further condition must hold for a DELETE",
        ONE,
        run("DELETE FROM \"Hash\" WHERE pk = '1' AND n = 99", FAILED),
        stored(ITEM),
        tables="Hash",
    ),
    case(
        "a SELECT by key costs half a unit",
        ONE,
        run("SELECT * FROM \"Hash\" WHERE pk = '1'", units(0.5), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
        local="never returns the capacity",
    ),
    case(
        "an INSERT costs one unit",
        run("INSERT INTO \"Hash\" VALUE {'pk': '1'}", units(1.0), ReturnConsumedCapacity="TOTAL"),
        tables="Hash",
        local="never returns the capacity",
    ),
    case(
        "a batch answers each SELECT in order",
        put(pk=text("1")),
        batch(
            {"Responses": [{"TableName": "Hash"}, {"TableName": "Hash", "Item": {"pk": text("1")}}]},
            "SELECT * FROM \"Hash\" WHERE pk = 'none'",
            {"Statement": 'SELECT * FROM "Hash" WHERE pk = ?', "Parameters": [text("1")]},
        ),
        tables="Hash",
    ),
    case(
        "a batch answers each write, failed or not",
        put(pk=text("1")),
        batch(
            {
                "Responses": [
                    error("DuplicateItem", "Duplicate primary key exists in table", TableName="Hash"),
                    {"TableName": "Hash"},
                ]
            },
            "INSERT INTO \"Hash\" VALUE {'pk': '1'}",
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
        ),
        stored({"pk": text("2")}, "2"),
        tables="Hash",
    ),
    case(
        "a failed condition in a batch is an answer",
        put(pk=text("1")),
        batch(
            {
                "Responses": [
                    error("ConditionalCheckFailed", "The conditional request failed", TableName="Hash")
                ]
            },
            "UPDATE \"Hash\" SET v = 1 WHERE pk = '1' AND v = 7",
        ),
        tables="Hash",
    ),
    case(
        "a parameter that is not a number fails its own statement of a batch",
        ONE,
        batch(
            {
                "Responses": [
                    {
                        "Error": {
                            "Code": "ValidationError",
                            "Message": "The parameter cannot be converted to a numeric value: abc",
                        }
                    },
                    {"TableName": "Hash", "Item": ITEM},
                ]
            },
            {"Statement": "SELECT * FROM \"Hash\" WHERE pk = '1' AND n = ?", "Parameters": [{"N": "abc"}]},
            "SELECT * FROM \"Hash\" WHERE pk = '1'",
        ),
        tables="Hash",
        local="fails the whole batch",
    ),
    case(
        "a SELECT in a batch needs the whole key",
        batch(
            {
                "Responses": [
                    error(
                        "ValidationError",
                        "Select statements within BatchExecuteStatement must specify the primary key in the "
                        "where clause.",
                    )
                ]
            },
            'SELECT * FROM "Hash"',
        ),
        tables="Hash",
        local=OWN_WORDS,
    ),
    case(
        "a missing table in a batch is an answer",
        batch(
            {"Responses": [error("ResourceNotFound", "Requested resource not found")]},
            "SELECT * FROM \"Nowhere\" WHERE pk = '1'",
        ),
        local=OWN_WORDS,
    ),
    case(
        "reads and writes do not share a batch",
        batch(
            Fails("ValidationException"),
            "SELECT * FROM \"Hash\" WHERE pk = '1'",
            "DELETE FROM \"Hash\" WHERE pk = '2'",
        ),
        tables="Hash",
    ),
    case(
        "26 statements are too many for a batch",
        batch(Fails("ValidationException"), *(f"SELECT * FROM \"Hash\" WHERE pk = '{n}'" for n in range(26))),
        tables="Hash",
    ),
    case(
        "an item is written once in a batch",
        batch(
            invalid("Provided list of item keys contains duplicates"),
            *["INSERT INTO \"Hash\" VALUE {'pk': '1'}"] * 2,
        ),
        tables="Hash",
    ),
    case(
        "a transaction of reads answers in order",
        put(pk=text("1")),
        transact(
            {"Responses": [{}, {"Item": {"pk": text("1")}}]},
            "SELECT * FROM \"Hash\" WHERE pk = 'none'",
            "SELECT * FROM \"Hash\" WHERE pk = '1'",
        ),
        tables="Hash",
    ),
    case(
        "a transaction of writes answers with nothing",
        put(pk=text("1")),
        transact(
            {"Responses": []},
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
            "UPDATE \"Hash\" SET v = 8 WHERE pk = '1'",
        ),
        stored({"pk": text("1"), "v": number("8")}),
        stored({"pk": text("2")}, "2"),
        tables="Hash",
    ),
    case(
        "reads and writes do not share a transaction",
        transact(
            invalid(
                "ExecuteTransaction API does not support both read and write operations in the same request."
            ),
            "SELECT * FROM \"Hash\" WHERE pk = '1'",
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
        ),
        tables="Hash",
    ),
    case(
        "an inserted item that exists undoes the transaction",
        put(pk=text("1")),
        transact(
            Fails("TransactionCanceledException"),
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
            "INSERT INTO \"Hash\" VALUE {'pk': '1'}",
        ),
        stored(None, "2"),
        tables="Hash",
    ),
    case(
        "a failed condition undoes the transaction and is named",
        put(pk=text("1")),
        transact(
            cancelled({"Code": "None"}, FAILED_REASON),
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
            "UPDATE \"Hash\" SET v = 8 WHERE pk = '1' AND v = 7",
        ),
        stored(None, "2"),
        tables="Hash",
    ),
    case(
        "EXISTS checks an item beside writes",
        put(pk=text("1"), v=number("8")),
        transact(
            {"Responses": []},
            "EXISTS(SELECT * FROM \"Hash\" WHERE pk = '1' AND v = 8)",
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
        ),
        stored({"pk": text("2")}, "2"),
        tables="Hash",
    ),
    case(
        "EXISTS that fails undoes the transaction",
        put(pk=text("1"), v=number("8")),
        transact(
            cancelled(FAILED_REASON, {"Code": "None"}),
            "EXISTS(SELECT * FROM \"Hash\" WHERE pk = '1' AND v = 9)",
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
        ),
        stored(None, "2"),
        tables="Hash",
        local="ends the reason with a full stop",
    ),
    case(
        "an item has one statement in a transaction",
        transact(
            invalid("Transaction request cannot include multiple operations on one item"),
            "UPDATE \"Hash\" SET v = 8 WHERE pk = '1'",
            "DELETE FROM \"Hash\" WHERE pk = '1'",
        ),
        tables="Hash",
    ),
    case(
        "a SELECT in a transaction needs the whole key",
        transact(
            invalid(
                "Validation failed in TransactStatements[0]: Select statements within ExecuteTransaction must "
                "specify the primary key in the where clause."
            ),
            'SELECT * FROM "Hash"',
        ),
        tables="Hash",
    ),
    case(
        "101 statements are too many for a transaction",
        transact(
            Fails("ValidationException"), *(f"SELECT * FROM \"Hash\" WHERE pk = '{n}'" for n in range(101))
        ),
        tables="Hash",
    ),
    case(
        # paritysuite/dynamodb-conformance, tier3 partiql.
        "a transaction returns no items",
        transact(
            invalid(
                "Validation failed in TransactStatements[0]: RETURNING clause is not supported in "
                "ExecuteTransaction."
            ),
            "UPDATE \"Hash\" SET v = 8 WHERE pk = '1' RETURNING ALL NEW *",
        ),
        tables="Hash",
    ),
    case(
        # nubo-db/dynoxide 137, verified on AWS.
        "a statement of a batch returns its item",
        Step("PutItem", {"TableName": "Hash", "Item": ITEM}),
        batch(
            {"Responses": [{"TableName": "Hash", "Item": {"v": number("8")}}]},
            "UPDATE \"Hash\" SET v = 8 WHERE pk = '1' RETURNING MODIFIED NEW *",
        ),
        tables="Hash",
    ),
    case(
        "a token makes a repeated transaction one",
        transact({"Responses": []}, "INSERT INTO \"Hash\" VALUE {'pk': '1'}", ClientRequestToken=TOKENS[0]),
        transact({"Responses": []}, "INSERT INTO \"Hash\" VALUE {'pk': '1'}", ClientRequestToken=TOKENS[0]),
        tables="Hash",
    ),
    case(
        "a token with other statements is a mismatch",
        transact({"Responses": []}, "INSERT INTO \"Hash\" VALUE {'pk': '1'}", ClientRequestToken=TOKENS[1]),
        transact(
            Fails("IdempotentParameterMismatchException"),
            "INSERT INTO \"Hash\" VALUE {'pk': '2'}",
            ClientRequestToken=TOKENS[1],
        ),
        tables="Hash",
    ),
]
