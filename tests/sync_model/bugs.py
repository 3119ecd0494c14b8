"""Planted bugs: variants of the functions of sync, each of which the model must find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

from solotable._flows.retry import send
from solotable._flows.sync import entries, log, snapshot
from solotable._flows.transactions import commit
from solotable._flows.writes import put, update
from solotable.errors import SyncUnavailable, TransactionCancelled, TransportError
from solotable.sync import maintenance, service
from solotable.sync.pull import answer, puller
from solotable.sync.push import attempt, clients, overlay, pusher

#: An object, the name of its attribute, and what makes the variant from the original.
Patch = tuple[Any, str, Callable[[Any], Any]]

_Pull: Any = puller._Pull


@contextmanager
def planted(*patches: Patch) -> Iterator[None]:
    """Replace functions for a while."""
    before = [(target, name, getattr(target, name)) for target, name, _ in patches]
    try:
        for target, name, make in patches:
            setattr(target, name, make(getattr(target, name)))
        yield
    finally:
        for target, name, original in before:
            setattr(target, name, original)


def _returns(value: Any) -> Callable[[Any], Any]:
    return lambda _: lambda *_args, **_options: value


def _without_condition(original: Any) -> Any:
    return lambda *args, **options: replace(original(*args, **options), condition=None)


def _cookie_is_head(original: Any) -> Any:
    def variant(self: Any, head: Any, *args: Any) -> Iterator[str]:
        yield from original(self, head, *args)
        version, epoch = self._answer.spaces[head.space.name]
        self._answer.spaces[head.space.name] = max(version, head.version), epoch

    return variant


def _client_record_apart(_: Any) -> Any:
    def variant(request: Any, retries: Any) -> Any:
        apart = [each for each in request.actions if _sort(each).startswith("CLIENT#")]
        rest = tuple(each for each in request.actions if each not in apart)
        reply = yield from send(replace(request, actions=rest), retries)
        for each in apart:
            yield from send(replace(each, condition=None), retries)
        return reply

    return variant


def _sort(action: Any) -> str:
    found: str = (action.item if hasattr(action, "item") else action.key)["SK"]["S"]
    return found


def _acknowledges_errors(original: Any) -> Any:
    def variant(*args: Any) -> Any:
        try:
            return original(*args)
        except SyncUnavailable:
            args[1].overlay.failure = None
            return attempt.Refusal(code="failed", reason="The database failed.")

    return variant


def _swallows(*errors: type[Exception]) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def variant(self: Any) -> Any:
            try:
                return original(self)
            except errors:
                return self._after, []

        return variant

    return make


def _no_rejection_is_confirmed(original: Any) -> Any:
    def variant(self: Any, mutation: Any, refusal: Any) -> None:
        if refusal is None:
            original(self, mutation, None)

    return variant


def _without_deletes(original: Any) -> Any:
    return lambda some: [each for each in original(some) if each.value is not None]


def _without_seen(original: Any) -> Any:
    return lambda self, head, known, records, _seen=None: original(self, head, known, records)


def _gaps_run(mutations: Any, records: Any) -> Any:
    return [each for each in mutations if each.id > records[each.client].last], set()


def _epochs_match(_: Any) -> Any:
    return lambda self, cookie, heads: cookie.spaces.keys() <= {head.space.name for head in heads}


def _current_without_epoch(_: Any) -> Any:
    def variant(self: Any, cookie: Any, heads: Any) -> bool:
        now = {head.space.name: head.version for head in heads}
        return cookie.following is None and {name: known[0] for name, known in cookie.spaces.items()} == now

    return variant


def _same_epoch(original: Any) -> Any:
    return lambda scope, head, version, epoch=None: original(scope, head, version)


class _AnyUser(str):
    """A user that equals every other."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = str.__hash__


def _no_owner(original: Any) -> Any:
    def variant(*args: Any, **options: Any) -> Any:
        records, owner = yield from original(*args, **options)
        return records, None if owner is None else _AnyUser(owner)

    return variant


def _first_page(original: Any) -> Any:
    def variant(scope: Any, space: Any, since: int) -> Any:
        found = yield from original(scope, space, since)
        return found[:3] if len(found) > 3 else found

    return variant


def _drops(part: slice) -> Callable[[Any], Any]:
    def make(original: Any) -> Any:
        def variant(self: Any, head: Any, version: int) -> Any:
            return original(self, head, version)[part] or original(self, head, version)

        return variant

    return make


def _loses_operations_of_first(original: Any) -> Any:
    def variant(self: Any, head: Any, version: int) -> Any:
        first, *rest = original(self, head, version)
        return [replace(first, operations=()), *rest]

    return variant


def _no_log(_scope: Any, _entries: Any) -> Any:
    yield from ()
    return [], {}


def _no_soft_deletes(original: Any) -> Any:
    return lambda change: iter(()) if change.soft and change.after is None else original(change)


def _all_groups(original: Any) -> Any:
    def variant(self: Any, group: str, records: Any) -> None:
        for owner in {each for record in records for each, _, _ in record.clients}:
            original(self, owner, records)

    return variant


def _rejections_for_all(original: Any) -> Any:
    return lambda **options: original(**{**options, "group": None})


def _page_without_since(original: Any) -> Any:
    return lambda head, start, since, left: original(head, start, None, left)


def _eventually(original: Any) -> Any:
    return lambda **options: original(**{**options, "consistent": False})


def _without_clear(original: Any) -> Any:
    def variant(self: Any, operation: Any) -> str:
        return "" if operation["op"] == "clear" else str(original(self, operation))

    return variant


def _first_tenant(original: Any) -> Any:
    return lambda self, _tenant: original(self, "acme")


def _head_before_items(_: Any) -> Any:
    def variant(scope: Any, space: Any) -> Any:
        (head,) = yield from log.read_heads(scope, [space])
        return head

    return variant


def _over_epochs(original: Any) -> Any:
    return lambda records: original([replace(each, after=None) for each in records])


_HEADS = [(module, "head_put", _without_condition) for module in (attempt, log)]
_RECORDS = [(module, "record_put", _without_condition) for module in (attempt, log)]

#: By name: the kind of the world, and the patches.
BUGS: dict[str, tuple[str, list[Patch]]] = {
    "records behind a gap are used": (
        "plain",
        [(puller, "contiguous", lambda _: lambda records, _v: list(records))],
    ),
    "the cookie is the head": ("plain", [(_Pull, "_replay", _cookie_is_head)]),
    "a push checks no version of items": ("plain", [(attempt, "_unchanged", _returns(None))]),
    "a store checks no version of items": (
        "plain",
        [(module, "guarded_version", _returns({})) for module in (put, update)],
    ),
    "commits without conditions on the head": ("plain", [*_HEADS, *_RECORDS]),
    "the client's record is written apart": ("plain", [(attempt, "send", _client_record_apart)]),
    "the client's record has no condition": ("plain", [(attempt, "client_put", _without_condition)]),
    "a transient error is a rejection": ("plain", [(pusher.Pusher, "_run", _acknowledges_errors)]),
    "a cancelled commit is acknowledged": (
        "plain",
        [(attempt.Attempt, "commit", _swallows(TransactionCancelled))],
    ),
    "a lost commit is acknowledged": ("plain", [(attempt.Attempt, "commit", _swallows(TransportError))]),
    "a rejected mutation is not confirmed": (
        "plain",
        [(attempt.Attempt, "_confirm", _no_rejection_is_confirmed)],
    ),
    "the writes of a rejected mutation stay": ("plain", [(overlay.Overlay, "roll_back", _returns(None))]),
    "a rejection does not check what it read": ("plain", [(attempt.Attempt, "_check_actions", _returns(()))]),
    "pushes log no deletes": ("plain", [(attempt, "operations_of", _without_deletes)]),
    "stores log no deletes": ("plain", [(log, "operations_of", _without_deletes)]),
    "stores log nothing": ("plain", [(commit, "log_actions", lambda _: _no_log)]),
    "no replay after a snapshot": ("plain", [(_Pull, "_covering", _returns([]))]),
    "a replay compares no versions": ("plain", [(_Pull, "_replay", _without_seen)]),
    "a replay goes on over a gap": ("plain", [(puller, "after_gaps", lambda _: list)]),
    "a young gap is a trimmed log": ("plain", [(_Pull, "_is_young", _returns(False))]),
    "ids after a gap are executed": ("plain", [(pusher, "_new_mutations", lambda _: _gaps_run)]),
    "duplicates are executed again": (
        "plain",
        [(pusher, "_new_mutations", lambda _: lambda mutations, _r: (list(mutations), set()))],
    ),
    "pulls ignore the owner of a group": ("plain", [(service.Sync, "_owns", _returns(True))]),
    "pushes ignore the owner of a group": ("plain", [(pusher, "read_clients", _no_owner)]),
    "ids of all groups are confirmed": ("plain", [(answer.Answer, "confirm", _all_groups)]),
    "rejections are shown to all groups": ("plain", [(attempt, "Operation", _rejections_for_all)]),
    "a reset keeps the epoch": ("resets", [(maintenance, "head_put", _same_epoch)]),
    "epochs are ignored": (
        "resets",
        [(_Pull, "_has_only", _epochs_match), (_Pull, "_is_current", _current_without_epoch)],
    ),
    "the first record of a run is lost": ("plain", [(_Pull, "_run_after", _loses_operations_of_first)]),
    "only the first page of the log": ("plain", [(puller, "read_records", _first_page)]),
    "pages forget changes of earlier keys": ("pages", [(puller, "_Part", _page_without_since)]),
    "pushes log no soft deletes": ("plain", [(entries, "_entries", _no_soft_deletes)]),
    "items get no version": (
        "plain",
        [(module, "with_version", lambda _: lambda action, _v: action) for module in (attempt, commit)],
    ),
    "a whole view does not clear": ("plain", [(answer.Answer, "op", _without_clear)]),
    "all tenants share client records": ("plain", [(service.Sync, "_root", _first_tenant)]),
    "mutations before a reset are not confirmed": ("resets", [(pusher, "_unconfirmed", _returns([]))]),
    "the log of an earlier epoch is replayed": ("resets", [(puller, "after_gaps", _over_epochs)]),
    "a whole view trusts a plain read of the head": (
        "spaces",
        [(puller, "read_committed_head", _head_before_items)],
    ),
    "a cookie forgets the ids of the log": ("spaces pages", [(_Pull, "_young", _returns({}))]),
    "heads are read eventually": ("plain", [(log, "GetItem", _eventually)]),
    "snapshots are read eventually": ("plain", [(snapshot, "Query", _eventually)]),
    "the log is read eventually": ("plain", [(log, "Query", _eventually)]),
    "ids are read eventually": ("plain", [(clients, "Query", _eventually)]),
}

#: Bugs that the first seed does not find, with one that does.
SEEDS = {
    "pages forget changes of earlier keys": 3,
    "a whole view does not clear": 3,
    "mutations before a reset are not confirmed": 1,
    "the log of an earlier epoch is replayed": 1,
    "a whole view trusts a plain read of the head": 3,
    "a cookie forgets the ids of the log": 12,
}
#: Bugs that some seeds do not find. The reasons are suppositions: no test shows them.
UNSEEN = {
    "a rejection does not check what it read": "the condition on the head covers all but lagging items",
    "a store checks no version of items": "puts and updates have further conditions on what they read",
    "a lost commit is acknowledged": "a transaction with a token is repeated until its outcome is known",
    "a replay goes on over a gap": "records before a gap are old, and all items of that time are visible",
    "a reset keeps the epoch": "the record of a reset makes clients load everything as well",
    "epochs are ignored": "the record of a reset makes clients load everything as well",
    "a replay compares no versions": "a replay covers every version that was read",
    "heads are read eventually": "a head may lag by design; the log and the conditions decide",
    "snapshots are read eventually": "the replay covers what lags",
    "the log is read eventually": "a run ends before the first record that lags",
    "ids are read eventually": "the replay confirms what lags",
}
