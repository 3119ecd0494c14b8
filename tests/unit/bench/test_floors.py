"""Samples of perf are summed up by what they belong to."""

from __future__ import annotations

from bench import floors


def test_samples_are_grouped_by_library_and_other_lines_are_skipped() -> None:
    lines = [
        "# Samples: 1K of event 'cpu-clock'",
        "    61.10% |libpython3.11.so.1.0  ",
        "     2.00% |python3.13            ",
        "    20.70% |[kernel.kallsyms]     ",
        "     7.00% |libsqlite3.so.0.8.6   ",
        "     5.20% |libc.so.6             ",
        "     4.00% |orjson.cpython-311-x86_64-linux-gnu.so",
        "",
    ]
    assert floors.shares(lines) == {
        "CPython": 63.1,
        "SQLite": 7.0,
        "kernel": 20.7,
        "other C libraries": 9.2,
    }
