"""Follows the tutorial as a reader does: writes its files, runs its commands, and returns what they print."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.serving import environment, served
from tests.waiting import HANG_SECONDS

#: A block of a page: language, title if it is a file, and content.
BLOCK = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)
PORTS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
#: What differs from one run to the next, and what to compare instead.
VOLATILE = [
    (re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z"), "TIME"),
    (re.compile(r"\b[0-9A-Z]{26}\b"), "ID"),
    (re.compile(r"\b(in|after) \d+\.\d+ ?s\b"), "in N s"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A command of the tutorial: what the page says that it prints, and what it printed."""

    command: str
    expected: str
    printed: str

    @property
    def agrees(self) -> bool:
        """Whether the page is right; a line with three dots stands for any lines."""
        parts = map(re.escape, steady(self.expected).split("\n..."))
        return re.fullmatch("(?s:.*)".join(parts), steady(self.printed)) is not None


def steady(text: str) -> str:
    """Return output without what differs from one run to the next."""
    for pattern, word in VOLATILE:
        text = pattern.sub(word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


class Reader:
    """Works through the pages in one folder, with two terminals: the second one runs the servers."""

    def __init__(self, folder: Path, servers: ExitStack) -> None:
        self._folder = folder
        self._servers = servers
        self._variables: dict[str, str] = {}
        #: The port of the page, and the one that is used here.
        self._ports: dict[str, str] = {}

    def follow(self, page: str) -> Iterator[Step]:
        """Follow a page; yield a step for each command that ends."""
        for language, title, content in BLOCK.findall(page):
            if language == "console":
                for command, expected in COMMAND.findall(content):
                    printed = self._run(command)
                    if printed is not None:
                        yield Step(command=command, expected=expected, printed=printed)
            elif language == "diff":
                file = self._folder / title
                file.write_text(patched(file.read_text("utf-8"), content), encoding="utf-8")
            elif title:
                if language == "json":
                    json.loads(content)
                (self._folder / title).write_text(content, encoding="utf-8")

    def _run(self, command: str) -> str | None:
        text = PORTS.sub(lambda found: self._ports.get(found[0], found[0]), command)
        program, *arguments = shlex.split(text)
        match program:
            case "export":
                name, _, value = arguments[0].partition("=")
                self._variables[name] = value
                return None
            case "curl":
                return curl(arguments)
            case "uvicorn":
                position = arguments.index("--port") + 1
                self._ports[arguments[position]] = self._start_uvicorn(arguments, position)
                return None
            case "solotable" if arguments[0] == "serve":
                server = self._servers.enter_context(served(*arguments[1:], cwd=self._folder))
                self._ports["8000"] = str(server.port)
                return None
            case "solotable" | "pytest":
                return self._call("-m", program, *arguments)
            case "python":
                return self._call(*arguments)
        raise AssertionError(f"the tests cannot run {command!r}")

    def _call(self, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, *arguments],
            cwd=self._folder,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done.stdout + done.stderr

    def _environment(self) -> dict[str, str]:
        quiet = {"AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, "COLUMNS": "80"}
        return environment(**quiet, PYTHONDONTWRITEBYTECODE="1", **self._variables)

    def _start_uvicorn(self, arguments: list[str], position: int) -> str:
        """Start the server on a free port, in place of the one before, and return the port."""
        return self._servers.enter_context(
            running(
                [*arguments[:position], "0", *arguments[position + 1 :]],
                folder=self._folder,
                env=self._environment(),
            )
        )


@contextmanager
def running(arguments: list[str], *, folder: Path, env: dict[str, str]) -> Iterator[str]:
    """Run uvicorn; the value is its port."""
    process = subprocess.Popen(
        [sys.executable, "-m", "uvicorn", *arguments],
        cwd=folder,
        env=env,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    lines = []
    try:
        for line in process.stderr:
            lines.append(line)
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                yield found[1]
                break
        else:
            raise AssertionError("".join(lines))
    finally:
        process.terminate()
        process.communicate(timeout=HANG_SECONDS)


def curl(arguments: list[str]) -> str:
    """Send a request as `curl` does with these arguments: -H, -d and an address."""
    headers, data, address = {}, None, ""
    words = iter(arguments)
    for word in words:
        if word == "-H":
            name, _, value = next(words).partition(": ")
            headers[name] = value
        elif word == "-d":
            data = next(words).encode()
        else:
            address = word
    request = urllib.request.Request(address, data=data, headers=headers)  # noqa: S310  # our own server
    with urllib.request.urlopen(request, timeout=HANG_SECONDS) as response:  # noqa: S310  # the same
        return str(response.read().decode())


def patched(text: str, diff: str) -> str:
    """Apply the hunks of a diff, each to the only place where its old lines are."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        old = "".join(line[1:] for line in lines if line[0] in " -")
        new = "".join(line[1:] for line in lines if line[0] in " +")
        assert text.count(old) == 1, f"not found once:\n{old}"
        text = text.replace(old, new)
    return text
