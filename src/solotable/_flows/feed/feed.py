"""A change feed: the streams of several tables as one sequence, with checkpoints.

Delivery is at least once, in order within each shard. A commit stores that the caller has handled every
change taken so far. The feed commits on its own only the positions before which it had no changes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Generic, Literal, TypeVar, Union

from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, Sleep
from solotable._flows.scope import Scope
from solotable._flows.subject_keys import load_keys_of_table
from solotable.errors import DataError, DeclarationError

from .checkpoints import Checkpoint, ShardCheckpoint, begin, forget, load_checkpoint, save, sequence_order
from .streams import Record, Shard, Stream

ChangeT = TypeVar("ChangeT")
Since = Union[Literal["earliest", "latest"], datetime, Checkpoint]
#: The allowed clock skew of `since="latest"`, which is a time and not a position.
_SKEW_SECONDS = 5
#: How often an idle consumer stores that it has read everything.
_IDLE_SAVE_SECONDS = 3600.0


class Feed(Generic[ChangeT]):
    """A reader of changes and its position; its flows read and commit."""

    def __init__(
        self,
        scope: Scope,
        tables: Sequence[Table],
        convert: Callable[[Record], Iterable[ChangeT]],
        *,
        consumer: str | None = None,
        since: Since = "earliest",
        restart: bool = False,
    ) -> None:
        if consumer == "":
            raise DataError(
                "consumer= takes a non-empty string, got ''; leave it out to read without checkpoints."
            )
        if restart and consumer is None:
            raise DataError("restart=True removes the checkpoints of a consumer; name it with consumer=.")
        if isinstance(since, Checkpoint) and len(tables) != 1:
            raise DataError(
                f"since=Checkpoint(...) is a position in one table, but {len(tables)} tables are read; "
                f"pass table=."
            )
        self._scope = scope
        self._streams = [Stream(scope, table, consumer=consumer) for table in tables]
        self._convert = convert
        self._consumer = consumer
        self._since = since
        self._restart = restart
        self._opened = False
        #: Records that were read and not yet delivered.
        self._waiting: deque[tuple[Record, Shard]] = deque()
        #: The remaining changes of the first waiting record.
        self._parts: deque[ChangeT] = deque()

    def take(self) -> ChangeT | None:
        """Return the next buffered change, or None.

        A record that cannot be decoded stays first and raises its error at every call.
        """
        while self._waiting:
            record, shard = self._waiting[0]
            if not self._parts:
                self._parts.extend(self._convert(record))
            change = self._parts.popleft() if self._parts else None
            shard.uncommitted = shard.uncommitted or change is not None
            if not self._parts:
                self._waiting.popleft()
                shard.delivered, shard.delivered_seen = record.sequence, record.at.timestamp()
            if change is not None:
                return change
        return None

    def fill(self, *, follow: bool = False, poll_seconds: float = 0.5) -> Flow[bool]:
        """Read until a change can be taken; return False at the current end of the streams.

        With `follow`, wait for more records instead of returning False.
        """
        if self._waiting:
            return True
        if not self._opened:
            yield from self._open()
        while True:
            self._mark_delivered()
            yield from self._save_idle(at_end=False)
            for stream in self._streams:
                records = yield from stream.page()
                if records:
                    shard = stream.shards[records[0].shard]
                    self._waiting.extend((record, shard) for record in records)
                    images = [image for record in records for image in (record.before, record.after)]
                    yield from load_keys_of_table(records[0].table, images)
                    return True
            self._mark_delivered()
            yield from self._save_idle(at_end=True)
            if not follow:
                return False
            yield Sleep(poll_seconds)

    def commit(self) -> Flow[None]:
        """Store that the caller has handled every change taken so far."""
        if self._consumer is None:
            raise DeclarationError("commit() needs a consumer to store checkpoints for; pass consumer=.")
        if not self._waiting:
            self._mark_delivered()
        for stream in self._streams:
            for shard in stream.shards.values():
                if shard.uncommitted:
                    yield from self._save(stream, shard)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint after the last change taken, for a caller that stores it elsewhere."""
        if len(self._streams) != 1:
            raise DataError(
                f"checkpoint is a position in one table, but this feed reads {len(self._streams)} tables; "
                f"pass table=."
            )
        (stream,) = self._streams
        all_delivered = not self._waiting
        shards = [
            stream.checkpoint_of(shard, all_delivered=all_delivered) for shard in stream.shards.values()
        ]
        return Checkpoint(shards=tuple(shards), begun=stream.begun, since=stream.since)

    def _open(self) -> Flow[None]:
        for stream in self._streams:
            stream.shards.clear()
            checkpoint = yield from self._begin(stream)
            yield from stream.open(checkpoint, latest=self._since == "latest")
            yield from self._remove_old_checkpoints(stream, checkpoint)
        self._opened = True

    def _begin(self, stream: Stream) -> Flow[Checkpoint | None]:
        """Return the checkpoint to start from; None for a new consumer."""
        if isinstance(self._since, Checkpoint) and self._consumer is None:
            return self._since
        if isinstance(self._since, datetime):
            if self._since.tzinfo is None:
                raise DataError(f"since={self._since!r} has no time zone; pass an aware datetime.")
            stream.since = self._since.timestamp()
        elif self._since == "latest":
            stream.since = float(int(stream.begun) - _SKEW_SECONDS)
        if self._consumer is None:
            return None
        if self._restart:
            yield from forget(self._scope, stream.table, self._consumer)
        stored = yield from load_checkpoint(self._scope, stream.table, self._consumer)
        if stored is not None:
            return stored
        if isinstance(self._since, Checkpoint):
            return self._since
        if stream.since is not None:
            begun = yield from begin(self._scope, stream.table, self._consumer, since=stream.since)
            return begun if begun.shards else None
        # A consumer that starts at the earliest change has no position until its first commit.
        return None

    def _remove_old_checkpoints(self, stream: Stream, checkpoint: Checkpoint | None) -> Flow[None]:
        """Remove the checkpoints of shards that were read to their end and no longer exist."""
        if self._consumer is None or checkpoint is None:
            return
        gone = [each.shard for each in checkpoint.shards if each.done and each.shard not in stream.shards]
        yield from forget(self._scope, stream.table, self._consumer, gone)

    def _mark_delivered(self) -> None:
        """Mark every record that was read as delivered; call it only when no record waits."""
        for stream in self._streams:
            for shard in stream.shards.values():
                shard.delivered, shard.delivered_seen = shard.read, shard.seen

    def _save_idle(self, *, at_end: bool) -> Flow[None]:
        """Store the positions before which there were no changes, so that they do not count as lost later."""
        if self._consumer is None:
            return
        for stream in self._streams:
            for shard in stream.shards.values():
                # Before the first record, the position is known only at the end of the stream.
                known = at_end or shard.delivered is not None
                if known and not shard.uncommitted and _should_save(shard):
                    yield from self._save(stream, shard)

    def _save(self, stream: Stream, shard: Shard) -> Flow[None]:
        assert self._consumer is not None
        checkpoint = stream.checkpoint_of(shard, all_delivered=not self._waiting)
        stored = yield from save(self._scope, stream.table, self._consumer, checkpoint)
        shard.saved, shard.uncommitted = stored, False
        if checkpoint.is_behind(stored):
            self._catch_up(shard, stored)

    def _catch_up(self, shard: Shard, stored: ShardCheckpoint) -> None:
        """Continue from the checkpoint of another worker of the same consumer."""
        at = sequence_order(stored.sequence)
        left = [
            each for each in self._waiting if each[1] is not shard or sequence_order(each[0].sequence) > at
        ]
        if self._waiting and (not left or left[0] is not self._waiting[0]):
            self._parts.clear()
        self._waiting = deque(left)
        shard.delivered, shard.delivered_seen = stored.sequence, stored.seen
        if sequence_order(shard.read) < at:
            shard.read, shard.seen, shard.iterator = stored.sequence, stored.seen, None
            shard.done = stored.done


def _should_save(shard: Shard) -> bool:
    saved = shard.saved
    if saved is None:
        return True
    return shard.delivered_seen - saved.seen >= _IDLE_SAVE_SECONDS or (shard.done and not saved.done)
