"""Copy one segment of a source's Scan: pages in transactions that save the position with the data.

No change is applied while a copy window is open, and each transaction is fenced by the segment's cursor. So
a copied item may be out of date when it is written, and the changes that follow it in the stream repair it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from solotable._expressions.ast import Attr, Compare, Const, Exists, Not, Or
from solotable._flows.retry import send
from solotable._protocol.replies import iterate_items
from solotable._protocol.requests import PutItem, Scan, WriteAction
from solotable._values import Item, item_size
from solotable.errors import ServiceError
from solotable.migrations.apply.direction import Direction
from solotable.migrations.apply.markers import MARKER, mark, owner_text, part_marker, part_value
from solotable.migrations.apply.reconcile import Change, Decision, Reconciler, part_update
from solotable.migrations.apply.transactions import MOST_BYTES, MOST_DECISIONS, CursorWriter, chunks
from solotable.migrations.mapping import DeadLetter, Output, OutputKey
from solotable.migrations.workflow import dead_letters
from solotable.migrations.workflow.control import ControlRecord
from solotable.migrations.workflow.cursors import Cursor, WritesRejected
from solotable.migrations.workflow.pace import Pacer
from solotable.migrations.workflow.sides import Side

#: Items of a page; a transaction takes 99 outputs.
PAGE = 990
#: Seconds of rules after which a chunk is written; a window may be as short.
_CHUNK_SECONDS = 0.5
_LONGEST_CAUSE = 500
_ATTEMPTS = 5


def segment_kind(source: str, number: int) -> str:
    """Return the kind of a segment's cursor."""
    return f"SEGMENT#{source}#{number:04d}"


def first_position(source: str, number: int, record: ControlRecord) -> dict[str, object]:
    """Return the position of a segment before its first page."""
    return {
        "source": source,
        "segment": number,
        "segments": record.segments,
        "generation": record.generation,
        "start": None,
        "scanned": 0,
        "outputs": 0,
        "done": False,
    }


@dataclass(slots=True, kw_only=True)
class _Chunk:
    """Source items whose outputs fit into one transaction."""

    items: list[Item]
    decisions: list[Decision]
    dead: list[DeadLetter]
    size: int = 0
    #: Whether the page has no further item.
    is_last: bool = False


class SegmentCopier:
    """Copies the items of one segment, from the position of its cursor."""

    def __init__(
        self, direction: Direction, cursor: Cursor, pacer: Pacer, *, control: Side, has_served: bool
    ) -> None:
        self._direction = direction
        self._control = control
        self._writer = CursorWriter(direction.destination, cursor, pacer)
        data = cursor.data
        self._source: str = data["source"]
        self._segment, self._segments = int(data["segment"]), int(data["segments"])
        self._generation = int(data["generation"])
        self._has_served = has_served
        self._start: Item | None = data.get("start")
        self._scanned = int(data.get("scanned", 0))
        self._outputs = int(data.get("outputs", 0))
        self.done = bool(data.get("done", False))

    @property
    def cursor(self) -> Cursor:
        """The cursor after the last write."""
        return self._writer.cursor

    @property
    def source(self) -> str:
        """The name of the source table in the mapping."""
        return self._source

    def page(self) -> int:
        """Copy the next page, and return the number of its items."""
        origin = self._direction.origin
        request = Scan(
            table=origin.names[self._source],
            limit=PAGE,
            start=self._start,
            segment=self._segment if self._segments > 1 else None,
            segments=self._segments if self._segments > 1 else None,
            consistent=True,
        )
        page = origin.run(send(request, origin.scope.retries))
        ends = not page.last_key
        for chunk in self._chunks(iterate_items(page.items or ())):
            self._write(chunk, page.last_key, ends=ends)
        if not page.count:
            self._writer.write([], start=page.last_key, done=ends)
        self._start = page.last_key
        self.done = ends
        return page.count

    def _chunks(self, items: Iterable[Item]) -> Iterator[_Chunk]:
        """Yield chunks while the items are mapped: slow rules must not outlast the cursor's lease."""
        clock = self._control.clock
        chunk, began = _Chunk(items=[], decisions=[], dead=[]), clock()
        for item in items:
            outputs = self._direction.outputs(self._source, item)
            source_key = self._direction.mapping.sources[self._source].key_of(item)
            owner = owner_text(self._source, source_key)
            decisions = [
                self._decision(source_key, owner, key, output) for key, output in outputs.items.items()
            ]
            size = sum(decision.size for decision in decisions)
            fits = len(chunk.decisions) + len(decisions) <= MOST_DECISIONS and chunk.size + size <= MOST_BYTES
            if chunk.items and (not fits or clock() - began > _CHUNK_SECONDS):
                yield chunk
                chunk, began = _Chunk(items=[], decisions=[], dead=[]), clock()
            chunk.items.append(item)
            chunk.decisions += decisions
            chunk.dead += outputs.dead
            chunk.size += size
        if chunk.items:
            chunk.is_last = True
            yield chunk

    def _decision(self, source_key: Item, owner: str, key: OutputKey, output: Output) -> Decision:
        table = self._direction.destination.names[output.table]
        action: WriteAction
        if output.kind == "part":
            marked = {
                **output.item,
                part_marker(self._source): {"S": part_value(owner, self._generation)},
            }
            size = item_size(marked)
            action = part_update(table, output, marked, remove=output.owned - marked.keys())
        else:
            marked = mark(output.item, owner, self._generation)
            if output.size is None:
                size = item_size(marked)
            else:
                size = output.size + item_size(mark({}, owner, self._generation))
            mine = Compare("=", Attr((MARKER,)), Const({"S": owner}))
            free = Or((Not(Exists((next(iter(output.key)),))), mine))
            action = PutItem(table=table, item=marked, condition=free, size=size)
        return Decision(output=key, action=action, size=size, source=self._source, key=source_key)

    def _write(self, chunk: _Chunk, last_key: Item | None, *, ends: bool) -> None:
        """Write a chunk, and save the position after its last item."""
        self._bury(chunk.dead)
        last = self._direction.mapping.sources[self._source].key_of(chunk.items[-1])
        self._scanned += len(chunk.items)
        self._outputs += len(chunk.decisions)
        data = {
            "start": last_key if chunk.is_last else last,
            "scanned": self._scanned,
            "outputs": self._outputs,
            "done": chunk.is_last and ends,
        }
        try:
            self._writer.write_all(chunk.decisions, **data)
        except WritesRejected:
            self._write_carefully(chunk, data)
        except ServiceError as error:
            if error.code != "ValidationException":
                raise
            self._write_carefully(chunk, data)

    def _write_carefully(self, chunk: _Chunk, data: Mapping[str, object]) -> None:
        """Reconcile the items of a chunk one by one; what cannot be written becomes a dead letter."""
        for item in chunk.items:
            letter = self._reconcile(self._direction.mapping.sources[self._source].key_of(item))
            if letter is not None:
                self._bury([letter])
        self._writer.write([], **data)

    def _reconcile(self, key: Item) -> DeadLetter | None:
        reconciler = Reconciler(self._direction, generation=self._generation, has_served=self._has_served)
        cause = ""
        for _ in range(_ATTEMPTS):
            decisions = reconciler.decide([Change(source=self._source, key=key)], self._writer.keep)
            if decisions.dead:
                return decisions.dead[0]
            try:
                for part in chunks(decisions.writes):
                    self._writer.write(part)
            except WritesRejected as rejected:
                cause = str(rejected)
                if rejected.invalid:
                    break
            except ServiceError as error:
                if error.code != "ValidationException":
                    raise
                cause = str(error)
                break
            else:
                return None
        return DeadLetter(self._source, key, cause[:_LONGEST_CAUSE])

    def _bury(self, letters: list[DeadLetter]) -> None:
        if letters:
            name = self._direction.migration
            self._control.run(dead_letters.bury(self._control, name, self._direction.name, letters))
