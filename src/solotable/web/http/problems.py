"""Errors as RFC 9457 problems: the status of each, and which part of its message a client sees.

The table has every error of `solotable.errors`, itself or by an ancestor. A client sees what it can correct;
other errors are a 500 with a request id, and the log has the rest.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any
from urllib.parse import quote

from fastapi import Request, Response

from solotable import errors

MEDIA_TYPE = "application/problem+json"
_LONGEST_DETAIL = 500
_PREFIX = "urn:problem:solotable:"
#: RFC 9110 renamed these, and Python 3.13 follows it: a type must not depend on the Python version.
_PHRASES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemType:
    """A problem type: `slug` is the end of its `type`, `detail` the text that a client sees."""

    status: int
    slug: str
    title: str
    detail: str
    #: Show the error's own message instead; it must hold only what the client may know.
    show_message: bool = False
    retry_after_seconds: int | None = None


INTERNAL = ProblemType(
    status=500,
    slug="internal",
    title="Internal error",
    detail="An unexpected error; the server's log has it under the request id.",
)
_UNAVAILABLE = ProblemType(
    status=503,
    slug="unavailable",
    title="Temporarily unavailable",
    detail="The database did not answer; try again later.",
    retry_after_seconds=1,
)
_UNKNOWN = replace(
    _UNAVAILABLE,
    slug="outcome-unknown",
    title="Outcome unknown",
    detail="The database did not answer, and the change may have been made. Read before you try again.",
    retry_after_seconds=None,
)
_CONFLICT = ProblemType(
    status=409, slug="conflict", title="Conflict", detail="The stored data does not allow this change."
)
_CHANGED = ProblemType(
    status=409,
    slug="version-conflict",
    title="Version conflict",
    detail="Another request changed the item first; read it again and repeat your change.",
)
_THROTTLED = ProblemType(
    status=429,
    slug="throttled",
    title="Too many requests",
    detail="Too many requests at once; try again later.",
    retry_after_seconds=1,
)
_INVALID = ProblemType(status=422, slug="invalid", title="Invalid data", detail="The data cannot be stored.")

PROBLEM_TYPES: dict[type[Exception], ProblemType] = {
    errors.SolotableError: INTERNAL,
    errors.DeclarationError: INTERNAL,
    errors.DataError: _INVALID,
    errors.ItemTooLarge: replace(_INVALID, slug="too-large", title="Too large to store"),
    # These concern stored data, not the request.
    errors.DamagedBackup: INTERNAL,
    errors.DamagedExport: INTERNAL,
    errors.StoredDataError: INTERNAL,
    errors.NewerSchemaVersion: INTERNAL,
    errors.UnknownEntity: INTERNAL,
    errors.SubjectForgotten: replace(
        _CONFLICT,
        slug="subject-forgotten",
        title="Forgotten",
        detail="The person was forgotten, so personal data cannot be stored under this id.",
    ),
    errors.NotFound: ProblemType(
        status=404, slug="not-found", title="Not found", detail="The item does not exist."
    ),
    errors.NotUnique: replace(
        _CONFLICT, slug="not-unique", title="Taken", detail="Another item has this value."
    ),
    errors.FeedTrimmed: INTERNAL,
    errors.LeaseHeld: replace(
        _CONFLICT, slug="busy", title="Busy", detail="Another process holds the lease; try again later."
    ),
    errors.LeaseLost: replace(
        _CONFLICT, slug="busy", title="Busy", detail="Another process took over the lease; try again later."
    ),
    errors.MigrationError: INTERNAL,
    errors.MappingRejected: INTERNAL,
    errors.MigrationConflict: replace(
        _CONFLICT, slug="migration-conflict", detail="Another process changes the migration; try again later."
    ),
    errors.MigrationNotReady: replace(
        _CONFLICT, slug="migration-not-ready", detail="The migration is not ready for this step."
    ),
    errors.SwitchTimedOut: replace(
        _UNAVAILABLE, detail="The switch took too long and was undone; try again later."
    ),
    errors.WritesPaused: replace(_UNAVAILABLE, detail="Writes are paused for a moment; try again later."),
    errors.SyncUnavailable: replace(
        _UNAVAILABLE, detail="The sync was done in part, or not at all; send it again."
    ),
    errors.TenantViolation: ProblemType(
        status=403, slug="forbidden", title="Forbidden", detail="The credential does not reach this data."
    ),
    errors.CursorRejected: ProblemType(
        status=400,
        slug="cursor-rejected",
        title="Cursor rejected",
        detail="The cursor does not belong to this list, or has expired; start with the first page.",
    ),
    errors.BatchIncomplete: replace(
        _UNAVAILABLE,
        slug="incomplete",
        title="Incomplete",
        detail="A part of the data was not written; try again later.",
    ),
    errors.EngineError: INTERNAL,
    errors.NotOurFile: INTERNAL,
    errors.ReadOnly: replace(
        _UNAVAILABLE, slug="read-only", detail="The database is read-only now; try again later."
    ),
    errors.StorageFull: ProblemType(
        status=507,
        slug="storage-full",
        title="Storage full",
        detail="The storage has no space left for the change.",
    ),
    errors.FileLocked: replace(_UNAVAILABLE, detail="The database is busy; try again later."),
    errors.FileReplaced: INTERNAL,
    errors.Corrupt: INTERNAL,
    errors.RecoveryError: INTERNAL,
    errors.HeatUnavailable: INTERNAL,
    errors.NotConfigured: INTERNAL,
    errors.TransportError: _UNAVAILABLE,
    errors.OutcomeUnknown: _UNKNOWN,
    errors.ServiceError: INTERNAL,
    errors.ConditionFailed: _CONFLICT,
    errors.AlreadyExists: replace(
        _CONFLICT, slug="already-exists", title="Already exists", detail="The item exists already."
    ),
    errors.TooManyConflicts: replace(
        _CONFLICT,
        slug="busy",
        title="Busy",
        detail="Too many requests changed the item at once; try again later.",
        retry_after_seconds=1,
    ),
    errors.VersionConflict: _CHANGED,
    errors.TransactionCancelled: _CONFLICT,
    errors.TransactionFailed: _CONFLICT,
    errors.TableNotFound: INTERNAL,
    errors.Throttled: _THROTTLED,
}


def problem_type_of(
    error: BaseException,
    *,
    conditional: bool = False,
    more: Mapping[type[Exception], ProblemType] | None = None,
) -> ProblemType:
    """Return the problem type of an error; `conditional` if the request had an If-Match."""
    table = PROBLEM_TYPES if not more else {**PROBLEM_TYPES, **more}
    found = next((table[cause] for cause in type(error).__mro__ if cause in table), INTERNAL)
    if isinstance(error, errors.VersionConflict) and conditional and found.status == 409:
        return replace(found, status=412)
    if isinstance(error, errors.TransactionCancelled) and found is _CONFLICT:
        return _of_transaction(error, conditional=conditional, more=more)
    if isinstance(error, errors.ServiceError) and found is INTERNAL and error.retryable:
        return _UNAVAILABLE
    return found


def _of_transaction(
    error: errors.TransactionCancelled,
    *,
    conditional: bool,
    more: Mapping[type[Exception], ProblemType] | None,
) -> ProblemType:
    """Return the type of the first action that failed: it is the reason of the whole transaction."""
    for failure in getattr(error, "failures", ()):
        return problem_type_of(failure.error, conditional=conditional, more=more)
    codes = {reason.get("Code") for reason in error.reasons} - {"None", None}
    if codes & {"ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"}:
        return _THROTTLED
    return _CONFLICT if codes <= {"ConditionalCheckFailed", "TransactionConflict"} else INTERNAL


def detail_of(error: BaseException, problem_type: ProblemType) -> str | None:
    """Return the part of an error that a client may see, never a sent value; None for the type's detail."""
    if problem_type.show_message:
        # The text of a service error begins with DynamoDB's code, which says nothing to a client.
        return error.message if isinstance(error, errors.ServiceError) else str(error)
    if isinstance(error, errors.TransactionFailed) and error.failures:
        return detail_of(error.failures[0].error, problem_type)
    return error.public_message if isinstance(error, errors.DataError) and problem_type.status < 500 else None


def extensions_of(error: BaseException) -> dict[str, Any]:
    """Return extension members: the `field` of an error that has one, the stored version of a conflict."""
    if isinstance(error, errors.TransactionFailed) and error.failures:
        return extensions_of(error.failures[0].error)
    field = getattr(error, "field", None)
    if isinstance(field, str):
        return {"field": field}
    if isinstance(error, errors.VersionConflict):
        plan = getattr(type(error.theirs), "plan", None)
        named = getattr(plan(), "version", None) if callable(plan) else None
        version = getattr(error.theirs, named, None) if isinstance(named, str) else None
        return {"current_version": version} if isinstance(version, int) else {}
    return {}


def problem(
    request: Request,
    problem_type: ProblemType,
    *,
    detail: str | None = None,
    headers: Mapping[str, str] | None = None,
    **extensions: Any,
) -> Response:
    """Return a problem as a response."""
    body = {
        "type": _PREFIX + problem_type.slug,
        "title": problem_type.title,
        "status": problem_type.status,
        "detail": (problem_type.detail if detail is None else detail)[:_LONGEST_DETAIL],
        "instance": quote(request.scope["path"], errors="replace"),
        "request_id": request.scope.get("state", {}).get("request_id"),
        **extensions,
    }
    given = dict(headers or {})
    if problem_type.retry_after_seconds is not None:
        given.setdefault("retry-after", str(problem_type.retry_after_seconds))
    text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(text, status_code=problem_type.status, media_type=MEDIA_TYPE, headers=given)


def problem_type_of_status(status: int) -> ProblemType:
    """Return the problem type of an HTTP status."""
    try:
        title = _PHRASES.get(status) or HTTPStatus(status).phrase
    except ValueError:
        title = "Error"
    slug = title.lower().replace(" ", "-").replace("'", "")
    return ProblemType(status=status, slug=slug, title=title, detail=f"{title}.")
