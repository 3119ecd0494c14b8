"""Run a command on a pseudo-terminal."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.serving import environment
from tests.waiting import HANG_SECONDS


def run_on_terminal(*arguments: str, cwd: Path, **variables: str) -> str:
    """Run `solotable` with standard output and standard error on a terminal; return what it printed."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - our own command
        [sys.executable, "-m", "solotable", *arguments],
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
        cwd=cwd,
        env=environment(TERM="xterm-256color", COLUMNS="120", **variables),
    )
    os.close(theirs)
    printed = bytearray()
    try:
        while part := _read(ours):
            printed += part
        process.wait(timeout=HANG_SECONDS)
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
    return printed.decode()


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # Linux: the last process that had the terminal open has ended
        return b""
