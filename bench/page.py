"""The recorded figures as Markdown, for the generated sections of docs/explanation/performance.md."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from bench.bounds import bounded_by

RESULTS = Path(__file__).parent / "results"
#: The order of the parts on the page; a part that is not listed comes after them.
ORDER = (
    "wire",
    "workers",
    "in-process",
    "growth",
    "commits",
    "start",
    "imports",
    "models",
    "patterns",
    "backups",
)
OUTCOMES = {"reached": "yes", "not reached": "**no**", "not judged": "not known"}


def records(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return the recorded results by part, in the order of the page."""
    found = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")}
    places = {name: place for place, name in enumerate(ORDER)}
    return {name: found[name] for name in sorted(found, key=lambda each: (places.get(each, 99), each))}


def unexplained(found: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a message for each figure that misses its limit without a text about what bounds it."""
    return [
        f"bench/results/{part}.json: {limit['what']!r} misses its limit ({limit['limit']}: "
        f"{limit['figure']}). Find out what bounds it, and say so in bench/bounds.py."
        for part, stored in found.items()
        for limit in stored["limits"]
        if limit["outcome"] == "not reached" and not bounded_by(limit["what"])
    ]


def missed() -> str:
    """List the figures that miss their limit, with what bounds them: those with one cause together."""
    found = records()
    limits = [limit for stored in found.values() for limit in stored["limits"]]
    counts = {outcome: sum(limit["outcome"] == outcome for limit in limits) for outcome in OUTCOMES}
    lines = [
        f"{len(limits)} figures have a limit: {counts['reached']} reach it, {counts['not reached']} miss it, "
        f"and for {counts['not judged']} it is not known, because something to compare with is missing.",
        "",
    ]
    causes: dict[str, list[str]] = {}
    for limit in limits:
        if limit["outcome"] == "not reached":
            text = bounded_by(limit["what"]) or "Not known yet."
            causes.setdefault(text, []).append(
                f"{limit['what']}: {limit['figure']} ({_named(limit['limit'])})"
            )
    lines += table(
        ("Figures", "What bounds them"),
        (("<br>".join(map(cell, each)), text) for text, each in causes.items()),
    )
    return "\n".join(lines)


def _named(limit: str) -> str:
    """Return a limit with its kind.

    >>> _named("2x the fastest peer"), _named("claim: +50%")
    ('limit: 2x the fastest peer', 'claim: +50%')
    """
    return limit if limit.startswith("claim: ") else f"limit: {limit}"


def figures() -> str:
    """List every figure that has a limit, by part, with the machine that it was measured on."""
    lines: list[str] = []
    for name, stored in records().items():
        if stored["limits"]:
            title = stored["part"][0].upper() + stored["part"][1:]
            rows = [
                (cell(each["what"]), cell(each["limit"]), cell(each["figure"]),
                 OUTCOMES[each["outcome"]] + (f" ({cell(each['note'])})" if each["note"] else ""))
                for each in stored["limits"]
            ]  # fmt: skip
            lines += [f"### {title}", "", f"`python -m bench {name}`. {taken(stored)}", ""]
            lines += [*table(("Figure", "Limit", "Measured", "Reached"), rows), ""]
    return "\n".join(lines[:-1])


def taken(stored: Mapping[str, Any]) -> str:
    """Return when and on what a part was measured, in a sentence."""
    machine = stored["machine"]
    build = machine.get("python_build")
    if build is None:
        optimised = "its build was not recorded"
    elif build["pgo"] is None and build["lto"] is None:
        optimised = "its build does not say whether with PGO and LTO"
    else:
        with_ = {True: "with", False: "without", None: "unknown:"}
        optimised = ", ".join(f"{with_[build[name]]} {name.upper()}" for name in ("pgo", "lto"))
    quick = " A quick look: too few rounds for a figure." if stored.get("quick") else ""
    return (
        f"Measured on {stored['at'][:10]}: {machine['cores']} cores, load {machine['load_average']}, Python "
        f"{machine['python']} ({optimised}), SQLite {machine['sqlite']}.{quick}"
    )


def growth() -> str:
    """Show the CPU of a request by the number of items, and how it grows from the smallest table on."""
    stored = records().get("growth")
    if stored is None:
        return "Not recorded yet: run `python -m bench growth`."
    sizes = stored["figures"]
    first, last = (sizes[choose(sizes, key=int)] for choose in (min, max))
    rows = [
        (name, *(f"{each['requests'][name]:.0f} µs" for each in sizes.values()),
         f"{last['requests'][name] / first['requests'][name]:.2f}x")
        for name in first["requests"]
    ]  # fmt: skip
    rows.append(("file", *(f"{each['file_megabytes']:,.0f} MB" for each in sizes.values()), ""))
    head = ("CPU of a request", *(f"{int(size):,} items" for size in sizes), "growth")
    loaded = f" Loaded: {stored['loaded']}." if "loaded" in stored else ""
    return "\n".join([taken(stored) + loaded, "", *table(head, rows)])


def floors() -> str:
    """Show where the CPU of the server goes, by operation, and how far it is above its floor."""
    stored = records().get("floors")
    if stored is None:
        return "Not recorded yet: run `python -m bench floors`."
    names = list(next(iter(stored["figures"].values())))
    rows = [
        (operation, *(f"{shares[name]:.0f} %" for name in names),
         f"{100 / (shares['SQLite'] + shares['kernel']):.1f}x")
        for operation, shares in stored["figures"].items()
    ]  # fmt: skip
    head = ("Share of the CPU", *names, "total / (SQLite + kernel)")
    return "\n".join([taken(stored), "", *table(head, rows)])


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    """Yield a table of cells that are Markdown already."""
    titles = list(head)
    yield f"| {' | '.join(titles)} |"
    yield "|" + "---|" * len(titles)
    for row in rows:
        yield f"| {' | '.join(row)} |"


def cell(text: str) -> str:
    """Escape a text for a table.

    >>> cell("a | b, 2 < 3")
    'a \\\\| b, 2 \\\\< 3'
    """
    return "".join(f"\\{each}" if each in "|<>*_`[]\\" else each for each in text)
