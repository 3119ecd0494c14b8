"""A change feed: the streams of some tables as one sequence, with checkpoints.

Delivery is at least once, in order within each shard. A commit stores that everything taken so far was
handled. The feed commits by itself only to record that there was nothing to take.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from typing import Generic, Literal, TypeVar, Union

from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow, Sleep
from solotable._flows.scope import Scope
from solotable.errors import DataError, DeclarationError

from .checkpoints import Checkpoint, ShardCheckpoint, begin, forget, load_checkpoint, save, sequence_order
from .streams import Record, Shard, Stream

ChangeT = TypeVar("ChangeT")
Since = Union[Literal["earliest", "latest"], datetime, Checkpoint]
#: How far clocks may differ where the latest is a moment and not a place.
_SKEW_SECONDS = 5
#: How often an idle consumer notes that it had read everything.
_NOTE_SECONDS = 3600.0


class Feed(Generic[ChangeT]):
    """The position of a reader of changes; its flows read and commit."""

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
                "A consumer's name is text that is not empty; leave it out to keep no checkpoints."
            )
        if restart and consumer is None:
            raise DataError("restart=True forgets the checkpoints of a consumer; name it with consumer=.")
        if isinstance(since, Checkpoint) and len(tables) != 1:
            raise DataError("A checkpoint is a place in one table's changes; say which one: table=...")
        self._scope = scope
        self._streams = [Stream(scope, table, consumer=consumer) for table in tables]
        self._convert = convert
        self._consumer = consumer
        self._since = since
        self._restart = restart
        self._opened = False
        #: Records that were read and not handed out.
        self._waiting: deque[tuple[Record, Shard]] = deque()
        #: What is left of the record at the front, once it was opened.
        self._parts: deque[ChangeT] = deque()

    def take(self) -> ChangeT | None:
        """Return the next change that was read, or None.

        A record that cannot be decoded stays first, and raises its error each time.
        """
        while self._waiting:
            record, shard = self._waiting[0]
            if not self._parts:
                self._parts.extend(self._convert(record))
            change = self._parts.popleft() if self._parts else None
            shard.owed = shard.owed or change is not None
            if not self._parts:
                self._waiting.popleft()
                shard.given, shard.given_seen = record.sequence, record.at.timestamp()
            if change is not None:
                return change
        return None

    def fill(self, *, follow: bool = False, poll_seconds: float = 0.5) -> Flow[bool]:
        """Read on until there is something to take; False at the end of all that there is now.

        With `follow` it waits for more instead of returning False.
        """
        if self._waiting:
            return True
        if not self._opened:
            yield from self._open()
        while True:
            self._settle()
            yield from self._note(at_end=False)
            for stream in self._streams:
                records = yield from stream.page()
                if records:
                    shard = stream.shards[records[0].shard]
                    self._waiting.extend((record, shard) for record in records)
                    return True
            self._settle()
            yield from self._note(at_end=True)
            if not follow:
                return False
            yield Sleep(poll_seconds)

    def commit(self) -> Flow[None]:
        """Store that everything taken so far was handled."""
        if self._consumer is None:
            raise DeclarationError("A feed without a consumer keeps no checkpoints; give it consumer=.")
        if not self._waiting:
            self._settle()
        for stream in self._streams:
            for shard in stream.shards.values():
                if shard.owed:
                    yield from self._save(stream, shard)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint after the last change taken, for a caller that stores it elsewhere."""
        if len(self._streams) != 1:
            raise DataError("A checkpoint is a place in one table's changes; read one table.")
        (stream,) = self._streams
        marks = [stream.checkpoint_of(shard, all_given=not self._waiting) for shard in stream.shards.values()]
        return Checkpoint(shards=tuple(marks), begun=stream.begun, since=stream.since)

    def _open(self) -> Flow[None]:
        for stream in self._streams:
            stream.shards.clear()
            checkpoint = yield from self._begin(stream)
            yield from stream.open(checkpoint, latest=self._since == "latest")
            yield from self._tidy(stream, checkpoint)
        self._opened = True

    def _begin(self, stream: Stream) -> Flow[Checkpoint | None]:
        """Return where to stand; None for a beginning."""
        if isinstance(self._since, Checkpoint) and self._consumer is None:
            return self._since
        if isinstance(self._since, datetime):
            if self._since.tzinfo is None:
                raise DataError(f"{self._since!r} has no time zone; give the moment with one.")
            stream.since = self._since.timestamp()
        elif self._since == "latest":
            stream.since = float(int(stream.begun) - _SKEW_SECONDS)
        if self._consumer is None:
            return None
        if self._restart:
            yield from forget(self._scope, stream.table, self._consumer)
        there = yield from load_checkpoint(self._scope, stream.table, self._consumer)
        if there is not None:
            return there
        if isinstance(self._since, Checkpoint):
            return self._since
        if stream.since is not None:
            begun = yield from begin(self._scope, stream.table, self._consumer, since=stream.since)
            return begun if begun.shards else None
        # From the earliest on: until its first commit such a consumer has no place to lose.
        return None

    def _tidy(self, stream: Stream, checkpoint: Checkpoint | None) -> Flow[None]:
        """Forget the marks of shards that were read to their end and are gone."""
        if self._consumer is None or checkpoint is None:
            return
        gone = [mark.shard for mark in checkpoint.shards if mark.done and mark.shard not in stream.shards]
        yield from forget(self._scope, stream.table, self._consumer, gone)

    def _settle(self) -> None:
        """Count what was read as handed out: nothing waits, or what came last was of no interest."""
        for stream in self._streams:
            for shard in stream.shards.values():
                shard.given, shard.given_seen = shard.read, shard.seen

    def _note(self, *, at_end: bool) -> Flow[None]:
        """Keep how far there was nothing to hand out, so that this is not taken for a loss later."""
        if self._consumer is None:
            return
        for stream in self._streams:
            for shard in stream.shards.values():
                # What lies before the first record that was read is not known before the end.
                known = at_end or shard.given is not None
                if known and not shard.owed and _is_news(shard):
                    yield from self._save(stream, shard)

    def _save(self, stream: Stream, shard: Shard) -> Flow[None]:
        assert self._consumer is not None
        mark = stream.checkpoint_of(shard, all_given=not self._waiting)
        there = yield from save(self._scope, stream.table, self._consumer, mark)
        shard.saved, shard.owed = there, False
        if mark.is_behind(there):
            self._catch_up(shard, there)

    def _catch_up(self, shard: Shard, there: ShardCheckpoint) -> None:
        """Continue from the checkpoint of another worker of the same consumer."""
        at = sequence_order(there.sequence)
        ours = [
            each for each in self._waiting if each[1] is not shard or sequence_order(each[0].sequence) > at
        ]
        if self._waiting and (not ours or ours[0] is not self._waiting[0]):
            self._parts.clear()
        self._waiting = deque(ours)
        shard.given, shard.given_seen = there.sequence, there.seen
        if sequence_order(shard.read) < at:
            shard.read, shard.seen, shard.iterator = there.sequence, there.seen, None
            shard.done = there.done


def _is_news(shard: Shard) -> bool:
    saved = shard.saved
    if saved is None:
        return True
    return shard.given_seen - saved.seen >= _NOTE_SECONDS or (shard.done and not saved.done)
