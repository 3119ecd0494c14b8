"""A caller's token: the same transaction, sent again, is done once.

DynamoDB's own token wants every byte the same again, which stamps and times to live never are, and
forgets it after ten minutes. So a token is an own item, written in the transaction itself and kept for
a day, with a digest of what the caller asked for: the same words again are the same transaction, others
under the same token are a mistake.
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
    """A token, the table that remembers it, and a digest of what is asked under it."""

    table: Table
    token: str
    digest: str


def caller_token(table: Table, token: str, asked: Sequence[object]) -> CallerToken:
    """Return the receipt of a transaction; `asked` says what the caller wants, in the caller's own words."""
    if not 0 < len(token) <= _LONGEST:
        raise DataError(
            f"A transaction's token has 1 to {_LONGEST:,} characters; this one has {len(token):,}."
        )
    return CallerToken(table, token, blake2b(_stable(list(asked)).encode(), digest_size=16).hexdigest())


def _stable(value: object) -> str:
    """Return a text that is the same in every process; the order of a set's members is not."""
    if isinstance(value, AbstractSet):
        return f"{{{', '.join(sorted(map(_stable, value)))}}}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(sorted(f'{name!r}: {_stable(each)}' for name, each in value.items()))}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(map(_stable, value))}]"
    return repr(value)


def is_done(scope: Scope, given: CallerToken) -> Flow[bool]:
    """Whether the transaction of this token is done; refuse the token for another one."""
    request = GetItem(table=scope.table(given.table), key=_key(scope, given), consistent=True)
    reply = yield from send(request, scope.retries)
    if reply.item is None:
        return False
    item = decode_item(reply.item)
    if int(item[_UNTIL]["N"]) <= scope.clock():
        return False
    if item[_DIGEST] != {"S": given.digest}:
        raise DataError(
            f"The token {given.token!r} stands for another transaction, done within the last day; "
            f"a token is for one transaction and its repetitions."
        )
    return True


def token_put(scope: Scope, given: CallerToken) -> DerivedWrite:
    """Return what makes the token's item, unless the transaction is done already."""
    table = given.table
    until = {"N": str(int(scope.clock()) + _KEPT_SECONDS)}
    item: Item = {
        **_key(scope, given),
        table.tag: {"S": TAG},
        _DIGEST: {"S": given.digest},
        _UNTIL: until,
    }
    if table.ttl is not None:
        item[table.ttl] = until
    unknown = Not(Exists((table.partition.name,)))
    over = Compare("<=", Attr((_UNTIL,)), Const({"N": str(int(scope.clock()))}))

    def explain(_met: Item | None) -> SolotableError:
        return DataError(f"The transaction of the token {given.token!r} is done already.")

    action = PutItem(
        table=scope.table(table), item=item, condition=Or((unknown, over)), returns_on_failure=True
    )
    return DerivedWrite(action=action, title=f"the token {given.token!r}", explain=explain, table=table)


def _key(scope: Scope, given: CallerToken) -> Item:
    tenant = scope.tenant if scope.tenant is not None else ("" if scope.admin else None)
    digest = blake2b(given.token.encode(), digest_size=16).hexdigest()
    return internal_key(given.table, internal_partition("TOKEN", tenant, digest), "TOKEN")
