"""A real `solotable serve` in a process of its own, for as long as a block lasts."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import solotable

from .waiting import HANG_SECONDS

_COMMAND = [sys.executable, "-m", "solotable"]
_SOURCES = str(Path(solotable.__file__).parents[1])


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """A server that takes requests."""

    process: subprocess.Popen[str]
    port: int
    banner: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


def environment(**more: str) -> dict[str, str]:
    """This process's environment without anything of AWS, of ours or of pytest."""
    foreign = ("AWS_", "SOLOTABLE_", "PYTEST_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(foreign)}
    return kept | {"PYTHONPATH": _SOURCES, "PYTHONUNBUFFERED": "1"} | more


def command(*arguments: str, cwd: Path | None = None, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `solotable` to its end."""
    return subprocess.run(  # noqa: S603 - our own command
        [*_COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        cwd=cwd,
        env=environment(**variables),
    )


@contextmanager
def served(*arguments: str, cwd: Path | None = None) -> Iterator[Served]:
    """Serve on a port of its own; at the end it must go in peace when told to."""
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*_COMMAND, "serve", "--port", "0", *arguments],
        stdout=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env=environment(),
    )
    try:
        assert process.stdout is not None
        banner = ""
        while (found := re.search(r"endpoint +http://[^ ]*:([0-9]+)", banner)) is None:
            line = process.stdout.readline()
            assert line, f"the server did not start: {banner}"
            banner += line
        yield Served(process=process, port=int(found[1]), banner=banner)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=HANG_SECONDS) == 0
    finally:
        if process.poll() is None:
            process.kill()
            process.wait()
        process.stdout.close()  # type: ignore[union-attr]  # it was piped above
