"""The servers that are compared: where each comes from, how it is started, and that it answers.

What has to be fetched is kept in the checkout's cache, asked for with whatever configuration npm
and pip have. A peer that cannot be had or started is `Missing`, with the reason; it is never
counted as beaten. What a server is asked, and how fast it answers, is not judged here.
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import venv
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Literal

from bench.wire.client import HOST, Client, Refused
from tests.conformance import dynamodb_local

Mode = Literal["memory", "disk", "relaxed"]

ROOT = Path(__file__).parents[2]
CACHE = ROOT / ".cache" / "peers"
START_SECONDS = 60
STOP_SECONDS = 10
SETTLE_SECONDS = 60


class Missing(Exception):
    """This contender cannot be had here; the text is the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A server that has answered its first request."""

    process: subprocess.Popen[bytes]
    port: int
    start_seconds: float

    def connect(self) -> Client:
        """Return a new connection to it."""
        return Client(self.port)

    def settle(self) -> None:
        """Wait until it rests, a minute at most: it may still work on requests given up."""
        deadline = time.monotonic() + SETTLE_SECONDS
        before = processor_ticks(self.process.pid)
        while time.monotonic() < deadline:
            time.sleep(0.1)
            after = processor_ticks(self.process.pid)
            if after - before <= 1:
                return
            before = after


class Contender(ABC):
    """A server that speaks DynamoDB's protocol."""

    name: str
    modes: tuple[Mode, ...] = ("memory", "disk")

    @abstractmethod
    def prepare(self) -> str:
        """Find or fetch it and return its version, or raise Missing."""

    @abstractmethod
    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        """Return the command that serves on this port, keeping its files in this folder."""

    def environment(self) -> dict[str, str]:
        """Return the variables that it runs with."""
        return dict(os.environ)

    @contextmanager
    def serve(self, mode: Mode, folder: Path) -> Iterator[Running]:
        """Run it on a free port until the block ends; raise Missing when it does not answer."""
        folder.mkdir(parents=True, exist_ok=True)
        port = dynamodb_local.free_port()
        command = self.command(mode, port, folder)
        log = folder / "server.log"
        with log.open("wb") as output:
            start = time.perf_counter()
            process = subprocess.Popen(
                command, cwd=folder, env=self.environment(), stdout=output, stderr=subprocess.STDOUT
            )
            try:
                _wait_until_it_answers(process, port, log)
                yield Running(process=process, port=port, start_seconds=time.perf_counter() - start)
            finally:
                _stop(process)


class Solotable(Contender):
    """This checkout's own server."""

    name = "solotable"
    modes = ("memory", "disk", "relaxed")

    def prepare(self) -> str:
        command = [sys.executable, "-m", "solotable", "serve", "--help"]
        tried = subprocess.run(
            command, env=self.environment(), capture_output=True, text=True, errors="replace", check=False
        )
        if tried.returncode:
            lines = tried.stderr.strip().splitlines()
            raise Missing(f"`solotable serve` does not work here: {lines[-1] if lines else 'not a word'}")
        import solotable

        return solotable.__version__

    def environment(self) -> dict[str, str]:
        paths = [str(ROOT / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        where = ["--memory"] if mode == "memory" else [str(folder / "bench.db")]
        durability = ["--relaxed"] if mode == "relaxed" else []
        return [sys.executable, "-m", "solotable", "serve", *where, *durability, "--port", str(port)]


class DynamoDbLocal(Contender):
    """Amazon's own, on Java."""

    name = "DynamoDB Local"

    def prepare(self) -> str:
        try:
            self._jars = dynamodb_local.find_or_fetch()
        except dynamodb_local.Unavailable as reason:
            raise Missing(str(reason)) from reason
        return self._jars.version.removeprefix("DynamoDBLocal").strip("-") or "1.x (2020)"

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        jars = self._jars
        everything = os.pathsep.join(str(path / "*") for path in jars.folders)
        libraries = os.pathsep.join(str(path) for path in jars.folders)
        where = ["-inMemory"] if mode == "memory" else ["-dbPath", str(folder)]
        quiet = [] if jars.outdated else ["-disableTelemetry"]
        java = ["java", f"-Djava.library.path={libraries}", "-cp", everything, jars.main_class]
        return [*java, *where, "-sharedDb", *quiet, "-port", str(port)]


class Dynalite(Contender):
    """The JavaScript one, on LevelDB."""

    name = "dynalite"

    def prepare(self) -> str:
        if shutil.which("node") is None:
            raise Missing("no node on the PATH")
        self._package = _from_npm("dynalite")
        return _npm_version(self._package)

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        where = [] if mode == "memory" else ["--path", str(folder / "level")]
        server = ["node", str(self._package / "cli.js"), "--host", HOST, "--port", str(port)]
        return [*server, "--createTableMs", "0", *where]


class Moto(Contender):
    """The Python mock, as a server; it keeps nothing on disk."""

    name = "moto"
    modes = ("memory",)

    def prepare(self) -> str:
        home = CACHE / "moto"
        scripts = home / ("Scripts" if os.name == "nt" else "bin")
        self._server = scripts / "moto_server"
        if not self._server.exists():
            print("  fetching moto (pip)", flush=True)
            venv.create(home, with_pip=True, clear=True)
            _run([str(scripts / "python"), "-m", "pip", "install", "--quiet", "moto[server,dynamodb]"])
        shown = _run([str(scripts / "python"), "-m", "pip", "show", "moto"])
        found = re.search(r"^Version: (\S+)", shown, re.MULTILINE)
        return found[1] if found else "unknown"

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        return [str(self._server), "--host", HOST, "--port", str(port)]


class Dynoxide(Contender):
    """The Rust one, on SQLite; npm carries its binary, a package for each platform."""

    name = "Dynoxide"

    def prepare(self) -> str:
        machine = {"x86_64": "x64", "amd64": "x64", "aarch64": "arm64"}.get(
            platform.machine().lower(), platform.machine().lower()
        )
        package = _from_npm(f"@dynoxide/{sys.platform}-{machine}")
        self._binary = package / ("dynoxide.exe" if os.name == "nt" else "dynoxide")
        if not self._binary.exists():
            raise Missing(f"the npm package holds no {self._binary.name}")
        return _npm_version(package)

    def command(self, mode: Mode, port: int, folder: Path) -> list[str]:
        where = [] if mode == "memory" else ["--db-path", str(folder / "bench.db")]
        return [str(self._binary), "serve", "--host", HOST, "--port", str(port), *where]


def contenders() -> tuple[Contender, ...]:
    """Return all of them, ours first."""
    return (Solotable(), Dynoxide(), Dynalite(), DynamoDbLocal(), Moto())


def ready(chosen: tuple[Contender, ...]) -> tuple[dict[str, str], dict[str, str]]:
    """Prepare them, saying how it went; return versions by name, and reasons of those missing."""
    versions, missing = {}, {}
    for contender in chosen:
        try:
            versions[contender.name] = contender.prepare()
        except Missing as reason:
            missing[contender.name] = str(reason)
        answer = versions.get(contender.name) or f"missing: {missing[contender.name]}"
        print(f"  {contender.name:<16}{answer}", flush=True)
    return versions, missing


def _from_npm(package: str) -> Path:
    folder = CACHE / package.strip("@").replace("/", "-")
    installed = folder / "node_modules" / package
    if not (installed / "package.json").exists():
        if shutil.which("npm") is None:
            raise Missing("no npm on the PATH")
        print(f"  fetching {package} (npm)", flush=True)
        folder.mkdir(parents=True, exist_ok=True)
        _run(["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(folder), package])
    return installed


def _npm_version(package: Path) -> str:
    return str(json.loads((package / "package.json").read_text(encoding="utf-8"))["version"])


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise Missing(f"{Path(command[0]).name}: {failure}") from failure
    except subprocess.CalledProcessError as failure:
        lines = [line for line in (failure.stderr + failure.stdout).splitlines() if line.strip()]
        reason = lines[-1].strip()[:200] if lines else "failed without a word"
        raise Missing(f"{Path(command[0]).name}: {reason}") from failure
    return done.stdout


def _wait_until_it_answers(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    deadline = time.monotonic() + START_SECONDS
    while process.poll() is None and time.monotonic() < deadline:
        client = Client(port)
        try:
            client.call("ListTables", {})
        except (OSError, ValueError, HTTPException, Refused):
            time.sleep(0.002)
        else:
            return
        finally:
            client.close()
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    raise Missing(f"it did not start: {lines[-1][:200] if lines else 'not a word'}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(timeout=STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def processor_ticks(pid: int) -> int:
    """Return the processor time that a process has used; 0 where the system does not say it in /proc."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return 0
    user, system = stat.rpartition(")")[2].split()[11:13]
    return int(user) + int(system)
