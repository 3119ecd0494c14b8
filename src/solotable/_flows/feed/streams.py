"""Read the stream of one table: parent shards before their children, without silent gaps.

DynamoDB retains changes for 24 hours. `FeedTrimmed` is raised if the stream no longer has the consumer's
position and the consumer's checkpoints do not prove that it has read everything within that time.
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
_RETENTION_SECONDS = 24 * 3600
# DynamoDB: an open shard may return an empty page although later pages have records.
_EMPTY_READS = 3
_THROTTLED_SECONDS = 0.25
_SERVICE = "dynamodb.amazonaws.com"
_IMAGES = ("OldImage", "NewImage")


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One change of one item, as recorded in the stream."""

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
    """One shard and the positions in it."""

    id: str
    parent: str | None
    latest: bool = False
    #: The sequence number of the last record read, and the time up to which everything was read.
    read: str | None = None
    seen: float = 0.0
    #: The same for the last delivered record.
    delivered: str | None = None
    delivered_seen: float = 0.0
    #: Whether the shard began while the feed was read, so that all its changes belong to the feed.
    began_during_read: bool = False
    #: Whether it is read from its beginning, which may have changes before the feed's start.
    from_start: bool = False
    iterator: str | None = None
    done: bool = False
    empty_reads: int = 0
    #: Whether a change was delivered since the last commit, and the committed checkpoint.
    uncommitted: bool = False
    saved: ShardCheckpoint | None = None


class Stream:
    """The stream of one table, read from a checkpoint."""

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
        """Find the stream and its shards, and move to the checkpoint."""
        newest = yield from self._latest_arn()
        shard_checkpoints = () if checkpoint is None else checkpoint.shards
        if checkpoint is not None:
            self.since, self.begun = checkpoint.since, checkpoint.begun
            self._known = max((saved.seen for saved in shard_checkpoints), default=checkpoint.begun)
        before = {saved.stream for saved in shard_checkpoints} - {newest}
        self.arn = newest
        if before and not any(saved.stream == newest for saved in shard_checkpoints):
            self.arn = max(before)
            if _table_of(self.arn) != _table_of(newest):
                raise self._trimmed_error(
                    self._known, "its checkpoint belongs to the stream of another table (a restored copy?)"
                )
        listed = yield from self._describe_stream()
        self._check_age(listed, has_checkpoint=checkpoint is not None)
        by_shard = {saved.shard: saved for saved in shard_checkpoints if saved.stream == self.arn}
        self._check_checkpoints(by_shard, listed["Shards"], checkpoint)
        for described in listed["Shards"]:
            shard = self._add_shard(described)
            saved = by_shard.get(shard.id)
            if saved is not None:
                shard.read = shard.delivered = saved.sequence
                shard.seen = shard.delivered_seen = saved.seen
                shard.done, shard.saved = saved.done, saved
            elif latest and checkpoint is None:
                shard.latest, shard.done = (
                    True,
                    "EndingSequenceNumber" in described.get("SequenceNumberRange", {}),
                )

    def page(self) -> Flow[list[Record]]:
        """Return the next records of one shard; an empty list at the current end of the stream."""
        while True:
            ready = [shard for shard in self.shards.values() if self._is_ready(shard)]
            if not ready:
                if not (yield from self._find_new_shards()):
                    return []
                continue
            for _ in range(len(ready)):
                self._turn += 1
                shard = ready[self._turn % len(ready)]
                records = yield from self._read(shard)
                if records:
                    return records
            if any(shard.done for shard in ready):
                yield from self._find_new_shards()
            elif all(shard.empty_reads >= _EMPTY_READS for shard in ready):
                return []

    def checkpoint_of(self, shard: Shard, *, all_delivered: bool) -> ShardCheckpoint:
        """Return the checkpoint after the last delivered record of a shard."""
        return ShardCheckpoint(
            stream=self.arn,
            shard=shard.id,
            sequence=shard.delivered,
            seen=shard.delivered_seen,
            done=shard.done and all_delivered,
        )

    def _latest_arn(self) -> Flow[str]:
        name = self._scope.table(self.table)
        described = yield from self._call("DescribeTable", TableName=name)
        arn: str | None = described["Table"].get("LatestStreamArn")
        view = described["Table"].get("StreamSpecification", {}).get("StreamViewType")
        if arn is None or view not in (None, "NEW_AND_OLD_IMAGES"):
            has = "no stream" if arn is None else f"a stream of {view}"
            raise DeclarationError(
                f"changes() needs a stream of NEW_AND_OLD_IMAGES, but table {name!r} has {has}; declare "
                f"Table(..., stream=True), and enable it with UpdateTable if the table already exists."
            )
        return arn

    def _describe_stream(self) -> Flow[dict[str, Any]]:
        """Return the stream's description with all its shards."""
        shards: list[dict[str, Any]] = []
        start: dict[str, Any] = {}
        while True:
            try:
                described = yield from self._call("DescribeStream", StreamArn=self.arn, **start)
            except TableNotFound as gone:
                raise self._trimmed_error(self._last_seen(), "its stream was disabled and deleted") from gone
            found: dict[str, Any] = described["StreamDescription"]
            shards += found.get("Shards", ())
            if "LastEvaluatedShardId" not in found:
                self._enabled = found["StreamStatus"] in ("ENABLED", "ENABLING")
                return {**found, "Shards": shards}
            start = {"ExclusiveStartShardId": found["LastEvaluatedShardId"]}

    def _find_new_shards(self) -> Flow[bool]:
        """Find new shards and return whether there are any; raise FeedTrimmed if the stream was disabled."""
        listed = yield from self._describe_stream()
        fresh = [described for described in listed["Shards"] if described["ShardId"] not in self.shards]
        for described in fresh:
            self._add_shard(described).began_during_read = True
        unread = any(not shard.done for shard in self.shards.values())
        if not unread and not self._enabled:
            raise self._trimmed_error(
                self._last_seen(), "its stream was disabled then, so later changes were not recorded"
            )
        return bool(fresh)

    def _add_shard(self, described: dict[str, Any]) -> Shard:
        shard = Shard(
            id=described["ShardId"],
            parent=described.get("ParentShardId"),
            seen=self.begun,
            delivered_seen=self.begun,
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
        except ServiceError as error:
            yield from self._recover(shard, error)
            return []
        found = [self._record(shard, each) for each in described.get("Records", ())]
        fresh = [each for each in found if sequence_order(each.sequence) > sequence_order(shard.read)]
        shard.iterator = described.get("NextShardIterator")
        shard.done = shard.iterator is None
        shard.empty_reads = 0 if found else shard.empty_reads + 1
        if fresh:
            shard.read, shard.seen = fresh[-1].sequence, fresh[-1].at.timestamp()
        elif shard.empty_reads >= _EMPTY_READS:
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
        shard.from_start = members["ShardIteratorType"] == "TRIM_HORIZON" and not shard.began_during_read
        # If this iterator expires before its first record, the next one must not skip newer records.
        shard.latest = False
        try:
            described = yield from self._call("GetShardIterator", **members)
        except ServiceError as error:
            if error.code != "TrimmedDataAccessException" or not self._is_retained(shard.seen):
                raise
            horizon = {"StreamArn": self.arn, "ShardId": shard.id, "ShardIteratorType": "TRIM_HORIZON"}
            described = yield from self._call("GetShardIterator", **horizon)
        iterator: str = described["ShardIterator"]
        return iterator

    def _recover(self, shard: Shard, error: ServiceError) -> Flow[None]:
        shard.empty_reads = 0
        match error.code:
            case "ExpiredIteratorException":
                shard.iterator = None
            case "LimitExceededException":
                yield Sleep(_THROTTLED_SECONDS)
            case "TrimmedDataAccessException" if self._is_retained(shard.seen) and shard.iterator is not None:
                shard.iterator = None
            case "TrimmedDataAccessException" | "ResourceNotFoundException":
                raise self._trimmed_error(
                    shard.seen, "the stream retains changes for 24 hours and has dropped some"
                ) from error
            case _:
                raise error

    def _record(self, shard: Shard, described: dict[str, Any]) -> Record:
        change = described["dynamodb"]
        if described.get("awsRegion") == "ddblocal":
            change = {
                **change,
                **{name: _restore_empty_maps(change[name]) for name in _IMAGES if name in change},
            }
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
        """Raise FeedTrimmed if the stream no longer has changes from the requested start on."""
        if self.since is None or has_checkpoint:
            return
        created = float(listed.get("CreationRequestDateTime", 0))
        if not self._is_retained(max(created, self.since)):
            raise self._trimmed_error(self.since, "the stream retains changes for 24 hours")

    def _check_checkpoints(
        self,
        by_shard: dict[str, ShardCheckpoint],
        listed: Iterable[dict[str, Any]],
        checkpoint: Checkpoint | None,
    ) -> None:
        """Raise FeedTrimmed if the consumer may have missed shards that began and ended."""
        if checkpoint is None:
            return
        there = {described["ShardId"]: described.get("ParentShardId") for described in listed}
        for saved in by_shard.values():
            if saved.done or self._is_retained(saved.seen):
                continue
            if saved.shard not in there:
                raise self._trimmed_error(saved.seen, "the shard that it was reading no longer exists")
            if saved.sequence is None:
                # DynamoDB: a read from TRIM_HORIZON succeeds even if older records were trimmed.
                raise self._trimmed_error(saved.seen, "the stream retains changes for 24 hours")
        last = max((saved.seen for saved in by_shard.values()), default=checkpoint.begun)
        orphans = [
            shard
            for shard, parent in there.items()
            if shard not in by_shard and parent not in there and parent not in by_shard
        ]
        if orphans and not self._is_retained(last):
            raise self._trimmed_error(last, "the stream retains changes for 24 hours")

    def _last_seen(self) -> float:
        return max((shard.seen for shard in self.shards.values()), default=self._known)

    def _is_retained(self, moment: float) -> bool:
        return self._scope.clock() - moment < _RETENTION_SECONDS

    def _trimmed_error(self, seen: float, why: str) -> FeedTrimmed:
        since = datetime.fromtimestamp(seen, UTC)
        reader = "A reader" if self._consumer is None else f"Consumer {self._consumer!r}"
        named = "" if self._consumer is None else f"consumer={self._consumer!r}, restart=True, "
        return FeedTrimmed(
            f"{reader} of table {self.table.name!r} has read changes until {since:%Y-%m-%d %H:%M:%S}Z, but "
            f"{why}: later changes may be lost. Rebuild the data that depends on them, then start again with "
            f'changes({named}since="earliest").',
            consumer=self._consumer,
            since=since,
        )

    def _call(self, operation: str, **members: Any) -> Flow[dict[str, Any]]:
        request = Control(operation=operation, members=members)
        return (yield from send(request, self._scope.retries))


def _table_of(arn: str) -> str:
    return arn.partition("/stream/")[0]


def _restore_empty_maps(item: Item) -> Item:
    """Restore the type of empty maps, which DynamoDB Local omits from its records."""
    found: Item = {}
    for name, value in item.items():
        match value:
            case {"M": inner}:
                found[name] = {"M": _restore_empty_maps(inner)}
            case {"L": members}:
                found[name] = {"L": [_restore_empty_maps({"": member})[""] for member in members]}
            case _:
                found[name] = value or {"M": {}}
    return found


def _is_since(moment: float, at: float) -> bool:
    # DynamoDB: the time of a record is rounded down to the second; DynamoDB Local's, to the minute.
    return at >= moment - moment % (60 if at % 60 == 0 else 1)
