"""Delivery: the events of the outbox from the change feed to the sinks, at least once and in order.

The place is kept by commits after events were handled, so a kill repeats some and loses none. A sink
that fails is asked again, and holds up the others behind it; an event that it never takes is kept as a
dead letter, and delivery continues. No request waits for it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from solotable._entities.declare.table import Table
from solotable._entities.traits.events import Event
from solotable._expressions.ast import Attr, Compare, Const
from solotable._flows.feed.changes import is_own, tables_of
from solotable._flows.feed.checkpoints import load_checkpoint
from solotable._flows.feed.feed import Feed
from solotable._flows.feed.streams import Record
from solotable._flows.retry import Flow, Sleep, send
from solotable._flows.traits.outbox import OUTBOX, DeadLetter, bury, dead_letters, load_event
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, Scan
from solotable._store import AdminStore, Database
from solotable._store.handles.changes import Changes
from solotable._store.runner import run
from solotable._values import Item
from solotable.errors import DeclarationError, FeedTrimmed

from .sinks import Sink, sink_of

_COMMIT_EVERY = 25
_FIRST_WAIT_SECONDS = 0.1
_LONGEST_WAIT_SECONDS = 10.0
_log = logging.getLogger("solotable.deliver")


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivered:
    """The number of handled events, and of events that a sink rejected."""

    events: int = 0
    dead: int = 0
    #: The last handled event.
    last: Event | None = None


#: A sink: an object of `sinks`, or a function of an event.
AnySink = Sink | Callable[[Event], object]
Progress = Callable[[Delivered], None]


def deliver(  # noqa: PLR0913 - a job's settings, each by name
    db: Database | AdminStore,
    sinks: Sequence[AnySink],
    *,
    consumer: str = "outbox",
    table: Table | None = None,
    follow: bool = False,
    poll_seconds: float = 0.5,
    attempts: int = 10,
    recover: bool = False,
    progress: Progress | None = None,
) -> Delivered:
    """Hand every event that was not delivered yet to the sinks, and return how many there were.

    `follow` waits for more; `attempts` is how often a sink is asked before an event becomes its dead
    letter. After a FeedTrimmed, `recover` delivers what the outbox still holds and begins again.
    """
    if not sinks:
        raise DeclarationError("Delivery needs a sink: deliver(db, [AuditSink()]).")
    admin = db.admin() if isinstance(db, Database) else db
    run_ = _Run(admin, [sink_of(sink) for sink in sinks], consumer, attempts, progress)
    tables = tables_of(admin.scope, (), table)
    if recover:
        # First the outbox, then the feed from its earliest change, so that no event is missed. The lost
        # checkpoint is removed at the end.
        for each in tables:
            for item in _kept(admin, each):
                run_.handle(each, item)
    feed = Feed(admin.scope, tables, _events, consumer=consumer, restart=recover)
    changes = Changes(admin.engine, feed)
    while True:
        try:
            run_.drain(changes)
        except FeedTrimmed as lost:
            raise FeedTrimmed(
                f"{lost} Delivery does both with recover=True (--recover), from what the outbox holds.",
                consumer=lost.consumer,
                since=lost.since,
            ) from lost
        if not follow:
            return run_.delivered
        run(_pause(poll_seconds), admin.engine)


def waiting(db: Database | AdminStore, *, consumer: str = "outbox", table: Table | None = None) -> int:
    """Return the number of undelivered events; deliver none."""
    admin = db.admin() if isinstance(db, Database) else db
    count = 0
    for each in tables_of(admin.scope, (), table):
        place = run(load_checkpoint(admin.scope, each, consumer), admin.engine)
        feed = Feed(admin.scope, [each], _events, since="earliest" if place is None else place)
        count += sum(1 for _ in Changes(admin.engine, feed))
    return count


def dead(
    db: Database | AdminStore, *, consumer: str = "outbox", table: Table | None = None
) -> list[DeadLetter]:
    """Return the dead letters: events that a sink rejected, oldest first."""
    admin = db.admin() if isinstance(db, Database) else db
    return [
        letter
        for each in tables_of(admin.scope, (), table)
        for _, letter in run(dead_letters(admin.scope, each, consumer), admin.engine)
    ]


def redeliver(
    db: Database | AdminStore,
    sinks: Sequence[AnySink],
    *,
    consumer: str = "outbox",
    table: Table | None = None,
) -> Delivered:
    """Deliver dead letters again to the sinks that rejected them, and remove those that are accepted."""
    admin = db.admin() if isinstance(db, Database) else db
    by_name = {sink.name: sink for sink in map(sink_of, sinks)}
    done = Delivered()
    for each in tables_of(admin.scope, (), table):
        for item, letter in run(dead_letters(admin.scope, each, consumer), admin.engine):
            sink = by_name.get(letter.sink)
            if sink is None:
                continue
            try:
                sink.send(admin, each, item, letter.event)
            except Exception as failure:  # noqa: BLE001 - a sink may raise anything
                _log.error("%s rejected event %s again: %s", sink.name, letter.event.id, failure)
                done = replace(done, dead=done.dead + 1)
                continue
            names = (each.partition.name, *([each.sort.name] if each.sort else []))
            key = {name: item[name] for name in names}
            gone = DeleteItem(table=admin.scope.table(each), key=key)
            run(send(gone, admin.scope.retries), admin.engine)
            done = replace(done, events=done.events + 1, last=letter.event)
    return done


class _Run:
    """One run of the job: its sinks and its counts."""

    def __init__(
        self,
        db: AdminStore,
        sinks: Sequence[Sink],
        consumer: str,
        attempts: int,
        progress: Progress | None,
    ) -> None:
        self.delivered = Delivered()
        self._db = db
        self._sinks = sinks
        self._consumer = consumer
        self._attempts = attempts
        self._progress = progress

    def drain(self, changes: Changes[Record]) -> None:
        """Deliver the events that exist now."""
        uncommitted = 0
        for record in changes:
            assert record.after is not None
            self.handle(record.table, record.after)
            uncommitted += 1
            if uncommitted == _COMMIT_EVERY:
                changes.commit()
                uncommitted = 0
        if uncommitted:
            changes.commit()

    def handle(self, table: Table, item: Item) -> None:
        """Deliver an event to every sink; store a dead letter for a sink that rejects it."""
        event = load_event(table, item)
        refusals = [error for sink in self._sinks if (error := self._send(sink, table, item, event))]
        self.delivered = Delivered(
            events=self.delivered.events + 1, dead=self.delivered.dead + bool(refusals), last=event
        )
        if self._progress is not None:
            self._progress(self.delivered)

    def _send(self, sink: Sink, table: Table, item: Item, event: Event) -> str | None:
        error = ""
        for attempt in range(self._attempts):
            try:
                sink.send(self._db, table, item, event)
            except Exception as failure:  # noqa: BLE001 - a sink may raise anything
                error = f"{type(failure).__name__}: {failure}"
                _log.warning("%s rejected event %s (attempt %d): %s", sink.name, event.id, attempt + 1, error)
            else:
                return None
            if attempt + 1 < self._attempts:
                wait = min(_LONGEST_WAIT_SECONDS, _FIRST_WAIT_SECONDS * 2**attempt)
                run(_pause(wait), self._db.engine)
        _log.error(
            "%s rejected event %s of %s %s in every attempt; it is stored as a dead letter: %s",
            sink.name,
            event.id,
            event.target.entity,
            event.target.key,
            error,
        )
        letter = bury(
            self._db.scope,
            table,
            item,
            consumer=self._consumer,
            sink=sink.name,
            error=error,
            attempts=self._attempts,
        )
        run(letter, self._db.engine)
        return error


def _events(record: Record) -> Iterator[Record]:
    if record.kind == "inserted" and is_own(record.table, record.after, OUTBOX):
        yield record


def _kept(db: AdminStore, table: Table) -> Iterator[Item]:
    """Yield every event in the outbox of a table."""
    start = None
    while True:
        ours = Compare("=", Attr((table.internal_tag,)), Const({"S": OUTBOX}))
        request = Scan(table=db.scope.table(table), filter=ours, start=start, consistent=True)
        page = run(send(request, db.scope.retries), db.engine)
        yield from decode_items(page.items or ())
        start = page.last_key
        if not start:
            return


def _pause(seconds: float) -> Flow[None]:
    yield Sleep(seconds)
