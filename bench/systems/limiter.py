"""Our rate limiter beside zae-limiter: acquires a second, and what the client's CPU has to do for each.

Both are asked over the same local endpoints; ours also in process, on a file. Every limiter has a
process of its own, and they take turns in every round. A limiter that cannot be had, started or
asked is missing, with the reason. The limits that the figures are to reach are elsewhere.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import threading
import venv
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from bench.limits import OURS, ZAE
from bench.systems.limiter_rounds import KINDS, WORKLOADS
from bench.wire.peers import CACHE, ROOT, Contender, Dynoxide, Missing, Solotable

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

#: By place, limiter, kind and workload: acquires a second, and microseconds of the client's CPU for one.
Figures = dict[str, dict[str, dict[str, dict[str, dict[str, float]]]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """A process with one limiter, warm, waiting for orders."""

    place: str
    limiter: str
    kind: str
    process: subprocess.Popen[str]
    log: Path
    version: str

    def ask(self, entities: int, seconds: float) -> tuple[float, float]:
        """Do one round; return acquires a second on one core, and microseconds of CPU for one.

        A process that used more CPU than the clock went on was on more than one core; its CPU
        counts then.
        """
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"entities": entities, "seconds": seconds}) + "\n")
            self.process.stdin.flush()
        except OSError as gone:
            raise Missing(_last_line(self.log)) from gone
        done = _line(self.process, self.log)
        return done["acquires"] / max(done["wall"], done["cpu"]), done["cpu"] / done["acquires"] * 1e6


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
        for server in (Solotable(), Dynoxide()):
            place = f"{server.name} server"
            try:
                versions[place], urls[place] = _serving(server, folder, stack)
            except Missing as reason:
                missing[place] = str(reason)
        drivers = _started(urls, folder, stack, missing)
        versions |= {driver.limiter: driver.version for driver in drivers}
        figures = _race(drivers, rounds, seconds, missing)
    return Measured(figures=figures, versions=versions, missing=missing)


def table(figures: Figures) -> Iterator[str]:
    """Yield the figures: a limiter in a place a line, a workload a pair of columns."""
    width = max(map(len, WORKLOADS)) + 14
    yield f"  {'acquires/s, µs of client CPU each':<44}" + "".join(f"{each:>{width}}" for each in WORKLOADS)
    for place, limiters in figures.items():
        for limiter, kinds in limiters.items():
            for kind, by_workload in kinds.items():
                cells = (
                    f"{figure['rate']:>{width - 13},.0f}/s{figure['cpu_us']:>8,.0f} µs"
                    for figure in by_workload.values()
                )
                yield f"  {f'{limiter}, {place}, {kind}':<44}" + "".join(cells)


def _serving(server: Contender, folder: Path, stack: ExitStack) -> tuple[str, str]:
    version = server.prepare()
    running = stack.enter_context(server.serve("memory", folder / server.name))
    return version, f"http://127.0.0.1:{running.port}"


def _started(
    urls: Mapping[str, str], folder: Path, stack: ExitStack, missing: dict[str, str]
) -> list[Driver]:
    pythons = {OURS: sys.executable}
    try:
        pythons[ZAE] = _peer_python()
    except Missing as reason:
        missing[ZAE] = str(reason)
    drivers = []
    for place, url in urls.items():
        for limiter, python in pythons.items():
            if limiter == ZAE and place in FILES:
                continue
            for kind in KINDS:
                module = "bench.systems.limiter_ours" if limiter == OURS else "bench.systems.limiter_zae"
                command = [python, "-m", module, url.format(kind), kind]
                log = folder / f"{limiter}-{place}-{kind}.log".replace(" ", "-")
                try:
                    process, version = stack.enter_context(_driving(command, log))
                except Missing as reason:
                    missing[f"{limiter}, {place}, {kind}"] = str(reason)
                else:
                    drivers.append(
                        Driver(
                            place=place, limiter=limiter, kind=kind, process=process, log=log, version=version
                        )
                    )
    return drivers


def _race(drivers: list[Driver], rounds: int, seconds: float, missing: dict[str, str]) -> Figures:
    taken: dict[tuple[str, str, str], dict[str, list[tuple[float, float]]]] = {}
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
            workload: {
                "rate": statistics.median(rate for rate, _ in each),
                "cpu_us": statistics.median(cpu for _, cpu in each),
            }
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


def _peer_python() -> str:
    """Return the Python of the environment that has zae-limiter, made in the cache when there is none."""
    home = CACHE / ZAE
    python = home / ("Scripts" if os.name == "nt" else "bin") / "python"
    done = home / "installed"
    if not done.exists():
        print(f"  fetching {ZAE} (pip)", flush=True)
        command = [str(python), "-m", "pip", "install", "--quiet", ZAE]
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
