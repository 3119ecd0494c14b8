"""Records of answered requests, for a log that the caller of the server writes; pure.

Operation, path and access key id come from the client without verification; characters other than visible
ASCII are replaced, so that a line of a log stays a line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from .http.request import HttpRequest

_UNSAFE = re.compile(r"[^!-~]")
_CREDENTIAL = re.compile(rb"Credential=([!-+\-.0-~]{1,128})/")
_MAX_NAME = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One answered request."""

    #: When the reply was sent, in Unix seconds.
    time: float
    #: The client's IP address.
    client: str
    #: The operation, such as PutItem; the method and path of other requests, such as "GET /health".
    operation: str
    #: The table that the request names; None if it names none or several.
    table: str | None
    status: int
    #: How long the server took to answer, without the time that the request took to arrive.
    seconds: float
    #: Bytes of the request's body.
    bytes_in: int
    #: Bytes of the reply's body.
    bytes_out: int
    #: The access key id that the request states, verified or not.
    access_key_id: str | None


def operation_name(request: HttpRequest) -> str:
    """Return the operation of a request, or its method and path; "-" if it has neither.

    >>> request = HttpRequest()
    >>> request.method, request.url = b"GET", b"/health?x=1"
    >>> operation_name(request)
    'GET /health'
    """
    target = request.header(b"x-amz-target")
    if target:
        return _printable(target.rpartition(".")[2])
    if not request.method:
        return "-"
    path = request.url.partition(b"?")[0].decode("latin-1")
    return f"{_printable(request.method.decode('latin-1'))} {_printable(path)}"


def access_key_id(request: HttpRequest) -> str | None:
    """Return the access key id in the Authorization header, without verification."""
    found = _CREDENTIAL.search(request.headers.get(b"authorization", b""))
    return None if found is None else found[1].decode("ascii").partition("/")[0]


def _printable(text: str) -> str:
    return _UNSAFE.sub("?", text[:_MAX_NAME]) or "-"
