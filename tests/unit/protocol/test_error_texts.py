"""The words of a refusal by operation and year; and that user input cannot change which it gets."""

from __future__ import annotations

import json
from typing import Any

import pytest

from solotable._protocol.decode.requests import decode_request
from solotable._protocol.engine import Capabilities
from solotable._protocol.error_texts import YEARS, ErrorTexts, choose_text
from solotable.errors import ServiceError, TableNotFound, invalid

COUNTED = "1 validation error detected: "
T: dict[str, Any] = {"TableName": "abc"}
K: dict[str, Any] = {"Key": {"p": {"S": "x"}}}
EMPTY_SET = "One or more parameter values were invalid: An string set  may not be empty"


def refused(operation: str, payload: dict[str, Any], texts: ErrorTexts) -> str:
    with pytest.raises(ServiceError) as caught:
        decode_request(operation, payload, texts)
    return caught.value.message


@pytest.mark.parametrize(
    ("operation", "texts", "expected"),
    [
        ("PutItem", "2026", f"{COUNTED}newer"),
        ("UpdateItem", "2026", f"{COUNTED}newer"),
        ("DeleteItem", "2026", f"{COUNTED}newer"),
        ("GetItem", "2026", "newer"),
        ("BatchGetItem", "2026", "newer"),
        ("Query", "2026", "newer"),
        ("Scan", "2026", "older"),
        ("BatchWriteItem", "2026", "older"),
        ("TransactWriteItems", "2026", "older"),
        ("TransactGetItems", "2026", "older"),
        ("ExecuteStatement", "2026", "older"),
        ("PutItem", "2025", "older"),
        ("Query", "2025", "older"),
    ],
)
def test_the_operation_and_the_year_choose_the_text(operation: str, texts: ErrorTexts, expected: str) -> None:
    assert choose_text(invalid("older", newer="newer"), operation, texts).message == expected


def test_a_conflict_with_select_is_counted_in_a_query_alone() -> None:
    def text(operation: str) -> str:
        return choose_text(invalid("text", family="select"), operation, "2026").message

    assert {operation: text(operation) for operation in ("Query", "Scan", "GetItem")} == {
        "Query": f"{COUNTED}text",
        "Scan": "text",
        "GetItem": "text",
    }


def test_other_errors_keep_their_text_and_their_kind() -> None:
    missing = TableNotFound()
    assert choose_text(missing, "PutItem", "2026") is missing


def test_a_count_is_never_put_before_a_count() -> None:
    payload = {**T, "Item": {"p": {"S": "x"}}, "ReturnItemCollectionMetrics": "hi"}
    for texts in YEARS:
        assert refused("PutItem", payload, texts).count("validation error") == 1


def test_what_a_value_says_does_not_change_the_words() -> None:
    # An emulator that looks into the text takes this name for a refusal that is bare.
    name = "The provided key element does not match the schema"
    update = {**T, **K, "UpdateExpression": "SET #a = :v", "ExpressionAttributeNames": {"#b": name}}
    assert refused("UpdateItem", update, "2026").startswith(f"{COUNTED}Invalid UpdateExpression: ")


def test_an_action_of_a_transaction_is_not_counted_as_the_operation_is() -> None:
    update = {
        **T,
        **K,
        "UpdateExpression": "SET a = :v",
        "ExpressionAttributeValues": {":v": {"SS": []}},
    }
    wrapped = f"ExpressionAttributeValues contains invalid value: {EMPTY_SET} for key :v"
    assert refused("UpdateItem", update, "2026") == COUNTED + EMPTY_SET
    assert refused("UpdateItem", update, "2025") == wrapped
    assert refused("TransactWriteItems", {"TransactItems": [{"Update": update}]}, "2026") == wrapped


def test_a_query_names_no_key_of_a_bad_value_but_a_scan_does() -> None:
    values = {"ExpressionAttributeValues": {":p": {"S": "x"}, ":v": {"N": ""}}}
    query = {**T, "KeyConditionExpression": "p = :p", "FilterExpression": "a = :v", **values}
    scan = {**T, "FilterExpression": "a = :v AND p = :p", **values}
    fault = "The parameter cannot be converted to a numeric value"
    assert refused("Query", query, "2026") == f"{fault}: "
    assert refused("Scan", scan, "2026") == (
        f"ExpressionAttributeValues contains invalid value: {fault} for key :v"
    )


def test_a_bad_name_in_a_batch_is_shown_with_the_request() -> None:
    requested = {"bad!name": {"Keys": [{"pk": {"S": "a"}}]}}
    shown = json.dumps(requested, separators=(",", ":"))
    message = refused("BatchGetItem", {"RequestItems": requested}, "2026")
    assert message.startswith(f"{COUNTED}Value '{shown}' at 'requestItems' failed to satisfy constraint: ")
    assert "Value '{bad!name}' at" in refused("BatchGetItem", {"RequestItems": requested}, "2025")


def test_a_set_of_a_hundred_thousand_members_is_refused_at_once() -> None:
    members = [str(at) for at in range(100_000)] + ["7"]
    message = refused("PutItem", {**T, "Item": {"p": {"SS": members}}}, "2026")
    assert message.endswith(', "7"] contains duplicates.')


def test_an_engine_that_does_not_say_has_the_latest_texts() -> None:
    assert Capabilities().error_texts == "2026"


def test_a_bad_name_beside_the_deepest_value_is_refused_all_the_same() -> None:
    value: Any = {"S": "leaf"}
    for _ in range(100_000):
        value = {"L": [value]}
    requested = {"bad!name": {"Keys": [{"pk": value}]}}
    message = refused("BatchGetItem", {"RequestItems": requested}, "2026")
    assert message.startswith(f"{COUNTED}Value '{{bad!name}}' at 'requestItems' failed")
