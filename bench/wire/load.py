"""The same HTTP load for every server: eight connections, one operation, some seconds.

`wrk` plays it where it is on the PATH, from a generated Lua script; else a small generator in
Python does, in a process of its own (generator.py). Both keep one request in flight on each
connection and count every reply that is not a 200. Nothing is judged here.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bench.wire.client import HOST, headers
from bench.wire.workload import Operation

CONNECTIONS = 8
#: A request that takes longer than this counts as an error.
TIMEOUT_SECONDS = 30
_ROOT = Path(__file__).parents[2]

_SCRIPT = """\
local headers = {
%s
}
local bodies = {
%s
}
local ready, turn = {}, 0
function init(args)
  for place, body in ipairs(bodies) do
    ready[place] = wrk.format("POST", "/", headers[(place - 1) %% #headers + 1], body)
  end
end
function request()
  turn = turn %% #ready + 1
  return ready[turn]
end
function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format(
    '\\n{"requests": %%d, "seconds": %%.6f, "errors": %%d, '
      .. '"p50_ms": %%.3f, "p99_ms": %%.3f, "worst_ms": %%.3f}\\n',
    summary.requests, summary.duration / 1e6,
    errors.connect + errors.read + errors.write + errors.timeout + errors.status,
    latency:percentile(50) / 1e3, latency:percentile(99) / 1e3, latency.max / 1e3))
end
"""


class LoadFailed(Exception):
    """The load could not be played, most likely because the server is gone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """What one round gave."""

    requests: int
    seconds: float
    errors: int
    p50_ms: float
    p99_ms: float
    worst_ms: float

    @property
    def rate(self) -> float:
        """Requests a second."""
        return self.requests / self.seconds if self.seconds else 0.0


def sample_from(line: str) -> Sample:
    """Return what a generator printed as its last line."""
    return Sample(**json.loads(line))


def line_from(sample: Sample) -> str:
    """Return the line that `sample_from` reads."""
    return json.dumps(asdict(sample))


def lua(operation: Operation) -> str:
    """Return the script with which wrk plays an operation."""
    bodies = ",\n".join(lua_text(_encode(body)) for body in operation.bodies)
    named = ",\n".join(
        "{"
        # `[[[` would open a long text: an index needs the space.
        + ", ".join(f"[ {lua_text(name)} ] = {lua_text(value)}" for name, value in headers(target).items())
        + "}"
        for target in operation.targets
    )
    return _SCRIPT % (named, bodies)


def lua_text(text: str) -> str:
    """Return a Lua literal of a text: long brackets of a level that does not end inside it."""
    level = ""
    while f"]{level}]" in f"{text}]":
        level += "="
    # Lua drops a line break right after the opening bracket.
    return f"[{level}[" + ("\n" if text.startswith("\n") else "") + f"{text}]{level}]"


def messages(operation: Operation, host: str) -> list[bytes]:
    """Return the whole HTTP requests of an operation, for the generator in Python."""
    ready = []
    for target, body in operation.requests:
        text = _encode(body).encode()
        named = "".join(f"{name}: {value}\r\n" for name, value in headers(target).items())
        head = f"POST / HTTP/1.1\r\nHost: {host}\r\n{named}Content-Length: {len(text)}\r\n\r\n"
        ready.append(head.encode() + text)
    return ready


def generator_name() -> str:
    """Return what plays the load here, for the report."""
    wrk = shutil.which("wrk")
    if wrk is None:
        return "Python's asyncio (no wrk on the PATH: a fast server is held back by it)"
    shown = subprocess.run([wrk, "--version"], capture_output=True, text=True, check=False).stdout
    return " ".join(shown.split()[:2]) or "wrk"


class Generator:
    """Plays operations on a server. Scripts are written once, into the folder given."""

    def __init__(self, folder: Path, operations: Sequence[Operation]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._wrk = shutil.which("wrk")
        self._scripts: dict[str, Path] = {}
        for number, operation in enumerate(operations):
            script = folder / f"operation-{number}.{'lua' if self._wrk else 'json'}"
            script.write_text(lua(operation) if self._wrk else _plain(operation), encoding="utf-8")
            self._scripts[operation.title] = script

    def play(self, operation: Operation, port: int, seconds: int) -> Sample:
        """Play one operation for some seconds and return the figures."""
        url = f"http://{HOST}:{port}/"
        script = str(self._scripts[operation.title])
        if self._wrk is not None:
            limits = [f"-d{seconds}s", "--timeout", f"{TIMEOUT_SECONDS}s"]
            command = [self._wrk, "-t1", f"-c{CONNECTIONS}", *limits, "-s", script, url]
        else:
            command = [sys.executable, "-m", "bench.wire.generator", script, str(port), str(seconds)]
        patience = seconds + 4 * TIMEOUT_SECONDS
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=patience, cwd=_ROOT
            )
        except subprocess.TimeoutExpired as failure:
            raise LoadFailed(f"no end after {patience} s") from failure
        lines = done.stdout.strip().splitlines()
        # wrk only warns of a script it cannot read, and then sends something else.
        if done.returncode or not lines or not lines[-1].startswith("{") or done.stderr.strip():
            raise LoadFailed((done.stderr or done.stdout).strip()[-300:])
        return sample_from(lines[-1])


def _encode(body: dict[str, Any]) -> str:
    return json.dumps(body, separators=(",", ":"))


def _plain(operation: Operation) -> str:
    return json.dumps({"title": operation.title, "targets": operation.targets, "bodies": operation.bodies})
