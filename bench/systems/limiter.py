"""Our rate limiter beside others: acquires a second, and the CPU of client and server for each.

Ours and zae-limiter are asked over the same local endpoints; ours also in process, in memory and on a
file. `limits` runs in memory and on Redis, and a Lua script that is one token bucket on Redis. Every
limiter has a process of its own, and they take turns in every round. A limiter that cannot be had, started or
asked is missing, with the reason. The limits that the figures are to reach are elsewhere.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.limits import IN_MEMORY, OURS, REDIS, ZAE
from bench.systems.limiter_rounds import KINDS, WORKLOADS
from bench.wire.peers import CACHE, ROOT, Contender, Dynoxide, Missing, Solotable, processor_ticks
from tests.conformance.dynamodb_local import free_port

LIMITS = "limits"
LUA = "Lua bucket"
#: What each limiter needs in its own environment.
PACKAGES = {ZAE: (ZAE,), LIMITS: ("limits", "redis")}
#: Where ours runs in process: a file that is written when the system likes to, and one that is synced.
FILES = {"relaxed file": "?durability=relaxed", "durable file": ""}
ENDPOINTS = "HTTP on the loopback, in memory; a table for each limiter, with its own keys, indexes and stream"
_FETCH_SECONDS = 600
_PATIENCE_SECONDS = 120
#: A driver without a region or credentials would look for them outside.
_LOCAL = {
    "AWS_ACCESS_KEY_ID": "local",
    "AWS_SECRET_ACCESS_KEY": "local",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}

#: Acquires a second; microseconds of the client's CPU, and of the server's, for one.
Figure = dict[str, float]
#: By place, limiter, kind and workload.
Figures = dict[str, dict[str, dict[str, dict[str, Figure]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A process with one limiter, warm, waiting for orders."""

    place: str
    limiter: str
    kind: str
    process: subprocess.Popen[str]
    log: Path
    version: str
    #: The process id of the server that it asks; None in process.
    server: int | None = None

    def ask(self, entities: int, seconds: float) -> Figure:
        """Do one round; return acquires a second on one core, and microseconds of CPU for one.

        A process that used more CPU than the clock went on was on more than one core; its CPU
        counts then.
        """
        assert self.process.stdin is not None
        before = 0.0 if self.server is None else processor_ticks(self.server)
        try:
            self.process.stdin.write(json.dumps({"entities": entities, "seconds": seconds}) + "\n")
            self.process.stdin.flush()
        except OSError as gone:
            raise Missing(_last_line(self.log)) from gone
        done = _line(self.process, self.log)
        figure = {
            "rate": done["acquires"] / max(done["wall"], done["cpu"]),
            "cpu_us": done["cpu"] / done["acquires"] * 1e6,
        }
        if self.server is not None:
            seconds = (processor_ticks(self.server) - before) / os.sysconf("SC_CLK_TCK")
            figure["server_us"] = seconds / done["acquires"] * 1e6
        return figure


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What a run has brought: figures, versions by name, and reasons by the name of what is missing."""

    figures: Figures
    versions: dict[str, str]
    missing: dict[str, str]


def measure(folder: Path, *, quick: bool) -> Measured:
    """Start every server and limiter that can be had, and let them take turns."""
    rounds, seconds = (2, 0.3) if quick else (15, 0.5)
    versions: dict[str, str] = {}
    missing: dict[str, str] = {}
    with ExitStack() as stack:
        urls = {place: f"sqlite:///{folder / place.split()[0]}-{{}}.db{end}" for place, end in FILES.items()}
        urls[IN_MEMORY] = "sqlite://"
        servers: dict[str, int] = {}
        for server in (Solotable(), Dynoxide()):
            place = f"{server.name} server"
            try:
                versions[place], urls[place], servers[place] = _serving(server, folder, stack)
            except Missing as reason:
                missing[place] = str(reason)
        try:
            versions[REDIS], urls[REDIS], servers[REDIS] = stack.enter_context(_redis(folder))
        except Missing as reason:
            missing[REDIS] = str(reason)
        drivers = _started(urls, servers, folder, stack, missing)
        versions |= {driver.limiter: driver.version for driver in drivers}
        figures = _race(drivers, rounds, seconds, missing)
    return Measured(figures=figures, versions=versions, missing=missing)


def table(figures: Figures) -> Iterator[str]:
    """Yield the figures: a limiter in a place a line, a workload a pair of columns."""
    width = max(map(len, WORKLOADS)) + 22
    yield f"  {'acquires/s, µs of CPU each: client + server':<48}" + "".join(
        f"{each:>{width}}" for each in WORKLOADS
    )
    for place, limiters in figures.items():
        for limiter, kinds in limiters.items():
            for kind, by_workload in kinds.items():
                cells = (f"{_cell(figure):>{width}}" for figure in by_workload.values())
                yield f"  {f'{limiter}, {place}, {kind}':<48}" + "".join(cells)


def _cell(figure: Figure) -> str:
    server = f" + {figure['server_us']:,.0f}" if "server_us" in figure else ""
    return f"{figure['rate']:,.0f}/s {figure['cpu_us']:,.0f}{server} µs"


def _serving(server: Contender, folder: Path, stack: ExitStack) -> tuple[str, str, int]:
    version = server.prepare()
    running = stack.enter_context(server.serve("memory", folder / server.name))
    return version, f"http://127.0.0.1:{running.port}", running.process.pid


@contextmanager
def _redis(folder: Path) -> Iterator[tuple[str, str, int]]:
    """Run a Redis in memory; yield its version, its URL and its process id."""
    program = shutil.which("redis-server")
    if program is None:
        raise Missing("redis-server is not installed (Debian package redis-server)")
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    port = free_port()
    command = [program, "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                break
            except OSError as refused:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise Missing(f"it does not answer: {refused}") from refused
                time.sleep(0.05)
        version = told.partition("v=")[2].partition(" ")[0]
        yield version, f"redis://127.0.0.1:{port}", process.pid
    finally:
        process.terminate()
        process.wait()


def _started(
    urls: Mapping[str, str],
    servers: Mapping[str, int],
    folder: Path,
    stack: ExitStack,
    missing: dict[str, str],
) -> list[Driver]:
    pythons = {OURS: sys.executable}
    for name, packages in PACKAGES.items():
        try:
            pythons[name] = _peer_python(name, packages)
        except Missing as reason:
            missing[name] = str(reason)
    if LIMITS in pythons:
        pythons[LUA] = pythons[LIMITS]
    drivers = []
    for place, url in urls.items():
        for limiter, python in pythons.items():
            for kind in _kinds(limiter, place):
                command = [python, "-m", f"bench.systems.{_MODULES[limiter]}", url.format(kind), kind]
                if limiter == LUA:
                    command.append("lua")
                log = folder / f"{limiter}-{place}-{kind}.log".replace(" ", "-")
                try:
                    process, version = stack.enter_context(_driving(command, log))
                except Missing as reason:
                    missing[f"{limiter}, {place}, {kind}"] = str(reason)
                else:
                    drivers.append(
                        Driver(
                            place=place,
                            limiter=limiter,
                            kind=kind,
                            process=process,
                            log=log,
                            version=version,
                            server=servers.get(place),
                        )
                    )
    return drivers


_MODULES = {
    OURS: "limiter_ours",
    ZAE: "limiter_zae",
    LIMITS: "limiter_redis",
    LUA: "limiter_redis",
}


def _kinds(limiter: str, place: str) -> Iterable[str]:
    """Return the kinds of callers that a limiter is measured with in a place."""
    match limiter:
        case "solotable":
            return () if place == REDIS else KINDS
        case "zae-limiter":
            return KINDS if place.endswith("server") else ()
        case "limits":
            return ("sync",) if place in (IN_MEMORY, REDIS) else ()
        case _:
            return ("sync",) if place == REDIS else ()


def _race(drivers: list[Driver], rounds: int, seconds: float, missing: dict[str, str]) -> Figures:
    taken: dict[tuple[str, str, str], dict[str, list[Figure]]] = {}
    for _ in range(rounds):
        for workload, entities in WORKLOADS.items():
            for driver in drivers:
                name = (driver.place, driver.limiter, driver.kind)
                title = f"{driver.limiter}, {driver.place}, {driver.kind}"
                if title in missing:
                    continue
                try:
                    figure = driver.ask(entities, seconds)
                except Missing as reason:
                    missing[title] = str(reason)
                    taken.pop(name, None)
                else:
                    taken.setdefault(name, {}).setdefault(workload, []).append(figure)
    figures: Figures = {}
    for (place, limiter, kind), by_workload in taken.items():
        figures.setdefault(place, {}).setdefault(limiter, {})[kind] = {
            workload: {name: statistics.median(figure[name] for figure in each) for name in each[0]}
            for workload, each in by_workload.items()
        }
    return figures


@contextmanager
def _driving(command: list[str], log: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)]) if command[0] == sys.executable else str(ROOT)
    with log.open("w", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env={**os.environ, **_LOCAL, "PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
        try:
            yield process, str(_line(process, log)["version"])
        finally:
            _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        # Without further orders it ends by itself.
        process.stdin.close()
        process.wait(timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait()
    process.stdout.close()


def _line(process: subprocess.Popen[str], log: Path) -> dict[str, Any]:
    stdout: IO[str] | None = process.stdout
    assert stdout is not None
    # One that hangs is ended, and its pipe with it.
    patience = threading.Timer(_PATIENCE_SECONDS, process.kill)
    patience.start()
    try:
        line = stdout.readline()
    finally:
        patience.cancel()
    if not line:
        process.wait()
        raise Missing(_last_line(log))
    answer: dict[str, Any] = json.loads(line)
    return answer


def _last_line(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return f"it stopped: {lines[-1][:200] if lines else 'not a word'}"


def _peer_python(name: str, packages: Iterable[str]) -> str:
    """Return the Python of a peer's environment, made in the cache at first."""
    home = CACHE / name
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = home / "installed"
    if not done.exists():
        print(f"  fetching {name} (pip)", flush=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *packages]
        try:
            venv.create(home, with_pip=True, clear=True)
            subprocess.run(command, capture_output=True, text=True, check=True, timeout=_FETCH_SECONDS)
        except subprocess.CalledProcessError as failure:
            lines = str(failure.stderr or failure.stdout or "").strip().splitlines()
            raise Missing(f"pip: {lines[-1].strip()[:200] if lines else 'not a word'}") from failure
        except (OSError, subprocess.TimeoutExpired) as failure:
            raise Missing(f"pip: {failure}") from failure
        done.touch()
    return str(python)
