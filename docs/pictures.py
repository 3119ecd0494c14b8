"""Draw the pictures of the documentation: `python docs/pictures.py` writes docs/pictures/*.svg.

A test compares the files with the output of this program.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from xml.sax.saxutils import escape

from solotable._entities.schema.diagram import EntityRow, KeySpace, PartitionBox
from solotable._entities.schema.svg_text import framed, svg_text

PICTURES = Path(__file__).resolve().parent / "pictures"
LINE = 18


@dataclass(frozen=True, slots=True)
class Box:
    """A box with a title and lines below it."""

    x: float
    y: float
    width: float
    title: str
    lines: tuple[str, ...] = ()

    @property
    def height(self) -> float:
        return 30 + LINE * len(self.lines) + (8 if self.lines else 0)

    def draw(self) -> list[str]:
        elements = [
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="6"/>',
            text(self.title, self.x + 12, self.y + 20, "accent"),
        ]
        for number, line in enumerate(self.lines):
            elements.append(text(line, self.x + 12, self.y + 44 + LINE * number))
        return elements


def text(words: str, x: float, y: float, kind: str = "", *, middle: bool = False) -> str:
    given = (f' class="{kind}"' if kind else "") + (' text-anchor="middle"' if middle else "")
    return f'<text x="{x}" y="{y}"{given}>{escape(words)}</text>'


def arrow(points: Sequence[tuple[float, float]], label: str = "", *, above: float = 6) -> list[str]:
    """Return a line through points with a head at its end, and a label above its first part."""
    path = " L".join(f"{x} {y}" for x, y in points)
    (x1, y1), (x2, y2) = points[-2:]
    length = max(abs(x2 - x1), abs(y2 - y1)) or 1
    dx, dy = (x2 - x1) / length * 7, (y2 - y1) / length * 7
    head = f"M{x2 - dx - dy} {y2 - dy + dx} L{x2} {y2} L{x2 - dx + dy} {y2 - dy - dx}"
    elements = [f'<path class="arrow" d="M{path} {head}"/>']
    if label:
        (x1, y1), (x2, y2) = points[:2]
        elements.append(text(label, (x1 + x2) / 2, (y1 + y2) / 2 - above, "soft", middle=True))
    return elements


def key_layout() -> str:
    """The items of the tutorial's help desk, as DynamoDB keeps them."""

    def box(key: str, *items: tuple[str, str]) -> PartitionBox:
        rows = [EntityRow(entity=what, key="", sort=sort, patterns=(), sparse=False) for sort, what in items]
        return PartitionBox(template=key, rows=tuple(rows))

    table = KeySpace(
        name="HelpDesk",
        attributes="PK, then SK in order",
        is_index=False,
        partitions=(
            box(
                "TENANT#acme",
                ("TICKET#t1", "Ticket: No heating, ana, due 1 December"),
                ("TICKET#t1#COMMENT#c1", "Comment: The radiator is cold."),
                ("TICKET#t1#COMMENT#c2", "Comment: I am on my way."),
                ("TICKET#t2", "Ticket: Lost key"),
            ),
            box("TENANT#zeta", ("TICKET#t9", "Ticket: Noise")),
        ),
    )
    index = KeySpace(
        name="GSI1",
        attributes="GSI1PK, then GSI1SK in order",
        is_index=True,
        partitions=(box("TENANT#acme#AGENT#ana", ("2026-12-01#t1", "Ticket: No heating")),),
    )
    return svg_text([[table, index]], title="The items of the help desk by partition key and sort key")


def transaction() -> str:
    """A put of an entity with traits: one transaction of the entity and its derived writes."""
    call = Box(0, 70, 190, "Your call", ("db.create(page)",))
    frame = '<rect x="290" y="0" width="430" height="222" rx="10" stroke-dasharray="5 4"/>'
    actions = [
        Box(306, 34, 190, "The entity", ("PAGE#p1, version 1",)),
        Box(512, 34, 192, "Unique()", ("lock of the slug",)),
        Box(306, 96, 190, "History", ("snapshot of version 1",)),
        Box(512, 96, 192, "Counted", ("page_count + 1",)),
        Box(306, 158, 190, "Outbox", ("event: Page created",)),
    ]
    results = [
        Box(800, 34, 200, "All of them", ("the entity is returned",)),
        Box(800, 124, 200, "None of them", ("NotUnique, NotFound,", "VersionConflict ...")),
    ]
    elements = [
        frame,
        text("TransactWriteItems", 306, 22, "title"),
        *(element for box in (call, *actions, *results) for element in box.draw()),
        *arrow([(190, 98), (290, 98)], "one request"),
        *arrow([(720, 62), (800, 62)]),
        *arrow([(720, 161), (800, 161)]),
    ]
    return framed(
        elements, width=1000, height=222, title="An entity and its derived writes in one transaction"
    )


def outbox() -> str:
    """An event from the write to its sinks."""
    boxes = [
        Box(0, 40, 200, "Your call", ("db.acting(ann)", "  .create(page)")),
        Box(290, 40, 200, "One transaction", ("the page", "the event")),
        Box(580, 40, 200, "solotable deliver", ("reads the change feed", "saves a checkpoint")),
        Box(870, 0, 200, "AuditSink", ("the audit trail",)),
        Box(870, 70, 200, "EventBridgeSink", ("entries",)),
        Box(870, 140, 200, "Your function", ("an e-mail, a webhook",)),
        Box(580, 150, 200, "Dead letter", ("after 10 attempts",)),
    ]
    elements = [
        *(element for box in boxes for element in box.draw()),
        *arrow([(200, 77), (290, 77)], "writes"),
        *arrow([(490, 77), (580, 77)], "stream"),
        *arrow([(780, 62), (870, 28)]),
        *arrow([(780, 84), (870, 98)]),
        *arrow([(780, 104), (870, 168)]),
        *arrow([(680, 114), (680, 150)]),
    ]
    return framed(
        elements, width=1070, height=206, title="An event is written with its cause and delivered later"
    )


def sync() -> str:
    """A change of an offline client: pushed, committed with a log record, and pulled by other clients."""
    boxes = [
        Box(0, 46, 210, "Client of Ann", ("changes its local copy", "queues the mutation")),
        Box(330, 46, 200, "push", ("the mutator runs", "with the verified user")),
        Box(
            650,
            0,
            230,
            "One transaction",
            ("the item", "a log record, version 8", "the head: version 8", "Ann's last mutation id"),
        ),
        Box(330, 178, 200, "pull", ("log records after", "version 7")),
        Box(0, 178, 210, "Client of Bob", ("applies the patch", "keeps version 8 as cookie")),
    ]
    elements = [
        *(element for box in boxes for element in box.draw()),
        *arrow([(210, 83), (330, 83)], "when online"),
        *arrow([(530, 83), (650, 83)], "commits"),
        *arrow([(765, 110), (765, 215), (530, 215)]),
        text("reads the log", 660, 209, "soft", middle=True),
        *arrow([(330, 228), (210, 228)], "patch"),
        *arrow([(210, 203), (330, 203)], "cookie: 7"),
        *arrow([(400, 120), (400, 152), (105, 152), (105, 178)]),
        text("poke: pull now", 252, 146, "soft", middle=True),
    ]
    return framed(
        elements, width=880, height=252, title="A change of one client reaches the table, then another client"
    )


#: The states of a migration that a run passes, with the command or cause that leads to the next one.
MIGRATION = (
    ("Created", "start"),
    ("Copying", "copied"),
    ("CatchingUp", "lag small"),
    ("Running", "diff"),
    ("Verified", "switch-reads"),
    ("ReadsSwitched", "switch-writes"),
    ("SwitchingWrites", "drained"),
    ("WritesSwitched", "complete"),
    ("Completed", ""),
)
#: The ways back: from, to, command.
MIGRATION_BACK = (
    ("ReadsSwitched", "Verified", "switch-reads --percent 0"),
    ("WritesSwitched", "SwitchingWrites", "reverse"),
)


def migration() -> str:
    """The states of a migration in two rows, with the commands between them."""
    places: dict[str, Box] = {}
    for number, (state, _) in enumerate(MIGRATION):
        row, column = divmod(number, 5)
        places[state] = Box(column * 248, row * 150 + 16, 142, state)
    elements = [element for box in places.values() for element in box.draw()]
    for (state, command), (following, _) in pairwise(MIGRATION):
        here, there = places[state], places[following]
        if here.y == there.y:
            elements += arrow([(here.x + here.width, here.y + 11), (there.x, there.y + 11)], command)
        else:
            middle = here.y + 75
            points = [(here.x + 69, here.y + 30), (here.x + 69, middle), (69, middle), (69, there.y)]
            elements += arrow(points)
            elements.append(text(command, (here.x + 138) / 2, middle - 6, "soft", middle=True))
    for state, following, command in MIGRATION_BACK:
        here, there = places[state], places[following]
        if here.y == there.y:
            elements += arrow(
                [(here.x, here.y + 22), (there.x + there.width, there.y + 22)], command, above=-16
            )
        else:
            points = [
                (here.x + 100, here.y),
                (here.x + 100, here.y - 50),
                (there.x + 100, here.y - 50),
                (there.x + 100, there.y + 30),
            ]
            elements += arrow(points)
            elements.append(text(command, (here.x + there.x) / 2 + 100, here.y - 34, "soft", middle=True))
    elements.append(
        text(
            "Until the writes switch, cancel ends the migration: the old tables were only read. "
            "Stopped and Error resume with start.",
            0,
            242,
            "soft",
        )
    )
    return framed(elements, width=4 * 248 + 142, height=248, title="The states of a migration")


DRAWN: dict[str, Callable[[], str]] = {
    "key-layout": key_layout,
    "migration": migration,
    "outbox": outbox,
    "sync": sync,
    "transaction": transaction,
}


def files() -> Iterable[tuple[Path, str]]:
    """Yield each picture and its content."""
    for name, draw in DRAWN.items():
        yield PICTURES / f"{name}.svg", draw() + "\n"


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for path, content in files():
        path.write_text(content, encoding="utf-8")
    sys.stdout.write(f"{len(DRAWN)} pictures in {PICTURES.name}/\n")
