"""The differences from DynamoDB Local that are DynamoDB Local's, each with its reason.

An excuse is narrow: it names the request and both answers. Whatever it does not name is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Context, Decimal, InvalidOperation
from typing import Any

from tests.conformance.harness import Json, Target

from .expressions import KEYS
from .values import ATTRIBUTES

#: The items of every table.
State = dict[str, list[Json]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What a target answered: "ok" or the code of a refusal. The text is not compared."""

    code: str
    text: str = field(default="", compare=False)
    body: Any = None


@dataclass(frozen=True, slots=True)
class Exchange:
    """A request, the items before it, and both answers."""

    operation: str
    payload: Json
    before: State
    ours: Answer
    theirs: Answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """Excuses an exchange whose two answers match. `ours` and `theirs` are a code, a colon and a
    pattern for the text.
    """

    reason: str
    ours: str = ""
    theirs: str = ""
    operations: str = ""
    when: Callable[[Exchange], bool] | None = None

    def excuses(self, exchange: Exchange) -> bool:
        return (
            _matches(self.ours, exchange.ours)
            and _matches(self.theirs, exchange.theirs)
            and (not self.operations or exchange.operation in self.operations.split())
            and (self.when is None or self.when(exchange))
        )


def _matches(wanted: str, answer: Answer) -> bool:
    code, _, pattern = wanted.partition(":")
    return (not code or answer.code == code) and re.search(pattern.strip(), answer.text) is not None


def excuse(exchange: Exchange) -> str | None:
    """Return why the two answers may differ, or None when they may not."""
    if exchange.ours.code == exchange.theirs.code == "ok" and exchange.ours.body == _mended(exchange):
        return "nothing is left once the reply is mended"
    return next((rule.reason for rule in RULES if rule.excuses(exchange)), None)


def _mended(exchange: Exchange) -> Any:
    """Return their reply with what DynamoDB Local is known to leave out, to add or to count otherwise."""
    mended = dict(exchange.theirs.body)
    for mend in MENDS:
        if mend.member in exchange.ours.body.keys() | mended.keys() and mend.needed(exchange):
            mended.pop(mend.member, None)
            if mend.member in exchange.ours.body:
                mended[mend.member] = exchange.ours.body[mend.member]
    return mended


@dataclass(frozen=True, slots=True, kw_only=True)
class Mend:
    """A member of successful replies in which DynamoDB Local is not to be believed."""

    reason: str
    member: str
    operations: str
    when: Callable[[Exchange], bool] | None = None

    def needed(self, exchange: Exchange) -> bool:
        return exchange.operation in self.operations.split() and (self.when is None or self.when(exchange))


class Respelled:
    """DynamoDB Local, which keeps -0 and small powers of ten as they were written, with AWS's spelling."""

    def __init__(self, target: Target) -> None:
        self._target = target

    def call(self, operation: str, request: Any) -> Json:
        reply: Json = respelled(self._target.call(operation, request))
        return reply


def respelled(value: Any) -> Any:
    """Return the value with its numbers as AWS spells them."""
    if isinstance(value, list):
        return [respelled(member) for member in value]
    if not isinstance(value, dict):
        return value
    if set(value) == {"N"} and isinstance(value["N"], str):
        return {"N": _plain(value["N"])}
    if set(value) == {"NS"} and isinstance(value["NS"], list):
        return {"NS": sorted(map(_plain, value["NS"]))}
    return {name: respelled(member) for name, member in value.items()}


def _plain(number: str) -> str:
    try:
        return f"{_DIGITS.normalize(Decimal(number)):f}" if Decimal(number) else "0"
    except InvalidOperation:
        return number


_GLOBAL_KEYS = {"Indexed": [{"gp", "gs"}], "Multi": [{"p1", "p2", "s1", "s2", "s3"}, {"p1", "p2"}]}
_PROJECTED = {
    "gkeys": {"pk", "sk", "gp"},
    "ginc": {"pk", "sk", "gp", "x", "y"},
    "lkeys": {"pk", "sk", "ln"},
    "linc": {"pk", "sk", "ls", "x"},
    "pair": {"id", "p1", "p2"},
}
_NOT_TEXTS = ("ConsistentRead", "ScanIndexForward", "Limit", "Segment", "TotalSegments")
_DIGITS = Context(prec=40)


def _found_nothing(exchange: Exchange) -> bool:
    return bool(exchange.theirs.body.get("ScannedCount") == 0)


def _unasked(exchange: Exchange) -> bool:
    return exchange.payload.get("ReturnConsumedCapacity") in (None, "NONE")


def _nears_an_index(exchange: Exchange) -> bool:
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


def _has_ties(exchange: Exchange) -> bool:
    """Say whether both have the same items, and the same order of their sort keys in an index."""
    index = exchange.payload.get("IndexName")
    both = [answer.body.get("Items", ()) for answer in (exchange.ours, exchange.theirs)]
    if index not in KEYS or sorted(map(repr, both[0])) != sorted(map(repr, both[1])):
        return False
    names = [part.split(":")[0] for part in KEYS[index]]
    ours, theirs = ([[item.get(name) for name in names] for item in items] for items in both)
    return ours == theirs


def _filters_what_is_not_projected(exchange: Exchange) -> bool:
    projected = _PROJECTED.get(exchange.payload.get("IndexName", ""))
    condition = exchange.payload.get("FilterExpression", "")
    names = {*re.findall(r"\w+", condition), *exchange.payload.get("ExpressionAttributeNames", {}).values()}
    return projected is not None and bool((names & set(ATTRIBUTES)) - projected)


def _ends_at_a_bound(exchange: Exchange) -> bool:
    """Say whether a page is full and the condition on the key may leave nothing behind it."""
    condition = exchange.payload.get("KeyConditionExpression", "")
    bounded = re.search(r"BETWEEN|[<>]=|= .* = ", condition) or exchange.payload["TableName"] == "Multi"
    return bool(bounded) and exchange.payload.get("Limit") == exchange.ours.body["ScannedCount"]


def _deletes(exchange: Exchange) -> bool:
    entries = (entry for table in exchange.payload["RequestItems"].values() for entry in table)
    return any("DeleteRequest" in entry for entry in entries)


def _removes_from_nothing(exchange: Exchange) -> bool:
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


def _adds_to_a_member(exchange: Exchange) -> bool:
    return (
        exchange.payload.get("ReturnValues") in ("UPDATED_OLD", "UPDATED_NEW")
        and re.search(r"ADD .*[.\[]", exchange.payload.get("UpdateExpression", "")) is not None
    )


def _without_index_throughput(body: Json) -> Json:
    indexes = [
        {name: member for name, member in index.items() if name != "ProvisionedThroughput"}
        for index in body["TableDescription"].get("GlobalSecondaryIndexes", ())
    ]
    return {"TableDescription": body["TableDescription"] | {"GlobalSecondaryIndexes": indexes}}


def _spells_a_key_twice(exchange: Exchange) -> bool:
    return "'1.0'" in str(exchange.payload) and "'1'" in str(exchange.payload)


def _has_empty_map(exchange: Exchange) -> bool:
    return bool(exchange.theirs.body == _without_empty_maps(exchange.ours.body))


def _without_empty_maps(value: Any) -> Any:
    if value == {"M": {}}:
        return {}
    if isinstance(value, dict):
        return {name: _without_empty_maps(member) for name, member in value.items()}
    return [_without_empty_maps(member) for member in value] if isinstance(value, list) else value


MENDS = [
    Mend(
        reason="tells the capacity of a delete unasked",
        member="ConsumedCapacity",
        operations="DeleteItem",
        when=_unasked,
    ),
    Mend(
        reason="charges nothing where it finds nothing",
        member="ConsumedCapacity",
        operations="Query Scan",
        when=_found_nothing,
    ),
    Mend(
        reason="charges nothing for a missing item",
        member="ConsumedCapacity",
        operations="BatchGetItem GetItem",
    ),
    Mend(
        reason="charges a write for an index that holds the item neither before nor after",
        member="ConsumedCapacity",
        operations="PutItem UpdateItem BatchWriteItem",
        when=_nears_an_index,
    ),
    Mend(
        reason="does not charge a scan of a local index for what it fetches from the table",
        member="ConsumedCapacity",
        operations="Scan",
        when=lambda exchange: exchange.payload.get("IndexName", "").startswith("l"),
    ),
    Mend(
        reason="orders items with the same key in an index otherwise",
        member="Items",
        operations="Query",
        when=_has_ties,
    ),
    Mend(
        reason="leaves out the last key where the condition on the key allows no further one",
        member="LastEvaluatedKey",
        operations="Query",
        when=_ends_at_a_bound,
    ),
    Mend(
        reason="never tells the capacity of a statement",
        member="ConsumedCapacity",
        operations="ExecuteStatement",
    ),
    Mend(
        reason="counts one action of each table, and tells no read or write units",
        member="ConsumedCapacity",
        operations="TransactWriteItems TransactGetItems",
    ),
    Mend(
        reason="counts the deletes of a batch twice",
        member="ConsumedCapacity",
        operations="BatchWriteItem",
        when=_deletes,
    ),
    Mend(
        reason="tells no item collection metrics",
        member="ItemCollectionMetrics",
        operations="PutItem UpdateItem DeleteItem BatchWriteItem TransactWriteItems",
    ),
]

RULES = [
    Rule(
        reason="fails inside, where AWS has an answer",
        theirs="InternalFailure:",
    ),
    Rule(
        reason="takes numbers and booleans for text",
        ours="SerializationException:^(NUMBER|TRUE|FALSE)_VALUE cannot be converted to (String|Boolean)$",
    ),
    Rule(
        reason="takes any word for ReturnConsumedCapacity and ReturnItemCollectionMetrics",
        ours="ValidationException:at 'return(ConsumedCapacity|ItemCollectionMetrics)' failed to satisfy",
    ),
    Rule(
        reason="takes empty text for no number and no boolean",
        ours="SerializationException:^(Unexpected token|STRING_VALUE cannot be converted to Integer)",
        when=lambda exchange: "" in (exchange.payload.get(name) for name in _NOT_TEXTS),
    ),
    Rule(
        reason="takes empty text for no choice at all",
        ours="ValidationException:Value '' at '(returnValues|select)' failed to satisfy",
    ),
    Rule(
        reason="creates the item that an update would only remove from",
        operations="UpdateItem TransactWriteItems",
        ours="ok:",
        theirs="ok:",
        when=_removes_from_nothing,
    ),
    Rule(
        reason="creates the item that an update would only remove from",
        operations="UpdateItem TransactWriteItems",
        ours="left:",
        theirs="left:",
        when=_removes_from_nothing,
    ),
    Rule(
        reason="refuses to remove a path from a missing item",
        operations="UpdateItem TransactWriteItems",
        theirs="ValidationException:^The document path provided in the update expression is invalid",
        when=_removes_from_nothing,
    ),
    Rule(
        reason="cares for the type of a DELETE on an index key only once there is something to delete from",
        operations="UpdateItem TransactWriteItems",
        ours="ValidationException:Type mismatch for Index Key",
        theirs="ok:",
    ),
    Rule(
        reason="checks the condition before the types of index keys",
        operations="UpdateItem",
        ours="ValidationException:Type mismatch for Index Key",
        theirs="ConditionalCheckFailedException:",
    ),
    Rule(
        reason="checks the condition before the updates",
        operations="UpdateItem",
        ours="ValidationException:is not supported for the type|Only DELETE action|^Number (over|under)|numeric",
        theirs="ConditionalCheckFailedException:",
        when=lambda exchange: "AttributeUpdates" in exchange.payload,
    ),
    Rule(
        reason="checks the condition before the types of index keys",
        operations="TransactWriteItems",
        ours="TransactionCanceledException:Type mismatch for Index Key",
        theirs="TransactionCanceledException:The conditional request failed",
    ),
    Rule(
        reason="checks conditions before it looks for an item that is named twice",
        operations="TransactWriteItems ExecuteTransaction",
        ours="ValidationException:^Transaction request cannot include multiple operations on one item$",
        theirs="TransactionCanceledException:The conditional request failed",
    ),
    Rule(
        reason="does not see that two spellings of a number are one key",
        ours="ValidationException:multiple operations on one item|contains duplicates",
        theirs="ok:",
        when=_spells_a_key_twice,
    ),
    Rule(
        reason="gives the code ValidationError for an item that is there already",
        operations="ExecuteTransaction",
        ours="TransactionCanceledException:Duplicate primary key exists in table",
        theirs="TransactionCanceledException:Duplicate primary key exists in table",
        when=lambda exchange: (
            exchange.theirs.body
            == [code.replace("DuplicateItem", "ValidationError") for code in exchange.ours.body]
        ),
    ),
    Rule(
        reason="lets a table that is billed by request have a throughput",
        operations="CreateTable",
        ours="ValidationException:can be specified when BillingMode is PAY_PER_REQUEST",
        theirs="ok:",
    ),
    Rule(
        reason="cares for the type of a DELETE on an index key only once there is something to delete from",
        operations="TransactWriteItems",
        ours="TransactionCanceledException:Type mismatch for Index Key",
        theirs="ok:",
    ),
    Rule(
        reason="cancels a transaction with a statement that it cannot read",
        operations="ExecuteTransaction",
        ours="ValidationException:^Validation failed in TransactStatements",
        theirs="TransactionCanceledException:",
    ),
    Rule(
        reason="refuses the whole batch for a parameter that is no value",
        operations="BatchExecuteStatement",
        ours="ok:",
        theirs="ValidationException:number|may not be empty|duplicates|[Ee]mpty",
        when=lambda exchange: "ValidationError" in str(exchange.ours.body),
    ),
    Rule(
        reason="has done the first statements of a batch that it refuses",
        operations="BatchExecuteStatement",
        ours="left:",
        theirs="left:",
        when=lambda exchange: len(exchange.payload["Statements"]) > 1,
    ),
    Rule(
        reason="refuses to go on from a last key that the condition on the key allows nothing behind",
        operations="Query",
        ours="ok:",
        theirs="ValidationException:^The provided starting key does not match the range key predicate$",
        when=lambda exchange: exchange.ours.body["ScannedCount"] == 0,
    ),
    Rule(
        reason="takes any type for the key of a local index that the update works out",
        operations="UpdateItem TransactWriteItems ExecuteStatement ExecuteTransaction",
        ours=":The update expression attempted to update the secondary index key to unsupported type",
        when=lambda exchange: exchange.theirs.code in ("ok", "TransactionCanceledException"),
    ),
    Rule(
        reason="finds an item named twice before it finds a wrong type; which AWS finds first is not known",
        operations="TransactWriteItems ExecuteTransaction",
        ours="TransactionCanceledException:Type mismatch for Index Key|cannot contain an empty",
        theirs="ValidationException:^Transaction request cannot include multiple operations on one item$",
    ),
    Rule(
        reason="shows the way to the member that a statement of a batch or transaction selects",
        operations="BatchExecuteStatement ExecuteTransaction",
        ours="ok:",
        theirs="ok:",
        when=lambda exchange: re.search(r"SELECT (m\.|l\[)", str(exchange.payload)) is not None,
    ),
    Rule(
        reason="shows all of a list or map that a statement has changed a member of",
        operations="ExecuteStatement",
        ours="ok:",
        theirs="ok:",
        when=lambda exchange: (
            re.search(r"(SET|REMOVE) \w+[.\[].* RETURNING MODIFIED", exchange.payload["Statement"])
            is not None
        ),
    ),
    Rule(
        reason="shows all of the map that ADD has changed a member of",
        operations="UpdateItem",
        ours="ok:",
        theirs="ok:",
        when=_adds_to_a_member,
    ),
    Rule(
        reason="filters the scan of an index by what it does not project; on AWS that is missing",
        operations="Scan",
        ours="ok:",
        theirs="ok:",
        when=_filters_what_is_not_projected,
    ),
    Rule(
        reason="lets a batch name an item again once its first statement has failed",
        operations="BatchExecuteStatement",
        ours="ValidationException:^Provided list of item keys contains duplicates$",
        theirs="ok:",
        when=lambda exchange: "Error" in str(exchange.theirs.body),
    ),
    Rule(
        reason="takes an empty list of indexes for none",
        operations="CreateTable",
        ours="ValidationException:List of (Local|Global)SecondaryIndexes is empty",
        theirs="ok:",
    ),
    Rule(
        reason="leaves out the throughput of an index that has none",
        operations="CreateTable",
        ours="ok:",
        theirs="ok:",
        when=lambda exchange: exchange.theirs.body == _without_index_throughput(exchange.ours.body),
    ),
    Rule(
        reason="answers a transaction's invalid action as if it were alone",
        operations="TransactWriteItems ExecuteTransaction",
        ours="TransactionCanceledException:",
        theirs="ValidationException:^(The document path|An operand|The provided expression|Invalid attr)",
        when=lambda exchange: "ValidationError" in exchange.ours.body,
    ),
    Rule(
        reason="looks for the table before it looks at the request",
        ours="ValidationException:",
        theirs="ResourceNotFoundException:",
    ),
    Rule(
        reason="calls the error DuplicateItem",
        operations="ExecuteStatement",
        ours="DuplicateItemException:",
        theirs="DuplicateItem:",
    ),
    Rule(
        reason="filters a local index by what it does not project, as if that were missing",
        operations="ExecuteStatement",
        ours="ValidationException:Secondary index l.* does not project one or more filter attributes",
        theirs="ok:",
    ),
    Rule(
        reason="tells an empty map in a stream without its type",
        ours="stream:",
        theirs="stream:",
        when=_has_empty_map,
    ),
]
