"""Pull: changes from the log since a cookie, or a whole view as snapshot and log.

Only runs of log records without a gap count, and the cookie names the last of them. A whole view starts
with `clear`. Its items may be older or newer than the log; the log is replayed after them until it covers
all that was read, so the result is exactly one version.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.sync.entries import client_value, is_deleted, space_version
from solotable._flows.sync.log import (
    Head,
    LogRecord,
    Operation,
    after_gaps,
    contiguous,
    read_committed_head,
    read_heads,
    read_item,
    read_records,
)
from solotable._flows.sync.snapshot import has_position, read_page, space_ranges
from solotable._flows.sync.spaces import Space
from solotable._protocol.engine import Engine
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import SyncUnavailable
from solotable.sync.push.clients import ClientRecord, group_clients, rejected_key
from solotable.sync.push.request import CLIENT_STATE_NOT_FOUND, PullBody

from .answer import Answer, envelope
from .cookie import Cookie, PagePosition, order_of, parse_cookie

#: A commit that is younger may not be visible as a whole.
YOUNG_SECONDS = 10.0
#: Reads of the log before a young gap is believed.
_LOOKS = 7
#: The versions before the head that a whole view replays.
_REPLAYED = 100
#: A client that is further behind gets the whole view.
_MOST_BEHIND = 5_000
#: The items of one Query of a snapshot.
_PAGE = 400
_COMPLETE = "control/sync"


@dataclass(frozen=True, slots=True, kw_only=True)
class PullSettings:
    """The parts of a Sync that pulls need."""

    engine: Engine
    scope: Callable[[str], Scope]
    root: Callable[[str], Space]
    readable: Callable[[str, str, str], Sequence[Space]]
    #: Whether a group belongs to a user of a tenant, or is new.
    owns: Callable[[str, str, str], bool]
    #: The items of one answer; None for whole views.
    page_items: int | None


class _Trimmed(Exception):
    """The log has no records for a cookie any more, or never had."""


class Puller:
    """Answers pulls."""

    def __init__(self, settings: PullSettings) -> None:
        self._settings = settings

    def pull(self, tenant: str, user: str, body: PullBody) -> Iterator[str]:
        """Yield the answer as pieces of JSON; the first piece comes after all checks."""
        return _Pull(self._settings, tenant, user, body).answer()


class _Pull:
    def __init__(self, settings: PullSettings, tenant: str, user: str, body: PullBody) -> None:
        self._settings = settings
        self._tenant, self._user = tenant, user
        self._scope = settings.scope(tenant)
        self._began = self._scope.clock()
        self._root = settings.root(tenant)
        self._body = body
        self._spaces = list(settings.readable(tenant, user, body.group))
        self._answer = Answer()
        #: Whether the cookie is of a state that the table has lost.
        self._is_lost = False
        #: Ids that the client has got lately; empty for a new group, and after a restore.
        self._recent: Mapping[str, tuple[int, int]] = {}

    def _run(self, flow: Flow[Any]) -> Any:
        return run(flow, self._settings.engine)

    def answer(self) -> Iterator[str]:
        """Yield the pieces of the answer."""
        heads: list[Head] = self._run(read_heads(self._scope, self._spaces))
        cookie = parse_cookie(self._body.cookie)
        if cookie is not None and self._is_current(cookie, heads):
            # It says nothing, so it needs no look at the owner of the group.
            return iter((envelope(cookie, {}, "[]"),))
        if not self._settings.owns(self._tenant, self._user, self._body.group):
            return iter((json.dumps(CLIENT_STATE_NOT_FOUND),))
        if cookie is not None and cookie.group == self._body.group and not _has_new_epoch(cookie, heads):
            self._recent = cookie.recent
        if cookie is not None and self._has_only(cookie, heads) and self._can_continue(cookie):
            try:
                runs = self._runs(cookie, heads)
            except _Trimmed:
                pass
            else:
                return self._changes(cookie, heads, runs)
        return self._whole(cookie, heads)

    def _is_current(self, cookie: Cookie, heads: Sequence[Head]) -> bool:
        now = {head.space.name: (head.version, head.epoch) for head in heads}
        return cookie.following is None and dict(cookie.spaces) == now

    def _has_only(self, cookie: Cookie, heads: Sequence[Head]) -> bool:
        """Return whether all that a client has is still in its view, and in the same epoch."""
        epochs = {head.space.name: head.epoch for head in heads}
        return all(
            name in epochs and (epoch == epochs[name] or (version == 0 and not epoch))
            for name, (version, epoch) in cookie.spaces.items()
        )

    def _can_continue(self, cookie: Cookie) -> bool:
        """Return whether the position of the next page exists: a deployment may have changed the ranges."""
        at = cookie.following
        return at is None or has_position(Space(self._root.table, self._tenant, at.space), at.number, at.sort)

    def _runs(self, cookie: Cookie, heads: Sequence[Head]) -> dict[str, list[LogRecord]]:
        """Return the new log records of each space that a client has; raise _Trimmed if one has a gap."""
        found: dict[str, list[LogRecord]] = {}
        for head in heads:
            name = head.space.name
            if name not in cookie.spaces:
                continue
            version = cookie.spaces[name][0]
            if head.version - version > _MOST_BEHIND:
                raise _Trimmed
            found[name] = [] if head.version == version else self._run_after(head, version)
            if any(record.after is not None for record in found[name]):
                # A new epoch has items that the log does not name.
                raise _Trimmed
            if cookie.following is not None and cookie.following.space == name:
                self._check_whole(head, version)
        return found

    def _check_whole(self, head: Head, version: int) -> None:
        """Raise _Trimmed if the log lacks an old record that a page needs for the keys of earlier pages."""
        records: list[LogRecord] = self._run(read_records(self._scope, head.space, version))
        run = contiguous(records, version)
        after = records[len(run)].at if len(run) < len(records) else head.at
        is_whole = len(run) == len(records) and version + len(run) >= head.version
        if not is_whole and not self._is_young(after):
            raise _Trimmed

    def _run_after(self, head: Head, version: int) -> list[LogRecord]:
        """Return the records after a version that follow each other without a gap."""
        if head.version < version:
            # The head may lag behind its own record, or the cookie is of a state that was lost.
            own: list[LogRecord] = self._run(read_records(self._scope, head.space, version - 1))
            if not own or own[0].version != version:
                self._is_lost = True
                raise _Trimmed
            return contiguous(own[1:], version)
        for look in range(_LOOKS):
            records: list[LogRecord] = self._run(read_records(self._scope, head.space, version))
            found = contiguous(records, version)
            if found:
                return found
            if not self._is_young(records[0].at if records else head.at):
                break
            self._wait(look)
        raise _Trimmed

    def _changes(
        self, cookie: Cookie, heads: Sequence[Head], runs: Mapping[str, list[LogRecord]]
    ) -> Iterator[str]:
        """Yield the answer to a client that has a part of the view, or all of it."""
        news = [head for head in heads if head.space.name not in cookie.spaces]
        if not news and cookie.following is None and not any(runs.values()):
            yield envelope(cookie, {}, "[]")
            return
        if news or cookie.following is not None:
            # The log of a space that the client lacks has older ids than those that it has got.
            self._clients()
        yield '{"patch":['
        for head in heads:
            name = head.space.name
            if name in cookie.spaces and (cookie.following is None or cookie.following.space != name):
                known = cookie.spaces[name][0]
                yield from self._replay(head, known, runs[name])
        yield from self._parts(cookie, heads)
        yield from self._catch_up(heads)
        yield self._end(cookie)

    def _whole(self, cookie: Cookie | None, heads: Sequence[Head]) -> Iterator[str]:
        """Yield the answer to a client that has nothing, or nothing of use."""
        records = self._clients()
        yield '{"patch":[' + self._answer.op({"op": "clear"})
        for record in records:
            for each in record.rejected:
                value = json.dumps(dict(each), ensure_ascii=False, default=int)
                yield self._answer.put(rejected_key(record.client, int(each["id"])), value)
        yield from self._parts(None, heads)
        yield from self._catch_up(heads)
        yield self._end(cookie)

    def _catch_up(self, heads: Sequence[Head]) -> Iterator[str]:
        """Yield the changes of spaces that changes of other spaces and confirmed ids need."""
        answer = self._answer
        behind = True
        while behind:
            behind = False
            for head in heads:
                known, needed = answer.spaces.get(head.space.name), answer.needs.get(head.space.name, 0)
                if known is not None and known[0] < needed:
                    behind = True
                    yield from self._replay(head, known[0], self._run_up_to(head, known[0], needed))

    def _run_up_to(self, head: Head, known: int, needed: int) -> list[LogRecord]:
        """Return the records after a version up to one whose transaction is visible in part."""
        for look in range(_LOOKS):
            found = contiguous(self._run(read_records(self._scope, head.space, known)), known)
            if found and found[-1].version >= needed:
                return found
            self._wait(look)
        raise SyncUnavailable(f"The last commits of {head.space} are not visible yet; pull again.")

    def _clients(self) -> list[ClientRecord]:
        """Read the ids of the group; wait until none is lower than one that the client has got."""
        known = {} if self._is_lost else self._young(self._recent)
        for look in range(_LOOKS):
            records: list[ClientRecord] = self._run(group_clients(self._scope, self._root, self._body.group))
            lasts = {each.client: each for each in records}
            if all(
                client in lasts and (lasts[client].is_reset or lasts[client].last >= last)
                for client, (last, _) in known.items()
            ):
                break
            self._wait(look)
        else:
            raise SyncUnavailable("The last mutation ids are not visible yet; pull again.")
        for record in records:
            if record.is_reset or self._is_lost:
                self._answer.ahead.add(record.client)
            else:
                self._answer.confirmed[record.client] = record.last
                if self._is_young(record.at):
                    self._answer.need(record.versions)
        return records

    def _parts(self, cookie: Cookie | None, heads: Sequence[Head]) -> Iterator[str]:
        """Yield the items of the spaces that a client lacks, as many as a page takes."""
        left = self._settings.page_items
        position = None if cookie is None else cookie.following
        waiting = [
            head
            for head in heads
            if cookie is None
            or head.space.name not in cookie.spaces
            or (position is not None and position.space == head.space.name)
        ]
        # The space of the last page comes first.
        waiting.sort(key=lambda head: position is None or head.space.name != position.space)
        for number, head in enumerate(waiting):
            if left is not None and left <= 0:
                break
            own = position if position is not None and position.space == head.space.name else None
            since = None if cookie is None or own is None else cookie.spaces[own.space][0]
            part = _Part(head, own, since, left)
            yield from self._part(part)
            left = part.left
            if part.position is not None:
                self._answer.following = part.position
            elif number + 1 < len(waiting) and left is not None and left <= 0:
                # The next page begins with another space.
                self._answer.following = PagePosition(head.space.name, len(space_ranges(head.space)), None)
        if self._settings.page_items is not None and waiting:
            complete = self._answer.following is None
            yield self._answer.put(_COMPLETE, json.dumps({"complete": complete}))

    def _part(self, part: _Part) -> Iterator[str]:
        """Yield the next items of a space, and the log that makes them one version."""
        space = part.head.space
        ranges = space_ranges(space)
        # All items of an old commit are visible, so only young ones are replayed.
        young = self._is_young(part.head.at)
        replayed_after = max(0, part.head.version - _REPLAYED) if young else part.head.version
        seen: dict[str, int] = {}
        number, after = (part.start.number, part.start.sort) if part.start else (0, None)
        while number < len(ranges):
            limit = _PAGE if part.left is None else min(_PAGE, part.left)
            if limit <= 0:
                part.position = PagePosition(space.name, number, after)
                break
            items, after = self._run(read_page(self._scope, space, ranges[number], after, limit))
            for item in items:
                if item.key is not None:
                    if item.version > replayed_after:
                        seen[item.key] = item.version
                    yield self._answer.put(item.key, item.value)
            if part.left is not None:
                part.left -= len(items)
            if after is None:
                number += 1
        since = replayed_after
        if part.since is not None:
            since = min(since, part.since)
        # A deleted item leaves no version behind, so the head tells which commits were seen.
        head: Head = self._run(read_committed_head(self._scope, space))
        # Items of another table may have a higher version than any commit here.
        seen = {key: version for key, version in seen.items() if version <= head.version}
        # An operation before a trimmed record may be older than its item: a later delete may be missing.
        records = after_gaps(self._covering(head, since))
        if part.since is not None and not _covers(records, part.since, head.version):
            raise SyncUnavailable(f"The log of {space} was trimmed during a pull; pull again.")
        yield from self._replay(part.head, head.version, records, seen)

    def _covering(self, head: Head, since: int) -> list[LogRecord]:
        """Return the records after a version; wait until they cover the head."""
        for look in range(_LOOKS):
            records: list[LogRecord] = self._run(read_records(self._scope, head.space, since))
            if not self._has_young_gap(head, records, since):
                return records
            self._wait(look)
        raise SyncUnavailable(f"The last commits of {head.space} are not visible yet; pull again.")

    def _has_young_gap(self, head: Head, records: Sequence[LogRecord], since: int) -> bool:
        last = since
        for record in records:
            # Old records that are missing were trimmed, and all items of that time are visible.
            if not record.follows(last) and self._is_young(record.at):
                return True
            last = record.version
        return last < head.version and self._is_young(head.at)

    def _replay(
        self,
        head: Head,
        known: int,
        records: Sequence[LogRecord],
        seen: Mapping[str, int] = MappingProxyType({}),
    ) -> Iterator[str]:
        """Yield the last operation of each key in log records; `seen` are the versions of sent items."""
        self._answer.confirm(self._body.group, records)
        last: dict[str, tuple[Operation, LogRecord]] = {}
        for record in records:
            if self._is_young(record.at):
                # All items of an old commit are visible. A restore may have lost what it needs.
                self._answer.need(record.needs)
            for operation in record.operations:
                if operation.group in (None, self._body.group):
                    last.pop(operation.key, None)
                    last[operation.key] = operation, record
        for operation, record in last.values():
            if seen.get(operation.key, 0) >= record.version:
                continue
            value = operation.value
            if operation.item_key is not None:
                value = self._large_value(head.space, operation, record)
            if value is None:
                yield self._answer.op({"op": "del", "key": operation.key})
            else:
                yield self._answer.put(operation.key, value)
        top = max(known, records[-1].version if records else 0)
        self._answer.spaces[head.space.name] = (top, head.epoch)

    def _large_value(self, space: Space, operation: Operation, record: LogRecord) -> str | None:
        """Read the value of an operation that was too large for the log."""
        assert operation.item_key is not None
        item: Item | None = None
        table = self._scope.table(space.table)
        for look in range(_LOOKS):
            item = self._run(read_item(self._scope, table, operation.item_key))
            plan = None if item is None else space.table.recognise(item)
            if item is not None and plan is not None and space_version(item) >= record.version:
                return None if is_deleted(plan, item) else client_value(plan, plan.decode(item))
            if item is None and not self._is_young(record.at):
                return None
            self._wait(look)
        if item is None:
            return None
        raise SyncUnavailable(f"The value of {operation.key!r} is not visible yet; pull again.")

    def _end(self, cookie: Cookie | None) -> str:
        answer = self._answer
        base = 0 if cookie is None else cookie.base
        prefix = None if cookie is None else cookie.prefix
        before = self._recent
        recent = self._young(before)
        for client, known in self._young(answer.recent).items():
            recent[client] = max(known, recent.get(client, known))
        new = Cookie(
            spaces=answer.spaces,
            base=base,
            prefix=prefix,
            following=answer.following,
            recent=recent,
            group=self._body.group if recent else "",
        )
        if cookie is None:
            new = new.after(None, order_of(self._body.cookie))
        elif new != cookie:
            new = new.after(cookie, None)
        confirmed = {
            client: last for client, last in answer.confirmed.items() if last >= before.get(client, (0, 0))[0]
        }
        return f'],"lastMutationIDChanges":{json.dumps(confirmed)},"cookie":{json.dumps(new.to_json())}}}'

    def _young(self, recent: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Return the ids whose commits may not be visible as a whole."""
        return {client: known for client, known in recent.items() if self._is_young(known[1] / 1000)}

    def _is_young(self, at: float) -> bool:
        # What was read first may be from the beginning, however long the pull takes. A clock that is far
        # ahead must not make every gap look young.
        return self._began - YOUNG_SECONDS <= at <= self._scope.clock() + YOUNG_SECONDS

    def _wait(self, look: int) -> None:
        def flow() -> Flow[None]:
            yield self._scope.retries.wait(look)

        self._run(flow())


@dataclass(slots=True)
class _Part:
    """The next part of a space: where it starts, and what its log must cover."""

    head: Head
    start: PagePosition | None
    #: The version that the client has of the space; None if it has nothing of it.
    since: int | None
    #: The items that the answer still takes; None without a limit.
    left: int | None
    #: Where the rest begins; None at the end of the space.
    position: PagePosition | None = None


def _has_new_epoch(cookie: Cookie, heads: Sequence[Head]) -> bool:
    known = cookie.spaces
    return any(
        head.space.name in known and known[head.space.name][1] not in ("", head.epoch) for head in heads
    )


def _covers(records: Sequence[LogRecord], since: int, version: int) -> bool:
    """Return whether records without gaps have all that comes after one version, up to another."""
    return since >= version or (
        bool(records) and records[0].version <= since + 1 and records[-1].version >= version
    )
