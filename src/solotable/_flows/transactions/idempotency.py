"""Idempotency tokens of callers: a transaction that is sent again is executed once.

DynamoDB's own token requires an identical request, which timestamps prevent, and expires after ten
minutes. So the transaction writes an internal item for the token, which lives for a day and holds a digest
of the caller's arguments. The same token with other arguments is an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from hashlib import blake2b

from solotable._entities.declare.table import Table
from solotable._expressions.ast import Attr, Compare, Const, Exists, Not, Or
from solotable._flows.internal_items import internal_key, internal_partition
from solotable._flows.retry import Flow, send
from solotable._flows.scope import Scope, decode_item
from solotable._protocol.requests import GetItem, PutItem
from solotable._values import Item
from solotable.errors import DataError, SolotableError

from .write import DerivedWrite

TAG = "_token"
_KEPT_SECONDS = 24 * 3600
_LONGEST = 1_000
_DIGEST, _UNTIL = "digest", "until"


@dataclass(frozen=True, slots=True)
class CallerToken:
    """A token, the table that stores it, and a digest of the caller's arguments."""

    table: Table
    token: str
    digest: str


def caller_token(table: Table, token: str, arguments: Sequence[object]) -> CallerToken:
    """Return the token of a transaction with a digest of the caller's arguments."""
    if not 0 < len(token) <= _LONGEST:
        raise DataError(
            f"The token of a transaction takes 1 to {_LONGEST:,} characters, got {len(token):,}; hash it."
        )
    digest = blake2b(_stable_repr(list(arguments)).encode(), digest_size=16).hexdigest()
    return CallerToken(table, token, digest)


def _stable_repr(value: object) -> str:
    """Return a repr that is the same in every process; the order of a set is not."""
    if isinstance(value, AbstractSet):
        return f"{{{', '.join(sorted(map(_stable_repr, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{name!r}: {_stable_repr(each)}' for name, each in value.items()))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_stable_repr, value))}]"
    return repr(value)


def is_done(scope: Scope, given: CallerToken) -> Flow[bool]:
    """Return whether the token's transaction was executed; raise DataError if it was another one."""
    request = GetItem(table=scope.table(given.table), key=_key(scope, given), consistent=True)
    reply = yield from send(request, scope.retries)
    if reply.item is None:
        return False
    item = decode_item(reply.item)
    if int(item[_UNTIL]["N"]) <= scope.clock():
        return False
    if item[_DIGEST] != {"S": given.digest}:
        raise DataError(
            f"Token {given.token!r} was used for another transaction within the last day; use a new token "
            f"for each transaction. A repeated one has the same values, also of generated ids and times."
        )
    return True


def token_put(scope: Scope, given: CallerToken) -> DerivedWrite:
    """Return the derived write of the token's item, under the condition that it does not exist."""
    table = given.table
    until = {"N": str(int(scope.clock()) + _KEPT_SECONDS)}
    item: Item = {
        **_key(scope, given),
        table.internal_tag: {"S": TAG},
        _DIGEST: {"S": given.digest},
        _UNTIL: until,
    }
    if table.ttl is not None:
        item[table.ttl] = until
    absent = Not(Exists((table.partition.name,)))
    expired = Compare("<=", Attr((_UNTIL,)), Const({"N": str(int(scope.clock()))}))

    def explain(_found: Item | None) -> SolotableError:
        return DataError(f"The transaction with the token {given.token!r} was already executed.")

    action = PutItem(
        table=scope.table(table), item=item, condition=Or((absent, expired)), returns_on_failure=True
    )
    return DerivedWrite(action=action, title=f"the token {given.token!r}", explain=explain, table=table)


def _key(scope: Scope, given: CallerToken) -> Item:
    tenant = scope.tenant if scope.tenant is not None else ("" if scope.admin else None)
    digest = blake2b(given.token.encode(), digest_size=16).hexdigest()
    return internal_key(given.table, internal_partition("TOKEN", tenant, digest), "TOKEN")
