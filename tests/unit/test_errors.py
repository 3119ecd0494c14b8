"""Errors cross process boundaries: each one can be pickled and copied with all of its attributes."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from solotable import errors
from solotable.errors import SolotableError

AT = datetime(2035, 1, 1, tzinfo=UTC)
REASONS = [{"Code": "ConditionalCheckFailed", "Message": "The conditional request failed"}]
#: The arguments of those that need more than a message.
ARGUMENTS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "BatchIncomplete": (("text",), {"leftovers": [1]}),
    "DataError": (("text",), {"public_message": "shown"}),
    "FeedTrimmed": (("text",), {"consumer": "c", "since": AT}),
    "FileLocked": (("text",), {"holder": 7}),
    "DamagedBackup": (("text",), {"file": "snapshot.db.gz"}),
    "DamagedExport": (("text",), {"file": "data.json.gz", "line": 3}),
    "ItemTooLarge": (("text",), {"size": 9, "largest": [("f", 9)]}),
    "LeaseHeld": (("text",), {"name": "n", "owner": "o", "until": AT}),
    "LeaseLost": (("text",), {"name": "n", "token": 1}),
    "NewerSchemaVersion": (("text",), {"schema_version": 3, "known": 2}),
    "SubjectForgotten": (("text",), {"tenant": "t", "subject": "s", "forgotten_at": AT}),
    "MappingRejected": (("text",), {"problems": ["a"]}),
    "MigrationNotReady": (("text",), {"reasons": ["a"]}),
    "WritesPaused": (("text",), {"seconds": 30.0}),
    "NotUnique": (("text",), {"field": "f", "value": 1, "holder": {"id": "1"}}),
    "ServiceError": (("Code", "text"), {"status": 500, "Item": {"a": {"S": "b"}}}),
    "Throttled": (("ThrottlingException", "text"), {}),
    "TooManyConflicts": (("text",), {"item": {"a": {"S": "b"}}, "attempts": 20}),
    "TransactionCancelled": ((REASONS,), {}),
    "TransactionFailed": (("text",), {"reasons": REASONS, "failures": ["put A"]}),
    "UnknownEntity": (("text",), {"tag": "T", "item": {"a": {"S": "b"}}}),
    "VersionConflict": (("text",), {"item": None, "mine": 1, "theirs": 2}),
}
CLASSES = [
    found
    for name in errors.__all__
    if isinstance(found := getattr(errors, name), type) and issubclass(found, SolotableError)
]
COPIES: dict[str, Callable[[Any], Any]] = {
    "pickle": lambda error: pickle.loads(pickle.dumps(error)),  # noqa: S301 - made here
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
}


@pytest.mark.parametrize("make_copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("kind", CLASSES)
def test_error_is_copied_with_its_text_and_attributes(
    kind: type[SolotableError], make_copy: Callable[[Any], Any]
) -> None:
    given, named = ARGUMENTS.get(kind.__name__, (("text",), {}))
    error: Any = kind(*given, **named)
    found: Any = make_copy(error)
    assert type(found) is kind
    assert (str(found), found.args, vars(found)) == (str(error), error.args, vars(error))
