"""The portal's search over many documents in process, and how far its index is behind writes."""

from __future__ import annotations

import itertools
import random
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from solotable import connect
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.search.fts5 import Fts5Index
from solotable.systems.portal.search.indexer import Indexer
from solotable.systems.portal.search.port import IndexBatch
from solotable.systems.portal.search.records import Document, SearchQuery, Visibility
from solotable.systems.portal.tables import content_registry

DOCUMENTS = 100_000
QUICK_DOCUMENTS = 10_000
_VIEWER = Visibility(statuses=frozenset({"Approved", "Deprecated"}), owner="u1")
_SYLLABLES = [first + last for first in "bcdfgklmnprstvz" for last in ("a", "e", "i", "or")]
_WORDS = 20_000
#: The most common of them: four in five documents have the first.
_FREQUENT = 10
_POLL_SECONDS = 0.5


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return milliseconds of searches by kind, seconds of a rebuild, and seconds behind writes."""
    count = QUICK_DOCUMENTS if quick else DOCUMENTS
    chance = random.Random(17)
    index = Fts5Index(folder / "portal.search")
    listed = list(_documents(count, chance))
    begin = time.perf_counter()
    index.replace(listed, previous=None, checkpoint="corpus")
    rebuild = time.perf_counter() - begin
    begin = time.perf_counter()
    index.prepare()
    prepare = time.perf_counter() - begin
    searches = _searches(index, listed, chance, times=20 if quick else 200)
    index.close()
    return {
        "documents": count,
        "rebuild_seconds": rebuild,
        "prepare_seconds": prepare,
        "searches": searches,
        "behind": _behind(folder, writes=100 if quick else 500),
    }


def _documents(count: int, chance: random.Random) -> Iterator[Document]:
    """Yield documents whose words are as unequal as those of a language."""
    words = sorted({"".join(chance.choices(_SYLLABLES, k=chance.randint(2, 5))) for _ in range(2 * _WORDS)})
    chance.shuffle(words)
    weights = list(itertools.accumulate(1 / (rank + 3) for rank in range(_WORDS)))
    now = datetime.now(UTC)

    def text(length: int) -> str:
        return " ".join(chance.choices(words[:_WORDS], cum_weights=weights, k=length))

    for number in range(count):
        yield Document(
            content_id=f"c{number:06d}",
            title=text(6),
            summary=text(40),
            status=chance.choices(["Draft", "Approved", "Deprecated", "Expired"], [2, 6, 1, 1])[0],
            owner=f"u{number % 500}",
            tags=tuple({f"tag{chance.randrange(200)}" for _ in range(3)}),
            suite=f"Suite {chance.randrange(8)}",
            concept=f"Concept {chance.randrange(30)}",
            audience=f"Role {chance.randrange(4)}",
            updated=now - timedelta(seconds=number),
            version=1,
        )


def _searches(
    index: Fts5Index, listed: list[Document], chance: random.Random, *, times: int
) -> dict[str, dict[str, float]]:
    """Search with words of documents, so that a common word is searched often.

    The index changes before each search of the most common words, so that it remembers no matches.
    """
    frequent = Counter(word for each in listed for word in each.title.split()).most_common(_FREQUENT)
    common = [word for word, _ in frequent]

    def words(count: int) -> str:
        return " ".join(chance.sample(chance.choice(listed).title.split(), count))

    def after_a_change(count: int) -> SearchQuery:
        index.write(IndexBatch(changes=[chance.choice(listed)], previous="corpus", checkpoint="corpus"))
        index.prepare()
        return SearchQuery(visible=_VIEWER, text=" ".join(chance.sample(common, count)))

    kinds: dict[str, Callable[[], SearchQuery]] = {
        "no text": lambda: SearchQuery(visible=_VIEWER),
        "a suite and a tag": lambda: SearchQuery(
            visible=_VIEWER, suite=(f"Suite {chance.randrange(8)}",), tags=(f"tag{chance.randrange(200)}",)
        ),
        "one word": lambda: SearchQuery(visible=_VIEWER, text=words(1)),
        "two words": lambda: SearchQuery(visible=_VIEWER, text=words(2)),
        "three words": lambda: SearchQuery(visible=_VIEWER, text=words(3)),
        "four letters": lambda: SearchQuery(visible=_VIEWER, text=words(1)[:4]),
        "a word in a suite": lambda: SearchQuery(
            visible=_VIEWER, text=words(1), suite=(f"Suite {chance.randrange(8)}",)
        ),
        "a most common word": lambda: after_a_change(1),
        "two most common words": lambda: after_a_change(2),
    }
    spent: dict[str, list[tuple[float, float]]] = {kind: [] for kind in kinds}
    for _ in range(times):
        for kind, query in kinds.items():
            asked = query()
            begin, cpu = time.perf_counter(), time.thread_time()
            index.search(asked, limit=20)
            spent[kind].append((time.perf_counter() - begin, time.thread_time() - cpu))
    spent["all"] = [each for times_of in spent.values() for each in times_of]
    return {kind: _quantiles(each) for kind, each in spent.items()}


def _quantiles(spent: list[tuple[float, float]]) -> dict[str, float]:
    wall = sorted(each for each, _ in spent)
    cpu = sorted(each for _, each in spent)
    return {
        "median": statistics.median(wall) * 1000,
        "p95": wall[int(len(wall) * 0.95)] * 1000,
        "p95_cpu": cpu[int(len(cpu) * 0.95)] * 1000,
        "max": wall[-1] * 1000,
    }


def _behind(folder: Path, *, writes: int) -> dict[str, float]:
    """Write content in one thread, index it in another, and wait until a search finds each of it."""
    url = f"sqlite:///{folder / 'portal.db'}"
    written: dict[str, float] = {}
    with connect(url, content_registry) as db:
        index = Fts5Index(folder / "behind.search")
        indexer = Indexer(db, index)
        indexer.run_once()
        writer = threading.Thread(target=_write, args=(url, writes, written))
        writer.start()
        lags: list[float] = []
        found = 0
        while found < writes:
            begin = time.perf_counter()
            indexer.run_once()
            while f"lag{found}" in written and _finds(index, f"lag{found}"):
                lags.append(time.perf_counter() - written[f"lag{found}"])
                found += 1
            time.sleep(max(0.0, _POLL_SECONDS - (time.perf_counter() - begin)))
        writer.join()
        index.close()
    return {
        "writes": writes,
        "median": statistics.median(lags),
        "p95": sorted(lags)[int(len(lags) * 0.95)],
        "max": max(lags),
    }


def _write(url: str, writes: int, written: dict[str, float]) -> None:
    with connect(url, content_registry) as db:
        for number in range(writes):
            db.create(Content(title=f"lag{number}", owner_user_id="ann", status="Approved"))
            written[f"lag{number}"] = time.perf_counter()
            time.sleep(0.02)


def _finds(index: Fts5Index, word: str) -> bool:
    # The last word is a prefix: lag1 also finds lag10.
    page = index.search(SearchQuery(visible=_VIEWER, text=word), limit=100)
    return any(hit.document.title == word for hit in page.hits)


def table(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"  {'milliseconds a search':<24}{'median':>9}{'p95':>9}{'p95 CPU':>9}{'max':>9}"
    for kind, each in figures["searches"].items():
        yield f"  {kind:<24}" + "".join(
            f"{each[name]:>9,.1f}" for name in ("median", "p95", "p95_cpu", "max")
        )
    yield (
        f"  a rebuild takes {figures['rebuild_seconds']:,.1f} s, "
        f"loading the facets {figures['prepare_seconds']:,.2f} s"
    )
    behind = figures["behind"]
    yield f"  behind {behind['writes']} writes: median {behind['median']:.2f} s, max {behind['max']:.2f} s"
