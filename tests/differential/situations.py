"""When an excuse holds: questions to a request and the items that it met."""

from __future__ import annotations

import re
from typing import Any

from tests.conformance.harness import Json

from .answers import Exchange, State, respelled
from .expressions import KEYS
from .values import ATTRIBUTES

_GLOBAL_KEYS = {"Indexed": [{"gp", "gs"}], "Multi": [{"p1", "p2", "s1", "s2", "s3"}, {"p1", "p2"}]}
_PROJECTED = {
    "gkeys": {"pk", "sk", "gp"},
    "ginc": {"pk", "sk", "gp", "x", "y"},
    "lkeys": {"pk", "sk", "ln"},
    "linc": {"pk", "sk", "ls", "x"},
    "pair": {"id", "p1", "p2"},
}


def found_nothing(exchange: Exchange) -> bool:
    return bool(exchange.theirs.body.get("ScannedCount") == 0)


def misses_an_item(exchange: Exchange) -> bool:
    if exchange.operation == "GetItem":
        return "Item" not in exchange.theirs.body
    wanted = sum(len(table["Keys"]) for table in exchange.payload["RequestItems"].values())
    return sum(map(len, exchange.theirs.body["Responses"].values())) < wanted


def unasked(exchange: Exchange) -> bool:
    return exchange.payload.get("ReturnConsumedCapacity") in (None, "NONE")


def nears_an_index(exchange: Exchange) -> bool:
    """Say whether an item before the write has a part of the key of a global index."""
    if exchange.operation != "BatchWriteItem":
        named = exchange.payload.get("Item") or exchange.payload["Key"]
        return _is_partly_indexed(exchange.before, exchange.payload["TableName"], named)
    return any(
        _is_partly_indexed(exchange.before, table, entry["PutRequest"]["Item"])
        for table, entries in exchange.payload["RequestItems"].items()
        for entry in entries
        if "PutRequest" in entry
    )


def _is_partly_indexed(before: State, table: str, named: Json) -> bool:
    key = respelled({name: named[name] for name in ("pk", "sk", "id") if name in named})
    old: Json = next((item for item in before[table] if key.items() <= item.items()), {})
    return any(0 < len(parts & old.keys()) < len(parts) for parts in _GLOBAL_KEYS.get(table, ()))


def has_ties(exchange: Exchange) -> bool:
    """Say whether both have the same items, and the same order of their sort keys in an index."""
    index = exchange.payload.get("IndexName")
    both = [answer.body.get("Items", ()) for answer in (exchange.ours, exchange.theirs)]
    if index not in KEYS or sorted(map(repr, both[0])) != sorted(map(repr, both[1])):
        return False
    names = [part.split(":")[0] for part in KEYS[index]]
    ours, theirs = ([[item.get(name) for name in names] for item in items] for items in both)
    return ours == theirs


def index_has_ties(exchange: Exchange) -> bool:
    """Say whether two items have the same key in the index that is read."""
    names = [part.split(":")[0] for part in KEYS.get(exchange.payload.get("IndexName", ""), ())]
    items = exchange.before[exchange.payload["TableName"]]
    keys = [repr([item[name] for name in names]) for item in items if item.keys() >= set(names)]
    return bool(names) and len(set(keys)) < len(keys)


def filters_what_is_not_projected(exchange: Exchange) -> bool:
    projected = _PROJECTED.get(exchange.payload.get("IndexName", ""))
    condition = exchange.payload.get("FilterExpression", "")
    names = {*re.findall(r"\w+", condition), *exchange.payload.get("ExpressionAttributeNames", {}).values()}
    return projected is not None and bool((names & set(ATTRIBUTES)) - projected)


def ends_at_a_bound(exchange: Exchange) -> bool:
    """Say whether a page is full and the condition on the key may leave nothing behind it."""
    condition = exchange.payload.get("KeyConditionExpression", "")
    bounded = re.search(r"BETWEEN|[<>]=|= .* = ", condition) or exchange.payload["TableName"] == "Multi"
    return bool(bounded) and exchange.payload.get("Limit") == exchange.ours.body["ScannedCount"]


def deletes(exchange: Exchange) -> bool:
    entries = (entry for table in exchange.payload["RequestItems"].values() for entry in table)
    return any("DeleteRequest" in entry for entry in entries)


def removes_from_nothing(exchange: Exchange) -> bool:
    """Say whether an update that only removes meets a missing item."""
    if exchange.operation == "UpdateItem":
        updates = [exchange.payload]
    else:
        updates = [action["Update"] for action in exchange.payload["TransactItems"] if "Update" in action]
    return any(_only_removes(update) and _is_missing(exchange.before, update) for update in updates)


def _only_removes(update: Json) -> bool:
    if "UpdateExpression" in update:
        return re.search(r"\b(SET|ADD)\b", update["UpdateExpression"]) is None
    return all(one.get("Action") == "DELETE" for one in update.get("AttributeUpdates", {"": {}}).values())


def _is_missing(before: State, update: Json) -> bool:
    key = respelled(update["Key"])
    return not any(key.items() <= item.items() for item in before[update["TableName"]])


def adds_to_a_member(exchange: Exchange) -> bool:
    return (
        exchange.payload.get("ReturnValues") in ("UPDATED_OLD", "UPDATED_NEW")
        and re.search(r"ADD .*[.\[]", exchange.payload.get("UpdateExpression", "")) is not None
    )


def modifies_a_member(exchange: Exchange) -> bool:
    return re.search(r"(SET|REMOVE) \w+[.\[].* RETURNING MODIFIED", exchange.payload["Statement"]) is not None


def selects_a_member(exchange: Exchange) -> bool:
    return re.search(r"SELECT (m\.|l\[)", str(exchange.payload)) is not None


def without_index_throughput(body: Json) -> Json:
    indexes = [
        {name: member for name, member in index.items() if name != "ProvisionedThroughput"}
        for index in body["TableDescription"].get("GlobalSecondaryIndexes", ())
    ]
    return {"TableDescription": body["TableDescription"] | {"GlobalSecondaryIndexes": indexes}}


def spells_a_key_twice(exchange: Exchange) -> bool:
    return "'1.0'" in str(exchange.payload) and "'1'" in str(exchange.payload)


def has_empty_map(exchange: Exchange) -> bool:
    return bool(exchange.theirs.body == _without_empty_maps(exchange.ours.body))


def _without_empty_maps(value: Any) -> Any:
    if value == {"M": {}}:
        return {}
    if isinstance(value, dict):
        return {name: _without_empty_maps(member) for name, member in value.items()}
    return [_without_empty_maps(member) for member in value] if isinstance(value, list) else value
