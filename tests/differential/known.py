"""The differences from DynamoDB Local that are DynamoDB Local's, each with its reason.

An excuse is narrow: it names the request and both answers. Whatever it does not name is a finding.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .answers import Answer, Exchange
from .situations import (
    adds_to_a_member,
    deletes,
    ends_at_a_bound,
    filters_what_is_not_projected,
    found_nothing,
    has_empty_map,
    has_ties,
    index_has_ties,
    misses_an_item,
    modifies_a_member,
    nears_an_index,
    removes_from_nothing,
    selects_a_member,
    spells_a_key_twice,
    unasked,
    without_index_throughput,
)


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
    if exchange.ours.code == exchange.theirs.code == "ok" and exchange.ours.body == _repaired(exchange):
        return "nothing is left once the reply is repaired"
    return next((rule.reason for rule in RULES if rule.excuses(exchange)), None)


def _repaired(exchange: Exchange) -> Any:
    """Return their reply with what DynamoDB Local is known to leave out, to add or to count otherwise."""
    repaired = dict(exchange.theirs.body)
    for repair in REPAIRS:
        if repair.member in exchange.ours.body.keys() | repaired.keys() and repair.needed(exchange):
            repaired.pop(repair.member, None)
            if repair.member in exchange.ours.body:
                repaired[repair.member] = exchange.ours.body[repair.member]
    return repaired


@dataclass(frozen=True, slots=True, kw_only=True)
class Repair:
    """A member of successful replies in which DynamoDB Local is not to be believed."""

    reason: str
    member: str
    operations: str
    when: Callable[[Exchange], bool] | None = None

    def needed(self, exchange: Exchange) -> bool:
        return exchange.operation in self.operations.split() and (self.when is None or self.when(exchange))


REPAIRS = [
    Repair(
        reason="creates the item that an update would only remove from",
        member="Attributes",
        operations="UpdateItem",
        when=removes_from_nothing,
    ),
    Repair(
        reason="shows all of the map that ADD has changed a member of",
        member="Attributes",
        operations="UpdateItem",
        when=adds_to_a_member,
    ),
    Repair(
        reason="shows all of a list or map that a statement has changed a member of",
        member="Items",
        operations="ExecuteStatement",
        when=modifies_a_member,
    ),
    Repair(
        reason="shows the way to the member that a statement of a batch or transaction selects",
        member="Responses",
        operations="BatchExecuteStatement ExecuteTransaction",
        when=selects_a_member,
    ),
    Repair(
        reason="tells the capacity of a delete unasked",
        member="ConsumedCapacity",
        operations="DeleteItem",
        when=unasked,
    ),
    Repair(
        reason="charges nothing where it finds nothing",
        member="ConsumedCapacity",
        operations="Query Scan",
        when=found_nothing,
    ),
    Repair(
        reason="charges nothing for a missing item",
        member="ConsumedCapacity",
        operations="BatchGetItem GetItem",
        when=misses_an_item,
    ),
    Repair(
        reason="charges a write for an index that holds the item neither before nor after",
        member="ConsumedCapacity",
        operations="PutItem UpdateItem BatchWriteItem",
        when=nears_an_index,
    ),
    Repair(
        reason="does not charge a scan of a local index for what it fetches from the table",
        member="ConsumedCapacity",
        operations="Scan",
        when=lambda exchange: exchange.payload.get("IndexName", "").startswith("l"),
    ),
    Repair(
        reason="orders items with the same key in an index otherwise",
        member="Items",
        operations="Query",
        when=has_ties,
    ),
    Repair(
        reason="leaves out the last key where the condition on the key allows no further one",
        member="LastEvaluatedKey",
        operations="Query",
        when=ends_at_a_bound,
    ),
    Repair(
        reason="never tells the capacity of a statement",
        member="ConsumedCapacity",
        operations="ExecuteStatement",
    ),
    Repair(
        reason="counts one action of each table, and tells no read or write units",
        member="ConsumedCapacity",
        operations="TransactWriteItems TransactGetItems",
    ),
    Repair(
        reason="counts the deletes of a batch twice",
        member="ConsumedCapacity",
        operations="BatchWriteItem",
        when=deletes,
    ),
    Repair(
        reason="tells no item collection metrics",
        member="ItemCollectionMetrics",
        operations="PutItem UpdateItem DeleteItem BatchWriteItem TransactWriteItems",
    ),
]

_NOT_TEXTS = ("ConsistentRead", "ScanIndexForward", "Limit", "Segment", "TotalSegments")

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
        ours="left:^ok$",
        theirs="left:",
        when=removes_from_nothing,
    ),
    Rule(
        reason="refuses to remove a path from a missing item",
        operations="UpdateItem TransactWriteItems",
        theirs="ValidationException:^The document path provided in the update expression is invalid",
        when=removes_from_nothing,
    ),
    Rule(
        reason="cares for the type of a DELETE on an index key only once there is something to delete from",
        operations="UpdateItem TransactWriteItems",
        ours="ValidationException:Type mismatch for Index Key",
        theirs="ok:",
        when=lambda exchange: "DELETE" in str(exchange.payload),
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
        ours="ValidationException:is not supported for the type|Only DELETE action is allowed",
        theirs="ConditionalCheckFailedException:",
        when=lambda exchange: "AttributeUpdates" in exchange.payload,
    ),
    Rule(
        reason="checks the condition before the numbers in the updates",
        operations="UpdateItem",
        ours="ValidationException:^Number (over|under)flow|numeric value|more than 38 significant digits",
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
        when=spells_a_key_twice,
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
        when=lambda exchange: "DELETE" in str(exchange.payload),
    ),
    Rule(
        reason="cancels a transaction with a statement that it cannot read",
        operations="ExecuteTransaction",
        ours="ValidationException:^Validation failed in TransactStatements",
        theirs="TransactionCanceledException:",
    ),
    Rule(
        reason="refuses the whole batch for an invalid parameter",
        operations="BatchExecuteStatement",
        ours="ok:",
        theirs="ValidationException:number|may not be empty|duplicates|[Ee]mpty",
        when=lambda exchange: "ValidationError" in str(exchange.ours.body),
    ),
    Rule(
        reason="has done the first statements of a batch that it refuses",
        operations="BatchExecuteStatement",
        ours="left:^ValidationException$",
        theirs="left:",
        when=lambda exchange: len(exchange.payload["Statements"]) > 1,
    ),
    Rule(
        reason="refuses to continue from a last key that the condition on the key allows nothing behind",
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
        reason="takes any type for the key of a local index in an update",
        operations="UpdateItem TransactWriteItems ExecuteStatement ExecuteTransaction",
        ours=":Type mismatch for Index Key l[sn] Expected",
        theirs="ok:",
    ),
    Rule(
        reason="finds an item named twice before it finds a wrong type; which AWS finds first is not known",
        operations="TransactWriteItems ExecuteTransaction",
        ours="TransactionCanceledException:Type mismatch for Index Key|cannot contain an empty",
        theirs="ValidationException:^Transaction request cannot include multiple operations on one item$",
    ),
    Rule(
        reason="filters the scan of an index by what it does not project; on AWS that is missing",
        operations="Scan",
        ours="ok:",
        theirs="ok:",
        when=filters_what_is_not_projected,
    ),
    Rule(
        reason="orders items with the same key in an index otherwise, so a page holds others",
        operations="Query",
        ours="ok:",
        theirs="ok:",
        when=lambda exchange: "Limit" in exchange.payload and index_has_ties(exchange),
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
        when=lambda exchange: exchange.theirs.body == without_index_throughput(exchange.ours.body),
    ),
    Rule(
        reason="answers a transaction's invalid action as if it were alone",
        operations="TransactWriteItems ExecuteTransaction",
        ours="TransactionCanceledException:",
        theirs="ValidationException:^(The document|An operand|The provided expr|Invalid attr)|index key",
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
        when=has_empty_map,
    ),
]
