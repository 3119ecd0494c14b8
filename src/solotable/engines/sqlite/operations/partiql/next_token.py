"""NextToken: the start of the next page of a SELECT.

A token is bound to its statement. It is not signed: a forged token gives the same page as its key would give
as an ExclusiveStartKey.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from hashlib import sha256

from solotable._protocol.constraints.attribute_values import check_attributes
from solotable._protocol.json_codec import loads
from solotable._protocol.requests import Statement
from solotable._values import Item, canonical_item
from solotable.errors import ServiceError, invalid


def bind(statement: Statement) -> str:
    """Return a hash of the statement and its parameters, without the limit, to bind a token to."""
    text = json.dumps([statement.text, statement.parameters], sort_keys=True)
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:24]


def make_token(binding: str, position: int, key: Item | None) -> str:
    """Return the token of a page that starts after the key, in the read at this position of the plan."""
    return urlsafe_b64encode(json.dumps([binding, position, key]).encode()).decode("ascii")


def open_token(token: str, binding: str, count: int) -> tuple[int, Item | None]:
    """Return the position and the key of a token; `count` is the number of reads in the plan."""
    # A client can forge a token, so its key is checked like the key of a request.
    try:
        bound, position, key = loads(urlsafe_b64decode(token.encode()))
        start = None if key is None else canonical_item(check_attributes(key))
    except (ValueError, TypeError, ServiceError) as error:
        raise invalid("Invalid NextToken") from error
    if not isinstance(bound, str) or type(position) is not int:
        raise invalid("Invalid NextToken")
    if bound != binding or not 0 <= position < count:
        raise invalid("NextToken does not match request")
    return position, start
