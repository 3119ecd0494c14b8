"""Encode request records as the operation's name and its members, the inverse of `decode.requests`.

Members that equal DynamoDB's default are left out. Legacy parameters become expressions. A record that the
wire form cannot express raises DeclarationError; nothing else is checked.
"""

from __future__ import annotations

from typing import Any

from solotable._expressions.ast import And, Condition, Projection
from solotable._expressions.render import (
    Placeholders,
    render_condition,
    render_key_condition,
    render_projection,
    render_update,
)
from solotable._protocol.requests import (
    BatchDelete,
    BatchExecuteStatement,
    BatchGetItem,
    BatchPut,
    BatchWriteItem,
    ConditionCheck,
    Control,
    DeleteItem,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    PreparedUpdateItem,
    PutItem,
    Query,
    Request,
    Scan,
    Statement,
    TableKeys,
    TransactGetItems,
    TransactWriteItems,
    UpdateItem,
    WriteAction,
)
from solotable.errors import DeclarationError

Wire = dict[str, Any]


def encode_request(request: Request[Any]) -> tuple[str, Wire]:
    """Return the name of a request's operation and its members."""
    if isinstance(request, Control):
        return request.operation, request.members
    return type(request).__name__, _encode_members(request)


def _encode_members(request: Request[Any]) -> Wire:
    match request:
        case GetItem():
            return _add_reports(_encode_get(request), request)
        case PutItem() | UpdateItem() | DeleteItem():
            return _encode_single_write(request)
        case Query() | Scan():
            return _encode_page(request)
        case BatchGetItem():
            tables = {part.table: _encode_table_keys(part) for part in request.tables}
            return _add_reports({"RequestItems": tables}, request)
        case BatchWriteItem():
            writes = {table: [_encode_batch_write(one) for one in writes] for table, writes in request.tables}
            return _add_reports({"RequestItems": writes}, request)
        case TransactGetItems():
            return _add_reports(
                {"TransactItems": [{"Get": _encode_get(one)} for one in request.gets]}, request
            )
        case TransactWriteItems():
            actions = [_encode_transact_write(action) for action in request.actions]
            return _add_reports(_add_token({"TransactItems": actions}, request.token), request)
        case _:
            return _encode_partiql(request)


def _encode_partiql(request: Request[Any]) -> Wire:
    match request:
        case ExecuteStatement():
            members = _encode_statement(request.statement)
            if request.limit is not None:
                members["Limit"] = request.limit
            if request.token is not None:
                members["NextToken"] = request.token
            return _add_reports(members, request)
        case BatchExecuteStatement():
            return _add_reports(
                {"Statements": [_encode_statement(one) for one in request.statements]}, request
            )
        case ExecuteTransaction():
            statements = {"TransactStatements": [_encode_statement(one) for one in request.statements]}
            return _add_reports(_add_token(statements, request.token), request)
        case _:
            raise TypeError(f"{type(request).__name__} is not a DynamoDB request.")


def _encode_get(request: GetItem | TableKeys) -> Wire:
    members: Wire = {}
    if isinstance(request, GetItem):
        members["TableName"] = request.table
        members["Key"] = request.key
    if request.consistent:
        members["ConsistentRead"] = True
    if request.projection is not None:
        tokens = Placeholders()
        _add_projection(members, request.projection, tokens)
        tokens.add_to(members)
    return members


def _encode_single_write(request: PutItem | UpdateItem | DeleteItem) -> Wire:
    members = _encode_write(request)
    if request.returns != "NONE":
        members["ReturnValues"] = request.returns
    return _add_reports(members, request)


def _encode_write(action: WriteAction) -> Wire:
    if isinstance(action, PreparedUpdateItem):
        members = action.template.wire_members(action.values)
        members["TableName"] = action.table
        members["Key"] = action.key
    else:
        members = _encode_expressions(action)
    if action.returns_on_failure:
        members["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return members


def _encode_expressions(action: WriteAction) -> Wire:
    members: Wire = {"TableName": action.table}
    if isinstance(action, PutItem):
        members["Item"] = action.item
    else:
        members["Key"] = action.key
    tokens = Placeholders()
    if isinstance(action, UpdateItem):
        text = render_update(action.update, tokens)
        if text is not None:
            members["UpdateExpression"] = text
    _add_condition(members, "ConditionExpression", action.condition, tokens)
    tokens.add_to(members)
    return members


def _encode_transact_write(action: WriteAction) -> Wire:
    members = _encode_write(action)
    match action:
        case PutItem():
            return {"Put": members}
        case UpdateItem():
            if not action.update.actions:
                raise DeclarationError(
                    "An update in a transaction needs at least one action; DynamoDB rejects one without."
                )
            return {"Update": members}
        case DeleteItem():
            return {"Delete": members}
        case ConditionCheck():
            return {"ConditionCheck": members}


def _encode_page(request: Query | Scan) -> Wire:
    members: Wire = {"TableName": request.table}
    tokens = Placeholders()
    if isinstance(request, Query):
        if request.key:
            members["KeyConditionExpression"] = render_key_condition(request.key, tokens)
        if not request.forward:
            members["ScanIndexForward"] = False
    elif request.segments is not None:
        members["Segment"] = request.segment
        members["TotalSegments"] = request.segments
    _add_condition(members, "FilterExpression", request.filter, tokens)
    if request.projection is not None:
        _add_projection(members, request.projection, tokens)
    tokens.add_to(members)
    for name, member in (
        ("IndexName", request.index),
        ("Select", request.select),
        ("Limit", request.limit),
        ("ExclusiveStartKey", request.start),
    ):
        if member is not None:
            members[name] = member
    if request.consistent:
        members["ConsistentRead"] = True
    return _add_reports(members, request)


def _encode_table_keys(part: TableKeys) -> Wire:
    return {"Keys": list(part.keys), **_encode_get(part)}


def _encode_batch_write(write: BatchPut | BatchDelete) -> Wire:
    if isinstance(write, BatchPut):
        return {"PutRequest": {"Item": write.item}}
    return {"DeleteRequest": {"Key": write.key}}


def _encode_statement(statement: Statement) -> Wire:
    members: Wire = {"Statement": statement.text}
    if statement.parameters:
        members["Parameters"] = list(statement.parameters)
    if statement.consistent:
        members["ConsistentRead"] = True
    if statement.returns_on_failure:
        members["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
    return members


def _add_condition(members: Wire, parameter: str, condition: Condition | None, tokens: Placeholders) -> None:
    # A condition without terms always holds; the language cannot express it.
    if condition is not None and condition != And(()):
        members[parameter] = render_condition(condition, tokens)


def _add_projection(members: Wire, projection: Projection, tokens: Placeholders) -> None:
    members["ProjectionExpression"] = render_projection(projection, tokens)


def _add_token(members: Wire, token: str | None) -> Wire:
    if token is not None:
        members["ClientRequestToken"] = token
    return members


def _add_reports(members: Wire, request: Any) -> Wire:
    """Add the parameters that ask for reports."""
    if request.capacity != "NONE":
        members["ReturnConsumedCapacity"] = request.capacity
    if getattr(request, "collection", "NONE") != "NONE":
        members["ReturnItemCollectionMetrics"] = request.collection
    return members
