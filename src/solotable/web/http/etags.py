"""Entity tags from versions: `ETag: "7"` in responses, `If-Match: "7"` for conditional writes.

A well-formed tag that is not a version never matches: 412, not 400.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, HTTPException, Request

from solotable import ANY, ExpectedVersion

_TAG = re.compile(r'"([0-9]{1,18})"')
_OTHER = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_DESCRIPTION = 'The ETag that you read, such as `"7"`. The response is 412 if the stored version differs.'


def etag(version: int) -> str:
    """Return the entity tag of a version.

    >>> etag(7)
    '"7"'
    """
    return f'"{version}"'


def parse_if_match(text: str) -> ExpectedVersion:
    """Return the version in an If-Match header; `*` is ANY.

    >>> parse_if_match('"7"'), parse_if_match('*')
    (7, ANY)
    """
    value = text.strip()
    if value == "*":
        return ANY
    version = _TAG.fullmatch(value)
    if version is not None:
        return int(version[1])
    if _OTHER.fullmatch(value):
        # RFC 9110 13.1.1: weak tags never match, and no version has another tag.
        raise HTTPException(412, "The stored version differs from the one in If-Match.")
    raise HTTPException(400, 'If-Match takes one entity tag, such as "7", or *.')


async def read_if_match(
    request: Request, _: Annotated[str | None, Header(alias="if-match", description=_DESCRIPTION)] = None
) -> ExpectedVersion:
    """Return the version in If-Match, None without the header."""
    given = request.headers.getlist("if-match")
    if len(given) > 1:
        raise HTTPException(400, "Send If-Match once.")
    return parse_if_match(given[0]) if given else None


async def require_if_match(
    expected: Annotated[ExpectedVersion, Depends(read_if_match)],
) -> ExpectedVersion:
    """Return the version in If-Match; 428 without the header."""
    if expected is None:
        raise HTTPException(428, "Send If-Match with the ETag that you read.")
    return expected


def not_modified(request: Request, tag: str) -> bool:
    """Return whether If-None-Match names this tag, so that a GET is answered with 304."""
    given = [each.strip() for line in request.headers.getlist("if-none-match") for each in line.split(",")]
    return given == ["*"] or any(each.removeprefix("W/") == tag for each in given)


#: The version that the client read: `expected: IfMatch` in a route, `version=expected` in a write.
IfMatch = Annotated[ExpectedVersion, Depends(read_if_match)]
RequiredIfMatch = Annotated[ExpectedVersion, Depends(require_if_match)]
