"""What solotable knows of AWS's API is what the model in the installed botocore says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import botocore.session
import pytest

from solotable._protocol.constraints.kinds import Constraint, ListOf, MapOf, Struct
from solotable._protocol.constraints.operations import CONSTRAINTS, ITEMS
from solotable._protocol.constraints.tables import STREAMS, TABLES
from solotable._protocol.operations import STREAM_OPERATIONS, UNSUPPORTED, WITHOUT_REPLY


def model(service: str) -> Any:
    return botocore.session.get_session().get_service_model(service)


def test_every_operation_of_the_api_is_supported_or_rejected_by_name() -> None:
    assert {*ITEMS, *TABLES, *UNSUPPORTED} == set(model("dynamodb").operation_names)
    assert STREAMS.keys() == STREAM_OPERATIONS == set(model("dynamodbstreams").operation_names)
    assert CONSTRAINTS.keys() & UNSUPPORTED == set()


def test_operations_without_a_reply_are_those_without_an_output() -> None:
    api = model("dynamodb")
    assert {
        name for name in api.operation_names if api.operation_model(name).output_shape is None
    } == WITHOUT_REPLY


@pytest.mark.parametrize("operation", CONSTRAINTS)
def test_every_member_of_a_request_is_known(operation: str) -> None:
    api = model("dynamodbstreams" if operation in STREAMS else "dynamodb")
    assert list(ignored(api.operation_model(operation).input_shape, CONSTRAINTS[operation])) == []


def ignored(theirs: Any, ours: Constraint, path: str = "") -> Iterator[str]:
    """Yield the members of AWS's shape that ours would drop without a word."""
    match ours:
        case Struct():
            for name, member in theirs.members.items():
                if name in ours.members:
                    yield from ignored(member, ours.members[name], f"{path}.{name}")
                else:
                    yield f"{path}.{name}"
        case ListOf():
            yield from ignored(theirs.member, ours.member, f"{path}[]")
        case MapOf():
            yield from ignored(theirs.value, ours.member, f"{path}{{}}")
        case _:
            return
