"""`python -m bench.heat_instructions`: the instructions that counting heat adds to a request, under Valgrind.

Unlike times, they do not depend on what else the machine does. It takes some minutes, and needs `valgrind`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from solotable._protocol.requests import PutItem, Request
from solotable.engines.sqlite import SqliteEngine

from .heat import _BATCH, _engine, _item, _workloads

_MODES: Final = ("without", "full load", "first 1,024")
_WARM, _BATCHES = 6, 24


def _control(*options: str) -> None:
    command = ["callgrind_control", *options, str(os.getpid())]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)


def _send(engine: SqliteEngine, workload: list[Sequence[Request[Any]]], batches: int) -> None:
    for _ in range(batches // len(workload)):
        for requests in workload:
            for request in requests:
                engine.handle(request)


def measure() -> None:
    """Send every workload to an engine in each mode, under Valgrind, which writes a file for each."""
    for workload in _workloads().values():
        for mode in _MODES:
            with _engine(heat=mode != "without") as engine:
                for number in range(_BATCH):
                    engine.handle(PutItem(table="Shop", item=_item(number, "x")))
                if engine.heat is not None:
                    engine.heat._exact_reads = engine.heat._exact_writes = (
                        0 if mode == "full load" else 1 << 30
                    )
                _send(engine, workload, _WARM)
                _control("-i", "on")
                _control("-z")
                _send(engine, workload, _BATCHES)
                _control("-d")
                _control("-i", "off")


def main() -> None:
    """Print the instructions of a request, and what heat adds."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "callgrind.out"
        options = ["--tool=callgrind", "--instr-atstart=no", f"--callgrind-out-file={out}"]
        child = [sys.executable, "-m", "bench.heat_instructions", "--measure"]
        environment = os.environ | {"PYTHONHASHSEED": "0"}
        subprocess.run(["valgrind", "-q", *options, *child], check=True, env=environment)
        counts = [int(each) for file in _dumps(out) for each in re.findall(r"(?m)^totals: (\d+)", file)]
    counts = [each for each in counts if each]
    for number, name in enumerate(_workloads()):
        without, *others = (each / _BATCHES / _BATCH for each in counts[number * 3 : number * 3 + 3])
        shown = ", ".join(
            f"{100 * (each / without - 1):+.1f} % {mode}"
            for each, mode in zip(others, _MODES[1:], strict=True)
        )
        print(f"{name:<18} {without:9,.0f} instructions without heat; {shown}")


def _dumps(out: Path) -> list[str]:
    found = sorted(out.parent.glob("callgrind.out.*"), key=lambda each: int(each.suffix[1:]))
    return [each.read_text() for each in found]


if __name__ == "__main__":
    measure() if "--measure" in sys.argv else main()
