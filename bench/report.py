"""The figures as text for the screen and as JSON for the record. Measures and judges nothing."""

from __future__ import annotations

import json
import os
import platform
import re
import sqlite3
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.bounds import bounded_by
from bench.commits import RAW
from bench.limits import Figures, Verdict, is_ours, rates, ratios

BAR = 40
#: How much longer the same work takes on a Python that was built without optimisations, as measured.
UNOPTIMISED_COST = "1.12 to 1.23"
#: The files that Linux has loaded into this process.
MAPS = Path("/proc/self/maps")


def bar(value: float, largest: float, width: int = BAR) -> str:
    """Return a bar of a chart made of characters; anything above zero shows.

    >>> bar(5, 10, width=8), bar(0.001, 10, width=8), bar(0, 10, width=8)
    ('████', '▏', '')
    """
    if not value or not largest:
        return ""
    eighths = max(1, round(value / largest * width * 8))
    return "█" * (eighths // 8) + " ▏▎▍▌▋▊▉"[eighths % 8].strip()


def shown(rate: float) -> str:
    """Return a rate as people read it.

    >>> shown(12345.6), shown(42.4), shown(3.14)
    ('12,346', '42', '3.1')
    """
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.1f}"


def times_table(figures: Mapping[str, Mapping[str, float]], unit: str) -> Iterator[str]:
    """Yield a table of times: an operation a line, a contender a column."""
    names = list(next(iter(figures.values())))
    width = max(12, *(len(name) + 2 for name in names))
    yield f"  {unit:<30}" + "".join(f"{name:>{width}}" for name in names)
    for operation, times in figures.items():
        yield f"  {operation:<30}" + "".join(f"{times[name]:>{width},.1f}" for name in names)


def patterns_table(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a table of patterns: units measured and predicted, time and how many plain writes it equals."""
    yield f"  {'':<28}{'RCU':>6}{'WCU':>6}{'as said':>12}{'µs':>9}{'plain µs':>10}{'ratio':>8}"
    for title, each in figures.items():
        said = "/".join(f"{units:g}" for units in each["predicted"])
        ratio = each["pattern"] / each["plain"]
        yield (
            f"  {title:<28}{each['rcu']:>6g}{each['wcu']:>6g}{said:>12}"
            f"{each['pattern']:>9.1f}{each['plain']:>10.1f}{ratio:>7.2f}x"
        )
        yield f"    {each['units']}"


def wire_chart(figures: Figures, names: Sequence[str]) -> Iterator[str]:
    """Yield a bar chart of requests a second: an operation a block, a contender a line."""
    for operation, by_name in figures.items():
        valid = rates(by_name)
        times = ratios(by_name)
        yield f"  {operation}"
        for name in names:
            if name in valid:
                said = f"{times[name]:.2f}x" if name in times else ""
                drawn = bar(valid[name], max(valid.values()))
                yield f"    {name:<20}{shown(valid[name]):>10}/s {said:>9}  {drawn}"
            else:
                yield f"    {name:<20}{cell(by_name.get(name)):>12}"


def wire_ratios(figures: Figures, names: Sequence[str]) -> Iterator[str]:
    """Yield a table: how many times each peer's requests a second ours are."""
    peers = [name for name in names if not is_ours(name)]
    width = max([9, *(len(name) + 2 for name in peers)])
    yield f"  {'times a peer':<26}" + "".join(f"{name:>{width}}" for name in peers)
    for operation, by_name in figures.items():
        times = ratios(by_name)
        shown = [f"{times[name]:.2f}x" if name in times else cell(by_name.get(name)) for name in peers]
        yield f"  {operation:<26}" + "".join(f"{each:>{width}}" for each in shown)


def cell(figure: Mapping[str, Any] | None) -> str:
    """Return what stands where there is no rate.

    >>> cell(None), cell({"none": "it has no such operation"}), cell({"void": "3 of 9 replies were errors"})
    ('missing', 'none', 'void')
    """
    if figure is None:
        return "missing"
    return next((reason for reason in ("void", "wrong", "none") if reason in figure), "-")


def faults(figures: Figures) -> Iterator[str]:
    """Yield why figures are void, and which answers are wrong."""
    for operation, by_name in figures.items():
        for name, figure in by_name.items():
            for reason in ("void", "wrong"):
                if reason in figure:
                    yield f"  {reason}: {name}, {operation}: {figure[reason]}"


def commits_table(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield commits a second beside raw SQLite, and how long callers wait."""
    yield f"  {'':<26}{'commits/s':>10}{'ratio':>8}{'p50':>10}{'p99':>10}{'worst':>10}"
    largest = max(figure["rate"] for figure in figures.values())
    for name, figure in figures.items():
        waits = "".join(f"{figure[wait]:>7.2f} ms" for wait in ("p50_ms", "p99_ms", "worst_ms"))
        ratio = figure["rate"] / figures[RAW]["rate"]
        drawn = bar(figure["rate"], largest, BAR // 2)
        yield f"  {name:<26}{figure['rate']:>10,.0f}{ratio:>7.2f}x{waits}  {drawn}"


def start_table(figures: Mapping[str, Mapping[str, float]], missing: Mapping[str, str]) -> Iterator[str]:
    """Yield the seconds to the first answer and the idle memory of every contender."""
    yield f"  {'':<20}{'first answer':>14}{'idle memory':>14}"
    slowest = max((figure["first_answer_seconds"] for figure in figures.values()), default=0)
    for name, figure in figures.items():
        seconds, megabytes = figure["first_answer_seconds"], figure["idle_megabytes"]
        yield f"  {name:<20}{seconds:>12.2f} s{megabytes:>11.0f} MB  {bar(seconds, slowest, BAR // 2)}"
    for name, reason in missing.items():
        yield f"  {name:<20}missing: {reason}"


def in_process_table(figures: Mapping[str, Mapping[str, float]]) -> Iterator[str]:
    """Yield the microseconds of a call beside raw SQLite."""
    yield f"  {'operation':<14}{'raw SQLite':>12}{'engine':>12}{'ratio':>8}"
    for name, times in figures.items():
        ratio = times["engine"] / times["raw"]
        drawn = bar(ratio, 8, BAR)
        yield f"  {name:<14}{times['raw']:>9.1f} µs{times['engine']:>9.1f} µs{ratio:>7.2f}x  {drawn}"


def sizes_table(figures: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the CPU time of each request by the number of items, and the size of the file."""
    first = next(iter(figures.values()))
    yield f"  {'µs of CPU a request':<22}" + "".join(f"{int(size):>14,}" for size in figures)
    for name in first["requests"]:
        yield f"  {name:<22}" + "".join(f"{each['requests'][name]:>14,.1f}" for each in figures.values())
    yield f"  {'MB of the file':<22}" + "".join(
        f"{each['file_megabytes']:>14,.0f}" for each in figures.values()
    )


def growth_table(small: Mapping[str, Any], large: Mapping[str, Any]) -> Iterator[str]:
    """Yield how a call grows with the table."""
    yield f"  {'growth':<14}{'raw SQLite':>12}{'engine':>12}"
    for name in small:
        raw = large[name]["raw"] / small[name]["raw"]
        ours = large[name]["engine"] / small[name]["engine"]
        yield f"  {name:<14}{raw:>11.2f}x{ours:>11.2f}x"


def verdict_table(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield each limit and whether it is reached."""
    rows = list(verdicts)
    what = max((len(each.what) for each in rows), default=0) + 2
    limit = max((len(each.limit) for each in rows), default=0) + 2
    for each in rows:
        note = f"  ({each.note})" if each.note else ""
        yield f"  {each.outcome:<13}{each.what:<{what}}{each.limit:<{limit}}{each.figure}{note}"


def bounds(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Yield what bounds the figures that miss their limit, and which of them lack a text."""
    for each in verdicts:
        if each.outcome == "not reached":
            text = (
                bounded_by(each.what) or "NOT KNOWN: find out what bounds it, and say so in bench/bounds.py"
            )
            yield f"  {each.what}: {text}"


def load_average() -> float | None:
    """Return how many processes wanted a processor in the last minute, where the system says so."""
    return round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None


def warnings() -> Iterator[str]:
    """Yield what speaks against measuring now."""
    load, cores = load_average() or 0, os.cpu_count() or 1
    if load > cores / 4:
        yield f"the machine is busy (load {load} on {cores} cores): figures will be rough"
    build = python_build()
    if build["optimised"] is False:
        yield (
            f"this Python is not an optimised build: the same work takes {UNOPTIMISED_COST} times as long as"
            " after configure --enable-optimizations --with-lto"
        )


def python_build() -> dict[str, Any]:
    """Return how this Python was built: version, compiler, and whether with PGO and LTO.

    An optimised build has PGO at least. `optimised` is None where the build does not say it, as on Windows
    and on Debian.
    """
    variables = sysconfig.get_config_vars()
    arguments = variables.get("CONFIG_ARGS")
    flags = " ".join(str(variables.get(name, "")) for name in ("PY_CFLAGS", "PY_CORE_CFLAGS", "PY_LDFLAGS"))
    debug = bool(variables.get("Py_DEBUG"))
    pgo = lto = None
    if isinstance(arguments, str) and _describes_this_interpreter(variables):
        pgo = "--enable-optimizations" in arguments or "-fprofile-use" in flags
        lto = "--with-lto" in arguments or "-flto" in flags
    return {
        "implementation": platform.python_implementation(),
        "version": platform.python_version(),
        "compiler": platform.python_compiler(),
        "flags": " ".join(dict.fromkeys(re.findall(r"(?<!\S)-(?:O\w+|flto\S*|DNDEBUG|g)(?!\S)", flags))),
        "pgo": pgo,
        "lto": lto,
        "debug": debug,
        "gil": getattr(sys, "_is_gil_enabled", lambda: True)(),
        "optimised": None if pgo is None else pgo and not debug,
    }


def _describes_this_interpreter(variables: Mapping[str, Any]) -> bool:
    """Say whether sysconfig is about this interpreter: Debian's describes libpython, and does not use it."""
    if not variables.get("Py_ENABLE_SHARED") or not MAPS.exists():
        return True
    return "libpython" in MAPS.read_text(encoding="utf-8", errors="replace")


def build_line() -> str:
    """Return the build of this Python in one line."""
    build = python_build()
    said = {True: "with", False: "without", None: "unknown:"}
    optimisation = ", ".join(f"{said[build[name]]} {name.upper()}" for name in ("pgo", "lto"))
    if build["pgo"] is None and build["lto"] is None:
        optimisation = "does not say whether with PGO and LTO"
    debug = ", debug build" if build["debug"] else ""
    return (
        f"{build['implementation']} {build['version']}, {build['compiler']}, {optimisation}{debug}"
        f" ({build['flags'] or 'flags unknown'}); JSON by {json_library()}"
    )


def json_library() -> str:
    """Return the name of the library that reads and writes JSON."""
    from solotable._protocol import json_codec

    return "json" if json_codec.loads is json_codec.plain_loads else "orjson"


def record(
    part: str, figures: Mapping[str, Any], verdicts: Iterable[Verdict], **facts: Any
) -> dict[str, Any]:
    """Return what is kept of one part: the figures, the verdicts, and what they were taken on."""
    return {
        "part": part,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cores": os.cpu_count(),
            "load_average": load_average(),
            "system": platform.system(),
            "processor": platform.machine(),
            "python": platform.python_version(),
            "python_build": python_build(),
            "sqlite": sqlite3.sqlite_version,
            "json": json_library(),
        },
        **facts,
        "figures": figures,
        "limits": [asdict(verdict) for verdict in verdicts],
    }


def save(folder: Path, name: str, stored: Mapping[str, Any]) -> Path:
    """Write a record as JSON and return where it is."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    path.write_text(json.dumps(stored, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    return path
