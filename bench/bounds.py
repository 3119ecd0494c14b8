"""What bounds each figure, for those that miss their limit: data for the report and the performance page.

A text names a cause that was measured or that a decision record explains; it has no figures that the next
run would change. Limits of correctness (nothing lost, units as predicted) have no text: to miss one is a bug.
"""

from __future__ import annotations

import re
from typing import Final

_INTERPRETER = (
    "CPython: most of the server's CPU is the interpreter, the rest SQLite, the kernel and other C code "
    "([where the time goes](#where-the-time-goes)). "
)
_ENGINE_INCLUDED = (
    "Ours includes the work of the engine, which the figure of the peers leaves out because their server "
    "does it in another process. "
)
_OLD_LAYOUT = (
    "Some queries of the old layout read one document where ours reads many items, and the client decodes "
    "each ([what surveys cost](../guide/surveys-cost.md)). "
)

#: The start of a figure's name (a regular expression), and what bounds it. The first that matches counts.
BOUNDS: Final[tuple[tuple[str, str], ...]] = (
    (
        r"GetItem between writes",
        "A commit invalidates the page cache of every other SQLite connection. The first read after a commit "
        "uses the writer's connection, unless another thread has it; a commit by another process "
        "invalidates that cache too. On disk there is a second cause: while half of the connections read, "
        "fewer writes share a commit. The figure counts what that costs the writes as a cost of the reads.",
    ),
    (
        r"(GetItem|PutItem|conditional UpdateItem), (memory|disk)",
        _INTERPRETER + "A request of one item is short, so parsing it, checking it and writing the reply "
        "weigh most. Dynoxide is compiled ahead of time, dynalite just in time.",
    ),
    (
        r".*, two workers, ",
        "The cores. A write passes through a worker and the writer, and with the load these are three busy "
        "processes on two cores. The writer spends no more CPU on a write than one process does "
        "([ADR 61](../adr/0061-workers-read-and-one-process-writes.md)).",
    ),
    (
        r"client over HTTP, GetItem, async",
        "asyncio. For each reply, its `sock_recv` tries to read, registers the socket with epoll, waits, "
        "reads, and removes the socket. Each request takes two turns of the event loop. The figure is in "
        "microseconds, so it depends on the processor: runs on two days gave 86 to 146.",
    ),
    (
        r"GSI query of \d+, (memory|disk)",
        "SQLite and CPython. Each of the 50 items is found by its own search in the table, on another page: "
        "in memory, SQLite and the copies of items take about half of the server's CPU, more than CPython.",
    ),
    (
        r"(Query|Scan|BatchGetItem|BatchWriteItem|TransactWriteItems) of \d+, (memory|disk)",
        _INTERPRETER.strip(),
    ),
    (
        r"GSI query of 50, from",
        "SQLite: an index entry has the number of its item's row, so each of the 50 items is found by its "
        "own search in the table, on another page. In a table that is larger than SQLite's page cache, these "
        "pages come from the operating system.",
    ),
    (
        r".*, from [\d,]+ to [\d,]+ small items",
        "SQLite: a larger table has deeper trees, and its pages no longer fit into SQLite's page cache, so "
        "they are read from the operating system.",
    ),
    (
        r".*, growth to",
        "SQLite: the table no longer fits into its page cache, so pages are read from the operating system. "
        "Raw SQLite grows as well.",
    ),
    (
        r".*, [\d,]+ items$",
        "CPython: DynamoDB's checks, expressions and capacity run in the interpreter, raw SQLite has none "
        "of them.",
    ),
    (
        r"durable commits, 1 ",
        "CPython between two fsyncs: raw SQLite does nothing but write and fsync. Where an fsync takes a "
        "fraction of a millisecond, as on the recorded machine, the checks and the encoding of a put show; "
        "on a slower disk the ratio comes closer to 1.",
    ),
    (
        r"durable commits, \d+ ",
        "CPython: waiting writes share an fsync ([ADR 7](../adr/0007-group-commit.md)), which gains only "
        "what an fsync costs. Where that is a fraction of a millisecond, the limit leaves a write less time "
        "than PutItem takes without any fsync, and one interpreter runs one PutItem at a time.",
    ),
    (
        r"pages, wire server",
        "A page is two GetItem requests, one after the other, to the server in another process. The app, "
        "the server and the load share two cores; the constant needs neither the requests nor the server.",
    ),
    (r"pages, embedded engine", "CPython: two GetItem requests and the rendering of the page."),
    (
        r"acquires, .*, sync",
        "CPython: an acquire is one conditional update, and one caller uses a whole core for it ([ADR "
        "40](../adr/0040-compile-updates-that-repeat.md)). zae-limiter has two processes, and gets faster "
        "with our server, which answers it.",
    ),
    (
        r"acquires, .*, async",
        "CPython: 16 callers on one event loop share one interpreter, which uses a whole core. On a file, "
        "each acquire also passes through a thread. zae-limiter has two processes, and gets faster with our "
        "server, which answers it.",
    ),
    (
        r"CPU, .*",
        "The kernel's share of a request over HTTP, which is the same for all limiters ([ADR "
        "17](../adr/0017-own-transport.md)).",
    ),
    (
        r"migration, diff",
        "About two thirds of the time are the rule, Pydantic and the encoding of the entity, which the "
        "comparison repeats on purpose ([migrations in "
        "production](../guide/migration-production.md#figures)). A rule with `raw=True` takes half of that "
        "time.",
    ),
    (
        r"migration, copy",
        "CPython: the rule, Pydantic, the encoding of the entity, and a conditional write with a marker for "
        "each output.",
    ),
    (
        r"migration, forecast",
        "The estimate follows the recent pace. It cannot foresee a load that changes after the first tenth "
        "([migrations in production](../guide/migration-production.md#figures)).",
    ),
    (
        r"migration, application's p99",
        "Copy and application share the writer of one file and one interpreter; a p99 of one millisecond "
        "moves with every other program on the machine.",
    ),
    (
        r"store, page",
        "Pydantic and CPython: each of the 50 items becomes a checked entity, field by field.",
    ),
    (
        r"store, put",
        "CPython: the store encodes the entity, and its condition protects items that other programs wrote "
        "([ADR 27](../adr/0027-never-destroy-what-is-not-understood.md)). So the engine also decodes the "
        "stored item, which a put without a condition leaves as it is.",
    ),
    (r"store, ", "CPython: the store encodes the key and checks the entity around the engine's request."),
    (
        r"in process, put",
        _ENGINE_INCLUDED + "The engine's own put takes most of the time that the limit allows.",
    ),
    (
        r"in process, page of 50",
        _ENGINE_INCLUDED + "The engine's own query of 50 takes more than the whole time that the limit "
        "allows.",
    ),
    (r"in process, ", _ENGINE_INCLUDED),
    (
        r"client CPU, ",
        "The kernel: sending and receiving take most of what is left of a request ([ADR "
        "17](../adr/0017-own-transport.md)).",
    ),
    (
        r"complete survey",
        "Pydantic and CPython: the service makes an entity of each of the 580 items and builds their tree "
        "after the one Query.",
    ),
    (
        r"queries, small survey, embedded engine",
        _OLD_LAYOUT + "In process a request costs little, so what is decoded decides.",
    ),
    (r"queries, .* survey", _OLD_LAYOUT + "Lists and both synchronisation queries are faster."),
    (
        r"writes, small survey",
        "Creating a part, completing a section and a batch are transactions, which are slow on DynamoDB "
        "Local; a small document is quickly written as a whole ([what surveys "
        "cost](../guide/surveys-cost.md)).",
    ),
    (
        r".*, time$",
        "CPython: the derived items are built and checked, and written in one transaction with their cause.",
    ),
    (
        r"(purge|backfill)$",
        "CPython: each item is decoded, checked and written with its own condition.",
    ),
    (
        r"(PutItem|store\.put), replaces",
        "SQLite and CPython: each write also appends the replaced version to the log of changes ([ADR "
        "48](../adr/0048-undo-from-now-and-no-snapshots.md)).",
    ),
    (
        r"first answer after the start",
        "CPython: starting the interpreter and importing the modules of the server.",
    ),
    (r"idle memory", "CPython: the interpreter and the imported modules."),
    (
        r"import solotable|from solotable import|100 entities",
        "CPython: importing modules and creating classes ([ADR "
        "26](../adr/0026-compile-records-on-first-use.md)).",
    ),
    (
        r"search, [\d,]+ documents",
        "SQLite's FTS5: a common word matches many documents, and facets count all of them ([search in the "
        "portal](../guide/portal-search.md)).",
    ),
    (r"search, behind writes", "The indexer reads the stream of changes at an interval."),
    (
        r"sync, (p99|pushes)",
        "Each push is one transaction on the head of its space, and CPython checks and encodes all of its "
        "items ([ADR 54](../adr/0054-a-version-log-for-offline-clients.md)).",
    ),
    (
        r"admitted in a crowd",
        "Processes decide by what they remember of a bucket ([ADR "
        "39](../adr/0039-conserve-tokens-in-shards.md)).",
    ),
)


def bounded_by(what: str) -> str:
    """Return what bounds the figure with this name, or an empty text.

    >>> bounded_by("idle memory")
    'CPython: the interpreter and the imported modules.'
    """
    return next((text.strip() for start, text in BOUNDS if re.match(start, what)), "")
