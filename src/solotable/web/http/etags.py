"""Entity tags from versions: `ETag: "7"` in answers, `If-Match: "7"` for writes that must not overwrite.

A tag that cannot be one of ours never matches, so it is 412 and not an error of form.
"""

from __future__ import annotations

import re
from typing import Annotated

from fastapi import Depends, Header, HTTPException, Request

from solotable._flows.transactions.write import ANY, ExpectedVersion

_TAG = re.compile(r'"([0-9]{1,18})"')
_OTHER = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_DESCRIPTION = 'The version that you read, as its ETag was: `"7"`. Another one stored is a 412.'


def etag(version: int) -> str:
    """Return the entity tag of a version.

    >>> etag(7)
    '"7"'
    """
    return f'"{version}"'


def parse_if_match(text: str) -> ExpectedVersion:
    """Return the version that an If-Match header asks for; `*` is ANY.

    >>> parse_if_match('"7"'), parse_if_match('*')
    (7, ANY)
    """
    value = text.strip()
    if value == "*":
        return ANY
    ours = _TAG.fullmatch(value)
    if ours is not None:
        return int(ours[1])
    if _OTHER.fullmatch(value):
        # RFC 9110 13.1.1: weak tags never match here, and no version has another tag.
        raise HTTPException(412, "If-Match names a version that is not the stored one.")
    raise HTTPException(400, 'If-Match is one entity tag, such as "7", or *.')


async def if_match(
    request: Request, _: Annotated[str | None, Header(alias="if-match", description=_DESCRIPTION)] = None
) -> ExpectedVersion:
    """Return the version that the caller expects, None when they do not say."""
    given = request.headers.getlist("if-match")
    if len(given) > 1:
        raise HTTPException(400, "If-Match may be sent once.")
    return parse_if_match(given[0]) if given else None


async def if_match_required(expected: Annotated[ExpectedVersion, Depends(if_match)]) -> ExpectedVersion:
    """Return the version that the caller expects, and refuse with 428 when they do not say."""
    if expected is None:
        raise HTTPException(428, "Send If-Match with the ETag that you read.")
    return expected


def not_modified(request: Request, tag: str) -> bool:
    """Say whether a GET may be answered with 304, as the caller has this tag already."""
    given = [each.strip() for line in request.headers.getlist("if-none-match") for each in line.split(",")]
    return given == ["*"] or any(each.removeprefix("W/") == tag for each in given)


#: `expected: IfMatch` in a route, to be given on as `version=expected`.
IfMatch = Annotated[ExpectedVersion, Depends(if_match)]
RequiredIfMatch = Annotated[ExpectedVersion, Depends(if_match_required)]
