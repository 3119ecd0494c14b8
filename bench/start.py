"""How long a server takes from its start to its first answer, and the memory it holds when idle.

Every contender is started several times in turns, in memory and with no data. Memory is what is
resident a moment after the first answer, children included.
"""

from __future__ import annotations

import statistics
import subprocess
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from bench.wire.peers import Contender, Missing

SETTLE_SECONDS = 1.0


def measure(chosen: Sequence[Contender], folder: Path, *, times: int) -> dict[str, dict[str, float]]:
    """Return for each contender the seconds to its first answer and its idle megabytes."""
    seconds: dict[str, list[float]] = defaultdict(list)
    memory: dict[str, list[float]] = defaultdict(list)
    failed: set[str] = set()
    for number in range(times):
        for contender in chosen:
            if contender.name in failed:
                continue
            try:
                with contender.serve("memory", folder / f"start-{contender.name}-{number}") as server:
                    time.sleep(SETTLE_SECONDS)
                    seconds[contender.name].append(server.start_seconds)
                    memory[contender.name].append(resident_megabytes(server.process.pid))
            except Missing as failure:
                failed.add(contender.name)
                print(f"\n  {contender.name}: {failure}", flush=True)
        print(".", end="", flush=True)
    return {
        name: {
            "first_answer_seconds": round(statistics.median(taken), 3),
            "idle_megabytes": round(statistics.median(memory[name]), 1),
        }
        for name, taken in seconds.items()
        if name not in failed
    }


def resident_megabytes(pid: int) -> float:
    """Return the resident memory of a process and its children, in units of 1,000,000 bytes."""
    listed = subprocess.run(
        ["ps", "-A", "-o", "pid=,ppid=,rss="], capture_output=True, text=True, check=True
    ).stdout
    return family_kibibytes(listed, pid) * 1024 / 1e6


def family_kibibytes(listed: str, pid: int) -> int:
    """Return what `ps` says a process and everything below it hold.

    >>> family_kibibytes("1 0 10\\n7 1 20\\n8 7 30\\n9 1 40", 7)
    50
    """
    rows = [tuple(map(int, line.split())) for line in listed.splitlines() if line.strip()]
    family = {pid}
    while below := {each for each, parent, _ in rows if parent in family} - family:
        family |= below
    return sum(size for each, _, size in rows if each in family)
