"""Reading one table's stream: parents before children, iterators renewed, nothing skipped in silence.

DynamoDB keeps changes for 24 hours. Where a consumer may have missed some, `FeedTrimmed` is raised; it
is raised only when the stream no longer has what the consumer asks for and the consumer cannot show
that it had read everything within that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.scope import Scope
from solotable._protocol.requests import Control
from solotable._values import Item
from solotable.errors import DeclarationError, FeedTrimmed, ServiceError, TableNotFound

from .checkpoints import Checkpoint, ShardCheckpoint, sequence_order

Kind = Literal["inserted", "modified", "removed"]
_KINDS: dict[str, Kind] = {"INSERT": "inserted", "MODIFY": "modified", "REMOVE": "removed"}
_KEPT_SECONDS = 24 * 3600
# DynamoDB: an open shard may answer with no records although some lie further on.
_EMPTY_READS = 3
_CROWDED_SECONDS = 0.25
_SERVICE = "dynamodb.amazonaws.com"
_IMAGES = ("OldImage", "NewImage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One change of one item, as the stream has it."""

    table: Table
    shard: str
    sequence: str
    at: datetime
    kind: Kind
    before: Item | None
    after: Item | None
    by_ttl: bool


@dataclass(slots=True, kw_only=True)
class Shard:
    """One shard and how far it was read."""

    id: str
    parent: str | None
    latest: bool = False
    #: Through which record it was read, and before which moment nothing is unread.
    read: str | None = None
    seen: float = 0.0
    #: The same of what was handed out.
    given: str | None = None
    given_seen: float = 0.0
    #: Whether it began while the feed was read, so that all its changes are the feed's.
    born: bool = False
    #: Whether it is read from its beginning, where changes before the feed's own may lie.
    from_start: bool = False
    iterator: str | None = None
    done: bool = False
    empties: int = 0
    #: Whether a change was handed out since the last commit, and what was committed.
    owed: bool = False
    saved: ShardCheckpoint | None = None


class Stream:
    """The stream of one table, read from a checkpoint on."""

    def __init__(self, scope: Scope, table: Table, *, consumer: str | None) -> None:
        self.table = table
        self.shards: dict[str, Shard] = {}
        self.since: float | None = None
        self.begun = scope.clock()
        self.arn = ""
        self._scope = scope
        self._consumer = consumer
        self._turn = 0
        self._known = self.begun
        self._enabled = True

    def open(self, checkpoint: Checkpoint | None, *, latest: bool) -> Flow[None]:
        """Find the stream and its shards, and stand where the checkpoint says."""
        newest = yield from self._newest()
        marks = () if checkpoint is None else checkpoint.shards
        if checkpoint is not None:
            self.since, self.begun = checkpoint.since, checkpoint.begun
            self._known = max((mark.seen for mark in marks), default=checkpoint.begun)
        before = {mark.stream for mark in marks} - {newest}
        self.arn = newest
        if before and not any(mark.stream == newest for mark in marks):
            self.arn = max(before)
            if _table_of(self.arn) != _table_of(newest):
                raise self._lost(self._known, "this place is in the stream of another table, as of a copy")
        listed = yield from self._listed()
        self._check_age(listed, has_checkpoint=checkpoint is not None)
        marked = {mark.shard: mark for mark in marks if mark.stream == self.arn}
        self._check_checkpoints(marked, listed["Shards"], checkpoint)
        for described in listed["Shards"]:
            shard = self._adopt(described)
            mark = marked.get(shard.id)
            if mark is not None:
                shard.read = shard.given = mark.sequence
                shard.seen = shard.given_seen = mark.seen
                shard.done, shard.saved = mark.done, mark
            elif latest and checkpoint is None:
                shard.latest, shard.done = (
                    True,
                    "EndingSequenceNumber" in described.get("SequenceNumberRange", {}),
                )

    def page(self) -> Flow[list[Record]]:
        """Return the next records of some shard; none at the end of all that there is now."""
        while True:
            ready = [shard for shard in self.shards.values() if self._is_ready(shard)]
            if not ready:
                if not (yield from self._grown()):
                    return []
                continue
            for _ in range(len(ready)):
                self._turn += 1
                shard = ready[self._turn % len(ready)]
                records = yield from self._read(shard)
                if records:
                    return records
            if any(shard.done for shard in ready):
                yield from self._grown()
            elif all(shard.empties >= _EMPTY_READS for shard in ready):
                return []

    def checkpoint_of(self, shard: Shard, *, all_given: bool) -> ShardCheckpoint:
        """Return how far a shard was handed out."""
        return ShardCheckpoint(
            stream=self.arn,
            shard=shard.id,
            sequence=shard.given,
            seen=shard.given_seen,
            done=shard.done and all_given,
        )

    def _newest(self) -> Flow[str]:
        name = self._scope.table(self.table)
        described = yield from self._call("DescribeTable", TableName=name)
        arn: str | None = described["Table"].get("LatestStreamArn")
        view = described["Table"].get("StreamSpecification", {}).get("StreamViewType")
        if arn is None or view not in (None, "NEW_AND_OLD_IMAGES"):
            has = "no stream" if arn is None else f"a stream of {view}"
            raise DeclarationError(
                f"Table {name!r} has {has}, and the change feed needs one of NEW_AND_OLD_IMAGES; declare "
                f"Table(..., stream=True), and turn it on with UpdateTable where the table is there already."
            )
        return arn

    def _listed(self) -> Flow[dict[str, Any]]:
        """Return the stream's description with all its shards."""
        shards: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            try:
                described = yield from self._call("DescribeStream", StreamArn=self.arn, **start)
            except TableNotFound as gone:
                raise self._lost(self._last_seen(), "its stream was turned off and is gone") from gone
            found: dict[str, Any] = described["StreamDescription"]
            shards += found.get("Shards", ())
            if "LastEvaluatedShardId" not in found:
                self._enabled = found["StreamStatus"] in ("ENABLED", "ENABLING")
                return {**found, "Shards": shards}
            start = {"ExclusiveStartShardId": found["LastEvaluatedShardId"]}

    def _grown(self) -> Flow[bool]:
        """Look for new shards; say whether there are any, or that the stream has ended."""
        listed = yield from self._listed()
        fresh = [described for described in listed["Shards"] if described["ShardId"] not in self.shards]
        for described in fresh:
            self._adopt(described).born = True
        unread = any(not shard.done for shard in self.shards.values())
        if not unread and not self._enabled:
            raise self._lost(
                self._last_seen(), "its stream was turned off there, and what changed since was not recorded"
            )
        return bool(fresh)

    def _adopt(self, described: dict[str, Any]) -> Shard:
        shard = Shard(
            id=described["ShardId"],
            parent=described.get("ParentShardId"),
            seen=self.begun,
            given_seen=self.begun,
        )
        self.shards[shard.id] = shard
        return shard

    def _is_ready(self, shard: Shard) -> bool:
        if shard.done:
            return False
        parent = self.shards.get(shard.parent or "")
        return parent is None or parent.done

    def _read(self, shard: Shard) -> Flow[list[Record]]:
        asked_at = self._scope.clock()
        try:
            if shard.iterator is None:
                shard.iterator = yield from self._iterator(shard)
            described = yield from self._call("GetRecords", ShardIterator=shard.iterator)
        except ServiceError as refused:
            yield from self._recover(shard, refused)
            return []
        found = [self._record(shard, each) for each in described.get("Records", ())]
        fresh = [each for each in found if sequence_order(each.sequence) > sequence_order(shard.read)]
        shard.iterator = described.get("NextShardIterator")
        shard.done = shard.iterator is None
        shard.empties = 0 if found else shard.empties + 1
        if fresh:
            shard.read, shard.seen = fresh[-1].sequence, fresh[-1].at.timestamp()
        elif shard.empties >= _EMPTY_READS:
            shard.seen = asked_at
        if self.since is None or not shard.from_start:
            return fresh
        return [each for each in fresh if _is_since(self.since, each.at.timestamp())]

    def _iterator(self, shard: Shard) -> Flow[str]:
        members: dict[str, Any] = {"StreamArn": self.arn, "ShardId": shard.id}
        if shard.read is not None:
            members |= {"ShardIteratorType": "AFTER_SEQUENCE_NUMBER", "SequenceNumber": shard.read}
        else:
            members["ShardIteratorType"] = "LATEST" if shard.latest else "TRIM_HORIZON"
        shard.from_start = members["ShardIteratorType"] == "TRIM_HORIZON" and not shard.born
        # An iterator that expires before it has given anything must not skip records that arrived since.
        shard.latest = False
        try:
            described = yield from self._call("GetShardIterator", **members)
        except ServiceError as refused:
            if refused.code != "TrimmedDataAccessException" or not self._is_fresh(shard.seen):
                raise
            horizon = {"StreamArn": self.arn, "ShardId": shard.id, "ShardIteratorType": "TRIM_HORIZON"}
            described = yield from self._call("GetShardIterator", **horizon)
        iterator: str = described["ShardIterator"]
        return iterator

    def _recover(self, shard: Shard, refused: ServiceError) -> Flow[None]:
        shard.empties = 0
        match refused.code:
            case "ExpiredIteratorException":
                shard.iterator = None
            case "LimitExceededException":
                yield Sleep(_CROWDED_SECONDS)
            case "TrimmedDataAccessException" if self._is_fresh(shard.seen) and shard.iterator is not None:
                shard.iterator = None
            case "TrimmedDataAccessException" | "ResourceNotFoundException":
                raise self._lost(
                    shard.seen, "the stream keeps changes for 24 hours and has dropped some"
                ) from refused
            case _:
                raise refused

    def _record(self, shard: Shard, described: dict[str, Any]) -> Record:
        change = described["dynamodb"]
        if described.get("awsRegion") == "ddblocal":
            change = {**change, **{name: _repaired(change[name]) for name in _IMAGES if name in change}}
        by = described.get("userIdentity") or {}
        return Record(
            table=self.table,
            shard=shard.id,
            sequence=change["SequenceNumber"],
            at=datetime.fromtimestamp(change["ApproximateCreationDateTime"], UTC),
            kind=_KINDS[described["eventName"]],
            before=change.get("OldImage"),
            after=change.get("NewImage"),
            by_ttl=_SERVICE in (by.get("PrincipalId"), by.get("principalId")),
        )

    def _check_age(self, listed: dict[str, Any], *, has_checkpoint: bool) -> None:
        """Refuse to begin at a moment that the stream no longer has."""
        if self.since is None or has_checkpoint:
            return
        created = float(listed.get("CreationRequestDateTime", 0))
        if not self._is_fresh(max(created, self.since)):
            raise self._lost(self.since, "the stream keeps changes for 24 hours")

    def _check_checkpoints(
        self,
        marked: dict[str, ShardCheckpoint],
        listed: Iterable[dict[str, Any]],
        checkpoint: Checkpoint | None,
    ) -> None:
        """Raise FeedTrimmed if shards began and ended that the consumer never read."""
        if checkpoint is None:
            return
        there = {described["ShardId"]: described.get("ParentShardId") for described in listed}
        for mark in marked.values():
            if mark.done or self._is_fresh(mark.seen):
                continue
            if mark.shard not in there:
                raise self._lost(mark.seen, "the shard that it was reading is gone")
            if mark.sequence is None:
                # A shard is read from its beginning without an error, wherever that is now.
                raise self._lost(mark.seen, "the stream keeps changes for 24 hours")
        last = max((mark.seen for mark in marked.values()), default=checkpoint.begun)
        orphans = [
            shard
            for shard, parent in there.items()
            if shard not in marked and parent not in there and parent not in marked
        ]
        if orphans and not self._is_fresh(last):
            raise self._lost(last, "the stream keeps changes for 24 hours")

    def _last_seen(self) -> float:
        return max((shard.seen for shard in self.shards.values()), default=self._known)

    def _is_fresh(self, moment: float) -> bool:
        return self._scope.clock() - moment < _KEPT_SECONDS

    def _lost(self, seen: float, why: str) -> FeedTrimmed:
        since = datetime.fromtimestamp(seen, UTC)
        who = "A reader" if self._consumer is None else f"Consumer {self._consumer!r}"
        named = "" if self._consumer is None else f"consumer={self._consumer!r}, restart=True, "
        return FeedTrimmed(
            f"{who} of table {self.table.name!r} has read its changes until {since:%Y-%m-%d %H:%M:%S}Z, and "
            f"{why}: changes after that may be lost. Rebuild what follows from them, then begin again with "
            f'changes({named}since="earliest").',
            consumer=self._consumer,
            since=since,
        )

    def _call(self, operation: str, **members: Any) -> Flow[dict[str, Any]]:
        request = Control(operation=operation, members=members)
        return (yield from send(request, self._scope.retries))


def _table_of(arn: str) -> str:
    return arn.partition("/stream/")[0]


def _repaired(item: Item) -> Item:
    """Give empty maps their type back, which DynamoDB Local leaves out of its records."""
    found: Item = {}
    for name, value in item.items():
        match value:
            case {"M": inner}:
                found[name] = {"M": _repaired(inner)}
            case {"L": members}:
                found[name] = {"L": [_repaired({"": member})[""] for member in members]}
            case _:
                found[name] = value or {"M": {}}
    return found


def _is_since(moment: float, at: float) -> bool:
    # DynamoDB: the time of a record is rounded down to the second; DynamoDB Local's, to the minute.
    return at >= moment - moment % (60 if at % 60 == 0 else 1)
