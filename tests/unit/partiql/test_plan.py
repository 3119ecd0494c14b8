"""What statements become."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable._expressions.ast import (
    Add,
    And,
    Arithmetic,
    Assign,
    Attr,
    BeginsWith,
    Compare,
    Const,
    Contains,
    Delete,
    Exists,
    In,
    KeyTerm,
    ListAppend,
    Not,
    Or,
    Remove,
    Size,
    TypeIs,
    Update,
)
from solotable._partiql import Column, Reads, Schema, parse_statement, plan, plan_check, plan_get
from solotable._protocol.requests import DeleteItem, GetItem, PutItem, Query, Scan, Statement, UpdateItem
from solotable.errors import ServiceError

BOTH = Schema(partition=("pk",), sort=("sk",), kinds={"pk": "S", "sk": "N"})
HASH = Schema(partition=("pk",), sort=(), kinds={"pk": "S"})
NO_KEY = "Where clause does not contain a mandatory equality on all key attributes"


def planned(text: str, *parameters: dict[str, Any], table: Schema = BOTH) -> Any:
    statement = Statement(text=text, parameters=parameters)
    return plan(parse_statement(text), statement, table=table)


def selected(where: str, *parameters: dict[str, Any], columns: str = "*") -> Reads:
    reads = planned(f"SELECT {columns} FROM Music WHERE {where}", *parameters)
    assert isinstance(reads, Reads)
    return reads


def condition(text: str, *parameters: dict[str, Any]) -> Any:
    return selected(text, *parameters).requests[0].filter


def refusal(text: str, *parameters: dict[str, Any], table: Schema = BOTH) -> str:
    with pytest.raises(ServiceError) as caught:
        planned(text, *parameters, table=table)
    assert caught.value.code == "ValidationException"
    return caught.value.message


S = {"S": "a"}
PK = KeyTerm("pk", "=", (S,))


def test_without_a_partition_it_is_a_scan() -> None:
    assert planned("SELECT * FROM Music").requests == (Scan(table="Music"),)
    reads = selected("sk > 1")
    assert reads.requests == (Scan(table="Music", filter=Compare(">", Attr(("sk",)), Const({"N": "1"}))),)


@pytest.mark.parametrize("where", ["pk = 'a'", "'a' = pk", "(pk = 'a')", "pk IN ('a')", "pk IN ['a', 'a']"])
def test_a_partition_makes_it_a_query(where: str) -> None:
    assert selected(where) == Reads(requests=(Query(table="Music", key=(PK,)),))


@pytest.mark.parametrize("where", ["pk IN ['b', 'a']", "pk = 'b' OR pk = 'a'", "pk IN ('b') OR pk = 'a'"])
def test_several_partitions_make_a_query_each(where: str) -> None:
    keys = [request.key for request in selected(where).requests if isinstance(request, Query)]
    assert keys == [(PK,), (KeyTerm("pk", "=", ({"S": "b"},)),)]


def test_contradicting_partitions_make_no_request() -> None:
    assert selected("pk = 'a' AND pk = 'b'").requests == ()


@pytest.mark.parametrize(
    ("where", "term"),
    [
        ("sk = 1", KeyTerm("sk", "=", ({"N": "1"},))),
        ("1 < sk", KeyTerm("sk", ">", ({"N": "1"},))),
        ("sk <= 1", KeyTerm("sk", "<=", ({"N": "1"},))),
        ("sk BETWEEN 1 AND 2", KeyTerm("sk", "BETWEEN", ({"N": "1"}, {"N": "2"}))),
    ],
)
def test_the_sort_key_goes_into_the_key_condition(where: str, term: KeyTerm) -> None:
    assert selected(f"{where} AND pk = 'a' AND n = 5") == Reads(
        requests=(Query(table="Music", key=(PK, term), filter=Compare("=", Attr(("n",)), Const({"N": "5"}))),)
    )


def test_what_a_query_cannot_filter_is_left_over() -> None:
    reads = selected("pk = 'a' AND sk > 0 AND sk <> 3 AND n = 5", columns="n")
    (query,) = reads.requests
    assert isinstance(query, Query)
    assert query.key == (PK, KeyTerm("sk", ">", ({"N": "0"},)))
    assert reads.residue == Compare("<>", Attr(("sk",)), Const({"N": "3"}))
    assert query.projection == (("n",), ("sk",))
    assert reads.columns == (Column(("n",), "n"),)


def test_branches_with_other_conditions_are_left_over_too() -> None:
    reads = selected("(pk = 'a' AND sk = 1) OR (pk = 'b' AND n = 2)")
    assert len(reads.requests) == 2
    assert isinstance(reads.residue, Or)
    assert isinstance(selected("pk = 'a' OR n = 2").requests[0], Scan)


@pytest.mark.parametrize(
    "where",
    [
        "pk = 'a' AND x = '1' OR pk = 'a' AND sk = 2",
        "pk = 'a' AND sk < 3 OR pk = 'a' AND sk = 2",
        "pk = 'a' AND sk BETWEEN 1 AND 2 OR pk = 'a' AND sk >= 2",
    ],
)
def test_branches_that_overlap_on_the_sort_key_are_refused(where: str) -> None:
    assert (
        refusal(f"SELECT * FROM Music WHERE {where}")
        == "Overlapping conditions with range keys are not supported in where clause"
    )


@pytest.mark.parametrize(
    "where",
    [
        "pk = 'a' AND NOT sk = 1 OR pk = 'a' AND sk = 2",
        "pk = 'a' AND sk <> 1 OR pk = 'a' AND sk = 2",
        "pk = 'a' OR pk = 'a' AND NOT sk = 1",
        "pk = 'a' AND sk < 2 OR pk = 'a' AND sk = 2",
        "pk = 'a' AND sk = 1 OR pk = 'b' AND sk = 1",
    ],
)
def test_other_branches_run(where: str) -> None:
    assert selected(where).requests


def test_paths_are_named_by_their_last_name() -> None:
    reads = planned("SELECT m.x[0], m.y, pk FROM Music")
    assert reads.requests[0].projection == (("m",), ("pk",))
    assert reads.columns == (Column(("m", "x", 0), "x[0]"), Column(("m", "y"), "y"), Column(("pk",), "pk"))


@pytest.mark.parametrize(
    ("order", "first", "forward"),
    [
        ("sk DESC", "a", False),
        ("sk ASC", "a", True),
        ("pk DESC", "b", True),
        ("pk DESC, sk DESC", "b", False),
    ],
)
def test_order_by(order: str, first: str, forward: bool) -> None:
    reads = planned(f"SELECT * FROM Music WHERE pk IN ['a', 'b'] ORDER BY {order}")
    query = reads.requests[0]
    assert (query.key[0].values[0]["S"], query.forward) == (first, forward)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "SELECT * FROM Music ORDER BY sk",
            "Must have WHERE clause in the statement when using ORDER BY clause.",
        ),
        (
            "SELECT * FROM Music WHERE n = 1 ORDER BY sk",
            "Must have at least one non-optional hash key condition in WHERE clause "
            "when using ORDER BY clause.",
        ),
        (
            "SELECT * FROM Music WHERE pk = 'a' ORDER BY n",
            "Variable reference n in ORDER BY clause must be part of the primary key",
        ),
        ("SELECT COUNT(*) FROM Music", "Unexpected path component at 1:8:5"),
        ("SELECT n+1 FROM Music", "Unexpected path component at 1:9:1"),
        ("SELECT x, m.x FROM Music", "Duplicate identifiers in select clause: x"),
        (
            "SELECT m.x, m FROM Music",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [m], path two: [m, x]",
        ),
        (
            "SELECT * FROM Music WHERE pk = 1",
            "Key attribute's data type should match its data type in table's schema: Key pk",
        ),
        (
            "SELECT * FROM Music WHERE pk = 'a' AND sk = 'x'",
            "Key attribute's data type should match its data type in table's schema: Key sk",
        ),
        ("SELECT * FROM Music WHERE pk = ?", "Number of parameters in request and statement don't match."),
        (
            "SELECT * FROM Music WHERE pk",
            "WHERE clause must contain an expression that resolves to a boolean",
        ),
    ],
)
def test_selects_that_are_refused(text: str, message: str) -> None:
    assert refusal(text) == message


def test_an_index_with_several_attributes_in_its_key_is_refused() -> None:
    text = 'SELECT * FROM "Music"."gsi" WHERE h1 = 5'
    index = Schema(partition=("h1", "h2"), sort=("r1",))
    with pytest.raises(ServiceError) as caught:
        plan(parse_statement(text), Statement(text=text), table=BOTH, index=index)
    assert caught.value.message == (
        "PartiQL statements cannot be executed on tables with multi-attribute HASH keys "
        "or multi-attribute RANGE keys."
    )


N = Attr(("n",))
ONE = Const({"N": "1"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("n != 1", Compare("<>", N, ONE)),
        ("n = -1.50", Compare("=", N, Const({"N": "-1.5"}))),
        ("n = 'it''s'", Compare("=", N, Const({"S": "it's"}))),
        ("n = NULL", Compare("=", N, Const({"NULL": True}))),
        ("n = <<'b', 'a'>>", Compare("=", N, Const({"SS": ["a", "b"]}))),
        ("n = [1, {'x': true}]", Compare("=", N, Const({"L": [{"N": "1"}, {"M": {"x": {"BOOL": True}}}]}))),
        ("n IS MISSING", Not(Exists(("n",)))),
        ("n IS NOT MISSING", Not(Not(Exists(("n",))))),
        ("n IS NULL", TypeIs(N, "NULL")),
        ("n IS NOT NUMERIC", Not(TypeIs(N, "N"))),
        ("n IN (1)", In(N, (ONE,))),
        ("n IN [1]", In(N, (ONE,))),
        ("n NOT IN [1]", Not(In(N, (ONE,)))),
        ("NOT n = 1 AND m = n", And((Not(Compare("=", N, ONE)), Compare("=", Attr(("m",)), N)))),
        ("attribute_type(n, 'SS')", TypeIs(N, "SS")),
        ("BEGINS_WITH(n, 'x')", BeginsWith(N, Const({"S": "x"}))),
        ("contains(n, 'x') = true", Contains(N, Const({"S": "x"}))),
        ("contains(n, 'x') = false", Not(Contains(N, Const({"S": "x"})))),
        ('size("n") > 1', Compare(">", Size(N), ONE)),
        ("size('xyz') = n", Compare("=", Const({"N": "3"}), N)),
        ("attribute_exists(m.sub['x'][0])", Exists(("m", "sub", "x", 0))),
        ("attribute_not_exists(n)", Not(Exists(("n",)))),
    ],
)
def test_conditions(text: str, expected: Any) -> None:
    assert condition(text) == expected


def test_and_binds_tighter_than_or() -> None:
    found = condition("a = 1 OR n = 1 AND m = 1")
    assert isinstance(found, Or)
    assert isinstance(found.terms[1], And)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "attribute_exists('ss')",
            "Operator or function requires a document path; operator or function: attribute_exists",
        ),
        (
            "attribute_exists(a, b)",
            "Incorrect number of operands for operator or function; "
            "operator or function: attribute_exists, number of operands: 2",
        ),
        ("EXISTS(a)", "Unrecognized function: exists at 1:27:6"),
        ("set_add(a, <<'x'>>) = a", "Unrecognized function: set_add at 1:27:7"),
        (
            "a < true",
            "Incorrect operand type for operator or function; operator or function: <, operand type: BOOL",
        ),
        (
            "begins_with(a, 1)",
            "Incorrect operand type for operator or function; "
            "operator or function: begins_with, operand type: N",
        ),
        ("a + 1 = 2", "Unsupported operator in Condition Expression. Operator: +"),
        ("a LIKE 'x'", "Unsupported operator in Condition Expression. Operator: like"),
        ("a = MISSING", "MISSING must be compared using IS operator"),
        ("a = <<>>", "Empty bags are not supported"),
        (
            "a = <<1, 'x'>>",
            "Unsupported data type in Bag. DynamoDB only supports either numbers or strings in bags",
        ),
        (
            "a = 1e126",
            "Number overflow. Attempting to store a number with magnitude larger than supported range "
            "under root",
        ),
        (
            "a IS BAG",
            "Unsupported data type for IS operator: BAG. Supported data types are "
            "[MISSING, NULL, BOOLEAN, BLOB, STRING, NUMERIC, STRUCT, TUPLE, LIST] at 1:29:2",
        ),
        (
            "a IN []",
            "IN operator must have a left hand argument of type Variable Reference "
            "and right hand argument of type Seq with at least one member",
        ),
        (
            "a BETWEEN 2 AND 1",
            "The BETWEEN operator requires upper bound to be greater than or equal to lower bound; "
            "lower bound operand: AttributeValue: {N:2}, upper bound operand: AttributeValue: {N:1}",
        ),
        ("a AND b = 1", "The arguments to AND/OR must be Expressions"),
        ("NOT a", "The argument to NOT must be a Type or Expression"),
    ],
)
def test_conditions_that_are_refused(text: str, message: str) -> None:
    assert refusal(f"SELECT * FROM Music WHERE {text}") == message


def test_an_insert_is_a_put_of_what_is_not_there() -> None:
    action = planned("INSERT INTO Music VALUE {'pk': ?, 'sk': 1, 'm': {'x': [1.0]}}", S)
    assert action == PutItem(
        table="Music",
        item={"pk": S, "sk": {"N": "1"}, "m": {"M": {"x": {"L": [{"N": "1"}]}}}},
        condition=Not(Exists(("pk",))),
    )


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{'a': 'x'}", "Key attribute should be present in the item: Key pk"),
        ("{'pk': 1}", "Key attribute's data type should match its data type in table's schema: Key pk"),
        ("{'pk': 'a', 'pk': 'b'}", "Duplicate keys in tuple. Key: pk under root at 1:37:4"),
        (
            "{pk: 'a'}",
            "Tuple keys must be of type String. Actual type: VariableReference under root at 1:26:2",
        ),
        ("{'pk': set_add(<<'a'>>, <<'b'>>)}", "Unsupported data type: set_add under key root at 1:32:7"),
        (
            "{'pk': 'a', 'm': {'x': 1e126}}",
            "Number overflow. Attempting to store a number with magnitude larger than supported range "
            "under root.x",
        ),
        (
            "{'pk': 'a', 'l': [1, 1e126]}",
            "Number overflow. Attempting to store a number with magnitude larger than supported range "
            "under root[1]",
        ),
        (
            "?",
            "Unsupported format in item expression. Please use struct format {...} to express item values "
            "for insert statement. at 1:25:1",
        ),
    ],
)
def test_inserts_that_are_refused(value: str, message: str) -> None:
    assert refusal(f"INSERT INTO Music VALUE {value}", {"M": {"pk": S}}, table=HASH) == message


@given(st.text())
def test_a_string_literal_is_stored_as_it_is(text: str) -> None:
    literal = text.replace("'", "''")
    action = planned(f"INSERT INTO Music VALUE {{'pk': 'k', 'x': '{literal}'}}", table=HASH)
    assert action.item["x"] == {"S": text}


def test_an_update_wants_its_item_to_be_there() -> None:
    action = planned(
        "UPDATE Music SET a = n + 1 REMOVE b WHERE sk = 1 AND pk = 'a' AND n > 1 RETURNING ALL NEW *"
    )
    assert action == UpdateItem(
        table="Music",
        key={"pk": S, "sk": {"N": "1"}},
        update=Update((Assign(("a",), Arithmetic("+", N, ONE)), Remove(("b",))), creates=True),
        condition=And((Exists(("pk",)), Compare(">", N, ONE))),
        returns="ALL_NEW",
    )


def test_the_functions_of_set() -> None:
    text = (
        "UPDATE Music SET l = list_append(l, [1]) SET s = SET_ADD(s, <<'x'>>) "
        "SET t.u = set_delete(t.u, ?) WHERE pk = 'a'"
    )
    action = planned(text, {"NS": ["2", "1"]}, table=HASH)
    assert action.update.actions == (
        Assign(("l",), ListAppend(Attr(("l",)), Const({"L": [{"N": "1"}]}))),
        Add(("s",), {"SS": ["x"]}),
        Delete(("t", "u"), {"NS": ["1", "2"]}),
    )


def test_a_delete_without_its_item_succeeds() -> None:
    assert planned("DELETE FROM Music WHERE pk = 'a'", table=HASH) == DeleteItem(table="Music", key={"pk": S})
    action = planned("DELETE FROM Music WHERE pk = 'a' AND n = 1 RETURNING ALL OLD *", table=HASH)
    assert action.condition == Or((Not(Exists(("pk",))), Compare("=", N, ONE)))
    assert action.returns == "ALL_OLD"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("UPDATE Music SET a = 1", NO_KEY),
        ("FROM Music SET a = 1", NO_KEY),
        ("UPDATE Music SET a = 1 WHERE n = 1", NO_KEY),
        ("UPDATE Music SET a = 1 WHERE pk IN ['a']", NO_KEY),
        ("UPDATE Music SET a = 1 WHERE pk = 'a' OR pk = 'b'", NO_KEY),
        ("UPDATE Music SET a = 1 WHERE NOT pk = 'a'", NO_KEY),
        ("DELETE FROM Music", NO_KEY),
        (
            "UPDATE Music SET a = 1 WHERE pk = 'a' AND pk = 'b'",
            "Multiple conditions on same key pk. Only single item Update/Insert/Delete are supported",
        ),
        (
            "UPDATE Music SET t = set_add(s, <<'x'>>) WHERE pk = 'a'",
            "The first argument to SET_ADD must equal the assignment value at 1:22:7",
        ),
        (
            "UPDATE Music SET s = set_delete(s, 'x') WHERE pk = 'a'",
            "The second argument to SET_DELETE must be a value with type SET at 1:33:1",
        ),
        (
            "UPDATE Music SET s = set_add(s) WHERE pk = 'a'",
            "SET_ADD must have exactly two arguments at 1:22:7",
        ),
        (
            "UPDATE Music SET s = set_add(s, <<'x', 'x'>>) WHERE pk = 'a'",
            "One or more parameter values were invalid: Input collection [x, x] contains duplicates.",
        ),
        (
            "UPDATE Music SET a = size(n) WHERE pk = 'a'",
            "The function is not allowed in an update expression; function: size",
        ),
        (
            "UPDATE Music SET a = n * 2 WHERE pk = 'a'",
            "Unsupported operator in Update Expression. Operator: *",
        ),
        (
            "UPDATE Music SET a = 1 SET a.b = 2 WHERE pk = 'a'",
            "Two document paths overlap with each other; must remove or rewrite one of these paths; "
            "path one: [a, b], path two: [a]",
        ),
        (
            "UPDATE Music SET a.b = 1 SET a[1] = 2 WHERE pk = 'a'",
            "Two document paths conflict with each other; must remove or rewrite one of these paths; "
            "path one: [a, [1]], path two: [a, b]",
        ),
    ],
)
def test_changes_that_are_refused(text: str, message: str) -> None:
    assert refusal(text, table=HASH) == message


def get(text: str) -> tuple[GetItem, Any]:
    return plan_get(parse_statement(text), Statement(text=text), table=HASH, within="ExecuteTransaction")


def test_a_select_in_a_transaction_is_a_get() -> None:
    assert get("SELECT m.x FROM Music WHERE pk = 'a'") == (
        GetItem(table="Music", key={"pk": S}, projection=(("m",),)),
        (Column(("m", "x"), "x"),),
    )


@pytest.mark.parametrize("where", ["", "WHERE n = 1", "WHERE pk = 'a' AND n = 1", "WHERE pk IN ['a']"])
def test_a_select_in_a_transaction_has_the_key_and_nothing_else(where: str) -> None:
    with pytest.raises(ServiceError) as caught:
        get(f"SELECT * FROM Music {where}")
    assert caught.value.message == (
        "Select statements within ExecuteTransaction must specify the primary key in the where clause."
    )


def test_exists_is_a_condition_check() -> None:
    text = "EXISTS(SELECT * FROM Music WHERE pk = 'a' AND n = 1)"
    check = plan_check(parse_statement(text), Statement(text=text), table=HASH)
    assert check.key == {"pk": S}
    assert check.condition == And((Exists(("pk",)), Compare("=", N, ONE)))
    text = "EXISTS(SELECT * FROM Music WHERE pk = 'a')"
    with pytest.raises(ServiceError) as caught:
        plan_check(parse_statement(text), Statement(text=text), table=HASH)
    assert caught.value.message == "EXISTS() must contain a single item read with additional condition"


_CONDITION_PIECES = """
pk sk n m.x[0] "a b" = <> < > BETWEEN AND OR NOT IN IS NULL MISSING STRING ( ) [ ] << >> {'a': } , 1 -1 1e200
'x' ? true false contains( begins_with( size( attribute_type( attribute_exists( if_not_exists( set_add( + - *
"""


@given(
    st.sampled_from(
        [
            "SELECT * FROM Music WHERE ",
            "SELECT ",
            "DELETE FROM Music WHERE pk = 'a' AND ",
            "UPDATE Music SET n = ",
            "INSERT INTO Music VALUE {'pk': 'a', 'sk': 1, 'n': ",
            "EXISTS(SELECT * FROM Music WHERE ",
        ]
    ),
    st.lists(st.sampled_from(_CONDITION_PIECES.split()), min_size=1, max_size=12).map(" ".join),
    st.sampled_from(["", " FROM Music", " AND pk = 'a' ORDER BY sk", " WHERE pk = 'a' AND sk = 1", "}", ")"]),
)
def test_any_statement_is_planned_or_a_service_error(start: str, middle: str, end: str) -> None:
    text = start + middle + end
    statement = Statement(text=text, parameters=({"S": "p"},))
    try:
        parsed = parse_statement(text)
        if parsed.exists:
            plan_check(parsed, statement, table=BOTH)
        else:
            plan(parsed, statement, table=BOTH)
    except ServiceError:
        return
