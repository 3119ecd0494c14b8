"""Run the measurements, print them as ratios and write them to bench/results."""

from __future__ import annotations

import argparse
import json
import platform
import sqlite3
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from solotable.protocol import text

from . import in_process

SMALL = 10_000
LARGE = 1_000_000
#: What the engine is to stay within: times the raw call, and times itself at the small size.
RAW_LIMIT = 4.0
SCALE_LIMIT = 1.5


def main() -> None:
    """Measure the engine in process; see --help."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--large", type=int, default=LARGE, help="items of the large table (0: leave it out)")
    parser.add_argument("--quick", action="store_true", help="few rounds: a look, not a figure")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "results")
    chosen = parser.parse_args()
    sizes = [SMALL, *([chosen.large] if chosen.large else [])]
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="solotable-bench-") as folder:
        for size in sizes:
            print(f"in process, {size:,} items of 0.9 KB, relaxed durability", flush=True)
            figures[str(size)] = in_process.measure(Path(folder), size, quick=chosen.quick)
            _print_raw(figures[str(size)])
    if chosen.large:
        _print_scale(figures[str(SMALL)], figures[str(chosen.large)], chosen.large)
    path = _save(chosen.out, figures)
    print(f"written to {path}")


def _print_raw(figures: dict[str, dict[str, float]]) -> None:
    print(f"  {'operation':<14}{'raw SQLite':>12}{'engine':>12}{'ratio':>8}   limit {RAW_LIMIT}x")
    for name, times in figures.items():
        ratio = times["engine"] / times["raw"]
        bar = "#" * round(ratio * 5)
        print(f"  {name:<14}{times['raw']:>9.1f} µs{times['engine']:>9.1f} µs{ratio:>7.2f}x   {bar}")
    print()


def _print_scale(small: dict[str, Any], large: dict[str, Any], items: int) -> None:
    print(f"growth from {SMALL:,} to {items:,} items")
    print(f"  {'operation':<14}{'raw SQLite':>12}{'engine':>12}   limit {SCALE_LIMIT}x")
    for name in small:
        raw = large[name]["raw"] / small[name]["raw"]
        ours = large[name]["engine"] / small[name]["engine"]
        print(f"  {name:<14}{raw:>11.2f}x{ours:>11.2f}x")
    print()


def _save(folder: Path, figures: dict[str, Any]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "in-process.json"
    report = {
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "sqlite": sqlite3.sqlite_version,
        "json": text.LIBRARY if hasattr(text, "LIBRARY") else "",
        "microseconds": figures,
    }
    path.write_text(json.dumps(report, indent=2) + "\n")
    return path


if __name__ == "__main__":
    main()
