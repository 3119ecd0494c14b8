"""Our server with one process and with two workers: requests a second, and CPU of each process a request.

The load runs on the same machine. With two cores, it takes a part of the second one, so the rate cannot
double. The CPU of a request shows what a core could do: the busiest process limits the rate when
cores are free.
"""

from __future__ import annotations

import os
import statistics
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from bench.wire import workload
from bench.wire.load import Generator, Sample
from bench.wire.peers import Mode, Running, Solotable, processor_ticks
from bench.wire.race import check, fill

ITEMS = 10_000
COUNTS = (1, 2)
MODES: dict[str, Mode] = {"relaxed": "relaxed", "durable": "disk"}
_OPERATIONS = ("GetItem", "Query of 50", "PutItem")
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100


class Several(Solotable):
    """This checkout's own server with a number of workers."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.name = f"{count} worker{'s' if count > 1 else ''}"

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        return [*super().command(mode, port, folder), "--workers", str(self._count)]


def measure(folder: Path, *, quick: bool) -> dict[str, Any]:
    """Return the figures by durability, operation and number of workers; servers take turns."""
    operations = [each for each in workload.operations(ITEMS) if each.title in _OPERATIONS]
    generator = Generator(folder / "scripts", operations)
    figures: dict[str, Any] = {}
    for title, mode in MODES.items():
        with ExitStack() as stack:
            running: dict[str, Running] = {}
            for count in COUNTS:
                server = Several(count)
                running[server.name] = stack.enter_context(server.serve(mode, folder / f"{title}-{count}"))
                with closing(running[server.name].connect()) as client:
                    fill(client, ITEMS)
                    check(client, ITEMS)
            figures[title] = {}
            for operation in sorted(operations, key=lambda each: _OPERATIONS.index(each.title)):
                rounds: dict[str, list[tuple[Sample, list[float]]]] = {name: [] for name in running}
                for _ in range(1 if quick else 5):
                    for name, each in running.items():
                        before = processor_seconds(each.process.pid)
                        sample = generator.play(operation, each.port, 1 if quick else 2)
                        after = processor_seconds(each.process.pid)
                        spent = [after[pid] - before.get(pid, 0.0) for pid in after]
                        rounds[name].append((sample, spent))
                figures[title][operation.title] = {name: _figure(taken) for name, taken in rounds.items()}
    return figures


def _figure(rounds: list[tuple[Sample, list[float]]]) -> dict[str, Any]:
    """Return the median rate, and the CPU of the cheapest round: noise only adds to it."""
    cheapest = min(rounds, key=lambda each: sum(each[1]) / each[0].requests)
    spent = [seconds / cheapest[0].requests * 1e6 for seconds in cheapest[1]]
    return {
        "rate": round(statistics.median(sample.rate for sample, _ in rounds), 1),
        "rounds": [round(sample.rate, 1) for sample, _ in rounds],
        "errors": sum(sample.errors for sample, _ in rounds),
        "cpu_us": round(sum(spent), 1),
        "busiest_us": round(max(spent), 1),
    }


def processor_seconds(pid: int) -> dict[int, float]:
    """Return the processor time of a process and of its children, by process."""
    listed = Path(f"/proc/{pid}/task/{pid}/children")
    children = [int(each) for each in listed.read_text().split()] if listed.exists() else []
    return {each: processor_ticks(each) / _TICKS_A_SECOND for each in (pid, *children)}


def table(figures: Mapping[str, Any]) -> Iterator[str]:
    """Yield a table: requests a second, CPU of all processes and of the busiest one, in microseconds."""
    yield f"  {'':<10}{'':<16}{'':<12}{'requests/s':>12}{'CPU µs':>10}{'busiest µs':>12}"
    for durability, operations in figures.items():
        for operation, counts in operations.items():
            for name, each in counts.items():
                yield (
                    f"  {durability:<10}{operation:<16}{name:<12}{each['rate']:>12,.0f}"
                    f"{each['cpu_us']:>10,.0f}{each['busiest_us']:>12,.0f}"
                    + (f"  {each['errors']} errors" if each["errors"] else "")
                )
