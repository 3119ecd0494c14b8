"""Errors as RFC 9457 problems: which status each is, and how much of it is told.

The table names every error of `solotable.errors` itself or by an ancestor of its own kind. What a
caller can mend is told; what is ours to mend is a 500 with a request id, and the log has the rest.
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
#: RFC 9110 renamed these, and Python 3.13 follows it: a type must not change with the Python beneath.
_PHRASES = {
    413: "Content Too Large",
    414: "URI Too Long",
    416: "Range Not Satisfiable",
    422: "Unprocessable Content",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One kind of problem: `slug` ends its `type`, `detail` is what is told."""

    status: int
    slug: str
    title: str
    detail: str
    #: Tell the error's own message instead, as it speaks of what the caller may know.
    tell: bool = False
    retry_after_seconds: int | None = None


INTERNAL = Kind(
    status=500,
    slug="internal",
    title="Internal error",
    detail="Something went wrong here; the request id finds it in the log.",
)
_UNAVAILABLE = Kind(
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
    detail="The database did not answer: the change may have been made. Read before you try again.",
    retry_after_seconds=None,
)
_CONFLICT = Kind(
    status=409, slug="conflict", title="Conflict", detail="What is stored does not allow this change."
)
_CHANGED = Kind(
    status=409,
    slug="version-conflict",
    title="Changed meanwhile",
    detail="Somebody else changed it first; read it again and repeat your change.",
)
_THROTTLED = Kind(
    status=429,
    slug="throttled",
    title="Too many requests",
    detail="Too many requests came at once; try again later.",
    retry_after_seconds=1,
)
_INVALID = Kind(
    status=422, slug="invalid", title="Invalid data", detail="The data cannot be stored as it is."
)

KINDS: dict[type[Exception], Kind] = {
    errors.SolotableError: INTERNAL,
    errors.DeclarationError: INTERNAL,
    errors.DataError: _INVALID,
    errors.ItemTooLarge: replace(_INVALID, slug="too-large", title="Too large to store"),
    # These are about what is stored, not about what was sent.
    errors.StoredDataError: INTERNAL,
    errors.NewerSchemaVersion: INTERNAL,
    errors.UnknownEntity: INTERNAL,
    errors.NotFound: Kind(status=404, slug="not-found", title="Not found", detail="There is no such item."),
    errors.NotUnique: replace(_CONFLICT, slug="not-unique", title="Taken", detail="The value is taken."),
    errors.FeedTrimmed: INTERNAL,
    errors.LeaseHeld: replace(
        _CONFLICT, slug="busy", title="Busy", detail="Somebody else is at it; try again later."
    ),
    errors.LeaseLost: replace(
        _CONFLICT, slug="busy", title="Busy", detail="Somebody else took over; try again later."
    ),
    errors.TenantViolation: Kind(
        status=403, slug="forbidden", title="Forbidden", detail="This is out of reach of the credential."
    ),
    errors.CursorRejected: Kind(
        status=400,
        slug="cursor-rejected",
        title="Cursor rejected",
        detail="The cursor does not belong to this list, or has expired; begin with the first page.",
    ),
    errors.BatchIncomplete: replace(
        _UNAVAILABLE, slug="incomplete", title="Incomplete", detail="A part was not written; try again later."
    ),
    errors.EngineError: INTERNAL,
    errors.NotOurFile: INTERNAL,
    errors.ReadOnly: replace(_UNAVAILABLE, slug="read-only", detail="Nothing can be changed at the moment."),
    errors.StorageFull: Kind(
        status=507, slug="storage-full", title="Storage full", detail="There is no room for the change."
    ),
    errors.FileLocked: replace(_UNAVAILABLE, detail="The database is busy; try again later."),
    errors.FileReplaced: INTERNAL,
    errors.Corrupt: INTERNAL,
    errors.NotConfigured: INTERNAL,
    errors.TransportError: _UNAVAILABLE,
    errors.OutcomeUnknown: _UNKNOWN,
    errors.ServiceError: INTERNAL,
    errors.ConditionFailed: _CONFLICT,
    errors.AlreadyExists: replace(
        _CONFLICT, slug="already-exists", title="Already there", detail="There is such an item already."
    ),
    errors.VersionConflict: _CHANGED,
    errors.TransactionCancelled: _CONFLICT,
    errors.TransactionFailed: _CONFLICT,
    errors.TableNotFound: INTERNAL,
    errors.Throttled: _THROTTLED,
}


def kind_of(
    error: BaseException, *, conditional: bool = False, more: Mapping[type[Exception], Kind] | None = None
) -> Kind:
    """Return what kind of problem an error is; `conditional` when the request had an If-Match."""
    table = KINDS if not more else {**KINDS, **more}
    found = next((table[cause] for cause in type(error).__mro__ if cause in table), INTERNAL)
    if isinstance(error, errors.VersionConflict) and conditional and found.status == 409:
        return replace(found, status=412)
    if isinstance(error, errors.TransactionCancelled) and found is _CONFLICT:
        return _of_transaction(error, conditional=conditional, more=more)
    if isinstance(error, errors.ServiceError) and found is INTERNAL and error.retryable:
        return _UNAVAILABLE
    return found


def _of_transaction(
    error: errors.TransactionCancelled, *, conditional: bool, more: Mapping[type[Exception], Kind] | None
) -> Kind:
    """Return the kind of the first action that was refused, as that is why nothing was done."""
    for failure in getattr(error, "failures", ()):
        return kind_of(failure.error, conditional=conditional, more=more)
    codes = {reason.get("Code") for reason in error.reasons} - {"None", None}
    if codes & {"ProvisionedThroughputExceeded", "ThrottlingError", "RequestLimitExceeded"}:
        return _THROTTLED
    return _CONFLICT if codes <= {"ConditionalCheckFailed", "TransactionConflict"} else INTERNAL


def detail_of(error: BaseException, kind: Kind) -> str | None:
    """Return what an error tells its caller: never the value that was sent; None for what its kind says."""
    if kind.tell:
        return str(error)
    if isinstance(error, errors.TransactionFailed) and error.failures:
        return detail_of(error.failures[0].error, kind)
    return error.told if isinstance(error, errors.DataError) and kind.status < 500 else None


def members_of(error: BaseException) -> dict[str, Any]:
    """Return what else a caller can use: the field of a taken value, the version that is stored."""
    if isinstance(error, errors.TransactionFailed) and error.failures:
        return members_of(error.failures[0].error)
    if isinstance(error, errors.NotUnique):
        return {"field": error.field}
    if isinstance(error, errors.VersionConflict):
        plan = getattr(type(error.theirs), "plan", None)
        named = getattr(plan(), "version", None) if callable(plan) else None
        version = getattr(error.theirs, named, None) if isinstance(named, str) else None
        return {"current_version": version} if isinstance(version, int) else {}
    return {}


def problem(
    request: Request,
    kind: Kind,
    *,
    detail: str | None = None,
    headers: Mapping[str, str] | None = None,
    **members: Any,
) -> Response:
    """Return the answer that tells a problem."""
    body = {
        "type": _PREFIX + kind.slug,
        "title": kind.title,
        "status": kind.status,
        "detail": (kind.detail if detail is None else detail)[:_LONGEST_DETAIL],
        "instance": quote(request.scope["path"], errors="replace"),
        "request_id": request.scope.get("state", {}).get("request_id"),
        **members,
    }
    given = dict(headers or {})
    if kind.retry_after_seconds is not None:
        given.setdefault("retry-after", str(kind.retry_after_seconds))
    text = json.dumps(body, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    return Response(text, status_code=kind.status, media_type=MEDIA_TYPE, headers=given)


def kind_of_status(status: int) -> Kind:
    """Return the kind of a plain HTTP status."""
    try:
        title = _PHRASES.get(status) or HTTPStatus(status).phrase
    except ValueError:
        title = "Refused"
    slug = title.lower().replace(" ", "-").replace("'", "")
    return Kind(status=status, slug=slug, title=title, detail=f"{title}.")
