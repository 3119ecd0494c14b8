"""What DynamoDB says to wrong JSON types and broken constraints, word for word."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from solotable._protocol.constraints.checker import check
from solotable._protocol.constraints.operations import CONSTRAINTS
from solotable._protocol.decode.requests import decode_request
from solotable.errors import ServiceError

CAST = (
    "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class "
    "java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class "
    "are in module java.base of loader 'bootstrap')"
)
STRUCTURE = "Start of structure or map found where not expected"
VALUE_MAP = (
    "Unrecognized collection type java.util.Map<java.lang.String, "
    "com.amazonaws.dynamodb.v20120810.AttributeValue>"
)
VALUE_CLASS = "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.AttributeValue"
NOT_BYTES = "only base-64-encoded strings are convertible to bytes"


def refused(operation: str, payload: Any) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        check(operation, payload)
    return caught.value


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({"TableName": True}, "TRUE_VALUE cannot be converted to String"),
        ({"TableName": False}, "FALSE_VALUE cannot be converted to String"),
        ({"TableName": 23}, "NUMBER_VALUE cannot be converted to String"),
        ({"TableName": 34.56}, "DECIMAL_VALUE cannot be converted to String"),
        ({"TableName": []}, "Unrecognized collection type class java.lang.String"),
        ({"TableName": {}}, STRUCTURE),
        ({"Limit": "23"}, "STRING_VALUE cannot be converted to Integer"),
        ({"Limit": True}, "TRUE_VALUE cannot be converted to Integer"),
        ({"Limit": []}, "Unrecognized collection type class java.lang.Integer"),
        ({"ConsistentRead": "23"}, "Unexpected token received from parser"),
        ({"ConsistentRead": 23}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"ConsistentRead": 2.5}, "DECIMAL_VALUE cannot be converted to Boolean"),
        ({"ConsistentRead": []}, "Unrecognized collection type class java.lang.Boolean"),
        ({"AttributesToGet": "a"}, "Unexpected field type"),
        ({"AttributesToGet": {}}, STRUCTURE),
        ({"AttributesToGet": [1]}, "NUMBER_VALUE cannot be converted to String"),
        ({"ExclusiveStartKey": "a"}, "Unexpected field type"),
        ({"ExclusiveStartKey": []}, VALUE_MAP),
        (
            {"ExpressionAttributeNames": []},
            "Unrecognized collection type java.util.Map<java.lang.String, java.lang.String>",
        ),
        ({"ScanFilter": {"a": 1}}, "Unexpected value type in payload"),
        (
            {"ScanFilter": {"a": []}},
            "Unrecognized collection type class com.amazonaws.dynamodb.v20120810.Condition",
        ),
    ],
)
def test_a_wrong_json_type_is_named_as_java_sees_it(payload: dict[str, Any], text: str) -> None:
    error = refused("Scan", payload)
    assert (error.code, error.message) == ("SerializationException", text)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("a", "Unexpected value type in payload"),
        ([], VALUE_CLASS),
        ({"S": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1}, "NUMBER_VALUE cannot be converted to String"),
        ({"N": 1.5}, "DECIMAL_VALUE cannot be converted to String"),
        ({"B": 1}, NOT_BYTES),
        ({"B": []}, "Unrecognized collection type class java.nio.ByteBuffer"),
        ({"B": {}}, STRUCTURE),
        ({"B": "23456"}, "Base64 encoded length is expected a multiple of 4 bytes but found: 5"),
        ({"B": "=+/="}, "Invalid last non-pad Base64 character dectected"),
        ({"B": "+/+="}, "Invalid last non-pad Base64 character dectected"),
        ({"B": "a!bc"}, "Invalid base 64 character: '!'"),
        ({"BOOL": "x"}, "Unexpected token received from parser"),
        ({"NULL": 1}, "NUMBER_VALUE cannot be converted to Boolean"),
        ({"SS": "a"}, "Unexpected field type"),
        ({"SS": {}}, STRUCTURE),
        ({"SS": [True]}, "TRUE_VALUE cannot be converted to String"),
        ({"BS": ["a"]}, "Base64 encoded length is expected a multiple of 4 bytes but found: 1"),
        ({"L": "a"}, "Unexpected field type"),
        ({"L": ["a"]}, "Unexpected value type in payload"),
        ({"L": [{"BS": [1]}]}, NOT_BYTES),
        ({"M": []}, VALUE_MAP),
        ({"M": {"a": []}}, VALUE_CLASS),
        ({"M": {"a": {"S": []}}}, "Unrecognized collection type class java.lang.String"),
    ],
)
def test_attribute_values_are_checked_all_the_way_down(value: Any, text: str) -> None:
    error = refused("PutItem", {"TableName": "abc", "Item": {"a": value}})
    assert (error.code, error.message) == ("SerializationException", text)


def test_collections_inside_collections_are_refused_as_a_failed_cast() -> None:
    assert refused("BatchWriteItem", {"RequestItems": {"abc": "x"}}).message == CAST
    assert refused("BatchGetItem", {"RequestItems": {"abc": {"Keys": ["x"]}}}).message == CAST
    assert refused("BatchGetItem", {"RequestItems": {"abc": {"Keys": [[]]}}}).message == VALUE_MAP


def test_a_structure_in_a_structure_is_a_field() -> None:
    error = refused("TransactWriteItems", {"TransactItems": [{"Put": "x"}]})
    assert error.message == "Unexpected field type"
    assert refused("PutItem", {"Expected": {"a": {"Value": 1}}}).message == "Unexpected field type"


def test_null_and_unknown_members_are_as_absent() -> None:
    payload = {
        "TableName": "abc",
        "Key": {"a": {"S": "x", "N": None, "Z": 1}},
        "Nope": 1,
        "ConsistentRead": None,
    }
    assert check("GetItem", payload) == {"TableName": "abc", "Key": {"a": {"S": "x"}}}


def test_words_are_booleans_and_fractions_are_cut() -> None:
    assert check("Scan", {"TableName": "abc", "ConsistentRead": "Yes"})["ConsistentRead"] is True
    assert check("Scan", {"TableName": "abc", "Limit": 1.9})["Limit"] == 1


def test_values_that_need_no_cleaning_are_not_copied() -> None:
    item = {"a": {"S": "x"}, "b": {"L": [{"N": "1"}, {"M": {"c": {"BOOL": True}}}]}, "d": {"SS": ["x"]}}
    clean = check("PutItem", {"TableName": "abc", "Item": item})["Item"]
    assert clean == item
    assert all(clean[name] is value for name, value in item.items())


def test_cleaning_leaves_the_callers_item_alone() -> None:
    item = {"a": {"L": [{"S": "x", "N": None}]}, "b": {"BOOL": "true"}}
    clean = check("PutItem", {"TableName": "abc", "Item": item})["Item"]
    assert clean == {"a": {"L": [{"S": "x"}]}, "b": {"BOOL": True}}
    assert item == {"a": {"L": [{"S": "x", "N": None}]}, "b": {"BOOL": "true"}}


def test_a_value_that_is_nested_too_deep_is_left_to_canonical_before_the_stack_ends() -> None:
    value: dict[str, Any] = {"S": 1}
    for _ in range(5000):
        value = {"L": [value]}
    assert check("PutItem", {"TableName": "abc", "Item": {"a": value}})["Item"]["a"] is value
    with pytest.raises(ServiceError, match="Nesting Levels have exceeded supported limits"):
        decode_request("PutItem", {"TableName": "abc", "Item": {"a": value}})


def test_constraints_are_reported_together() -> None:
    assert refused("GetItem", {}).message == (
        "2 validation errors detected: "
        "Value null at 'tableName' failed to satisfy constraint: Member must not be null; "
        "Value null at 'key' failed to satisfy constraint: Member must not be null"
    )
    error = refused("GetItem", {"TableName": "abc", "ReturnConsumedCapacity": "hi", "AttributesToGet": []})
    assert error.message == (
        "3 validation errors detected: "
        "Value 'hi' at 'returnConsumedCapacity' failed to satisfy constraint: "
        "Member must satisfy enum value set: [INDEXES, TOTAL, NONE]; "
        "Value '[]' at 'attributesToGet' failed to satisfy constraint: "
        "Member must have length greater than or equal to 1; "
        "Value null at 'key' failed to satisfy constraint: Member must not be null"
    )


def test_constraints_name_their_place_in_lists_and_maps() -> None:
    error = refused("CreateTable", {"TableName": "abc", "AttributeDefinitions": [{}], "KeySchema": []})
    assert "Value null at 'attributeDefinitions.1.member.attributeName'" in error.message
    error = refused("BatchWriteItem", {"RequestItems": {"abc": [{"PutRequest": {}}]}})
    assert "Value null at 'requestItems.abc.member.1.member.putRequest.item'" in error.message
    error = refused("BatchGetItem", {"RequestItems": {"abc": {}}})
    assert "Value null at 'requestItems.abc.member.keys'" in error.message


def test_lengths_of_map_values_are_constraints_of_the_map() -> None:
    writes = [{"PutRequest": {"Item": {"a": {"S": str(i)}}}} for i in range(26)]
    message = refused("BatchWriteItem", {"RequestItems": {"abc": writes}}).message
    assert message.startswith(
        "1 validation error detected: Value '{abc=[com.amazonaws.dynamodb.v20120810.Write"
    )
    assert message.endswith(
        "]}' at 'requestItems' failed to satisfy constraint: Map value must satisfy constraint: "
        "[Member must have length less than or equal to 25, "
        "Member must have length greater than or equal to 1]"
    )


def test_no_more_than_ten_errors_are_counted() -> None:
    payload = {"TableName": "abc", "KeySchema": [], "AttributeDefinitions": [{}] * 9}
    assert refused("CreateTable", payload).message.startswith("10 validation errors detected: ")


def test_control_operations_ask_for_the_table_first() -> None:
    for operation in ("CreateTable", "DescribeTable", "DeleteTable", "UpdateTable", "DescribeTimeToLive"):
        assert refused(operation, {}).message == (
            "The parameter 'TableName' is required but was not present in the request"
        )


def test_every_operation_survives_an_empty_and_a_listed_payload() -> None:
    for operation in CONSTRAINTS:
        with suppress(ServiceError):
            check(operation, {})
        assert refused(operation, []).code == "SerializationException"


def test_an_unknown_operation_has_its_own_error() -> None:
    assert refused("GetItems", {}).code == "UnknownOperationException"
