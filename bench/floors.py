"""Where the CPU of our server goes, by operation: CPython, SQLite's C, the kernel, other C libraries.

Sampled with `perf` under the load of the wire benchmark, in memory. The work of SQLite and of the
kernel is the floor: Python can be made faster or left out, they cannot.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

from bench.wire import race, workload
from bench.wire.load import Generator
from bench.wire.peers import Solotable

SHARES = ("CPython", "SQLite", "kernel", "other C libraries")
_FREQUENCY = "997"


def measure(folder: Path, *, quick: bool = False) -> dict[str, dict[str, float]] | None:
    """Return per cent of the server's CPU by operation and SHARES; None where there is no perf."""
    if shutil.which("perf") is None:
        return None
    items = 2_500 if quick else race.ITEMS
    seconds = 2 if quick else 5
    operations = workload.operations(items)
    generator = Generator(folder / "scripts", operations)
    figures = {}
    with Solotable().serve("memory", folder / "server") as server, ThreadPoolExecutor(1) as threads:
        with closing(server.connect()) as client:
            race.fill(client, items)
        for operation in operations:
            generator.play(operation, server.port, 1)
            data = folder / "perf.data"
            loaded = threads.submit(generator.play, operation, server.port, seconds)
            _perf("record", "-q", "-e", "cpu-clock", "-F", _FREQUENCY, "-o", str(data),
                  "-p", str(server.process.pid), "--", "sleep", str(seconds - 0.5))  # fmt: skip
            loaded.result()
            report = ("report", "-i", str(data), "--sort", "dso", "--stdio", "-q", "-t", "|")
            figures[operation.title] = shares(_perf(*report).splitlines())
    return figures


def shares(lines: Iterable[str]) -> dict[str, float]:
    """Sum up a report of perf by where the samples lie.

    >>> shares(["60.00%|libpython3.11.so.1.0", "25.00%|[kernel.kallsyms]", "15.00%|libsqlite3.so.0.8.6"])
    {'CPython': 60.0, 'SQLite': 15.0, 'kernel': 25.0, 'other C libraries': 0.0}
    """
    found = dict.fromkeys(SHARES, 0.0)
    for line in lines:
        percent, bar, name = line.strip().partition("|")
        if bar:
            found[_share(name.strip())] += float(percent.strip(" %"))
    return {name: round(percent, 1) for name, percent in found.items()}


def _share(library: str) -> str:
    if library.startswith(("libpython", "python")):
        return "CPython"
    if library.startswith("libsqlite3"):
        return "SQLite"
    return "kernel" if library.startswith("[") else "other C libraries"


def _perf(*arguments: str) -> str:
    command = ["perf", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout
