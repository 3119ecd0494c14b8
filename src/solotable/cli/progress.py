"""Progress of long commands: a bar on standard error when it is a terminal, nothing otherwise."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Update(Protocol):
    """Report how far a command is."""

    def __call__(self, completed: float, total: float | None = None, detail: str = "") -> None:
        """Show `completed` of `total` units; a total of None means that it is not known."""
        ...


@contextmanager
def progress(description: str, *, quiet: bool = False) -> Iterator[Update]:
    """Draw a progress bar, and yield the function that moves it."""
    if quiet or not sys.stderr.isatty():
        yield lambda completed, total=None, detail="": None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.fields[count]} {task.fields[detail]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(description, total=None, count="0", detail="")

        def update(completed: float, total: float | None = None, detail: str = "") -> None:
            count = f"{completed:,.0f}" if total is None else f"{completed:,.0f}/{total:,.0f}"
            bar.update(task, completed=completed, total=total, count=count, detail=detail)

        yield update
