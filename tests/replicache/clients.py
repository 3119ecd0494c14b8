"""Real Replicache clients in one Node process, driven by lines of JSON; npm installs them into .cache."""

from __future__ import annotations

import itertools
import json
import shutil
import subprocess
import threading
from pathlib import Path
from queue import Empty, Queue
from typing import Any, Self

import pytest

from tests.waiting import HANG_SECONDS

_DRIVER = Path(__file__).with_name("driver.mjs")
_CACHE = Path(__file__).parents[2] / ".cache" / "replicache"


def installed() -> Path:
    """Return the folder of the npm packages, installed from the lock file; skip where that fails."""
    from solotable.systems.surveys.form.build import ClientMissing, install_client

    try:
        return install_client(_CACHE)
    except ClientMissing as missing:
        pytest.skip(f"the Replicache client cannot run: {missing}")


class Driver:
    """The Node process."""

    def __init__(self, modules: Path) -> None:
        node = shutil.which("node")
        assert node is not None
        self._process = subprocess.Popen(  # noqa: S603 - our own driver
            [node, str(_DRIVER), (modules / "replicache/out/impl.js").as_uri()],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._numbers = itertools.count()
        self._replies: dict[int, Queue[dict[str, Any]]] = {}
        self._reader = threading.Thread(target=self._read)
        self._reader.start()
        self._names = itertools.count()

    def start(self, command: str, **arguments: Any) -> Queue[dict[str, Any]]:
        """Send a command, and return where its reply arrives."""
        number = next(self._numbers)
        queue = self._replies[number] = Queue()
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"do": command, "number": number, **arguments}) + "\n")
        self._process.stdin.flush()
        return queue

    def call(self, command: str, **arguments: Any) -> Any:
        """Send a command, and return its value."""
        return finished(self.start(command, **arguments))

    def open(self, **options: Any) -> Client:
        """Open a client; its name decides which clients share a store."""
        name = f"c{next(self._names)}"
        return Client(self, name, **self.call("open", client=name, **options))

    def close(self) -> None:
        """End the process."""
        self._process.communicate(timeout=HANG_SECONDS)
        self._reader.join(HANG_SECONDS)

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            reply = json.loads(line)
            self._replies.pop(reply["number"]).put(reply)


def finished(queue: Queue[dict[str, Any]]) -> Any:
    """Return the value of a reply, or fail with the error."""
    try:
        reply = queue.get(timeout=HANG_SECONDS)
    except Empty:
        pytest.fail("the client does not reply")
    assert "error" not in reply, reply["error"]
    return reply["value"]


class Client:
    """One Replicache instance."""

    def __init__(self, driver: Driver, name: str, *, clientID: str, groupID: str) -> None:  # noqa: N803 - its names
        self._driver = driver
        self.name = name
        self.id = clientID
        self.group = groupID

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def mutate(self, name: str, **args: Any) -> None:
        """Run a mutator; the client pushes it on its own."""
        self.mutate_many([(name, args)])

    def mutate_many(self, mutations: list[tuple[str, dict[str, Any]]]) -> None:
        """Run mutators, one after the other."""
        self._call("mutate", mutations=mutations)

    def push(self) -> str:
        """Push now; 'done' or 'failed: ...'."""
        return str(self._call("push"))

    def pull(self) -> str:
        """Pull now; 'done' or 'failed: ...'."""
        return str(self._call("pull"))

    def settle(self) -> None:
        """Push and pull until nothing is pending."""
        self._call("settle")

    def start_settling(self) -> Queue[dict[str, Any]]:
        """Begin to push and pull until nothing is pending."""
        return self._driver.start("settle", client=self.name)

    def read(self, prefix: str = "") -> dict[str, Any]:
        """Return what the client shows, by key."""
        found: dict[str, Any] = self._call("read", prefix=prefix)
        return found

    def texts(self) -> dict[str, str]:
        """Return the texts of the to-do items, by id."""
        return {value["todo_id"]: value["text"] for value in self.read("todo/").values()}

    def pending(self) -> int:
        """Return the number of mutations that no pull has confirmed."""
        return int(self._call("pending"))

    def persist(self) -> None:
        """Write the client's memory to its store, as it does when it has time."""
        self._call("persist")

    def network(self, mode: str | int) -> None:
        """Switch the network: online, offline, deaf, or a status."""
        self._call("network", mode=mode)

    def set_auth(self, auth: str | None = None, *, after_401: str | None = None) -> None:
        """Change the Authorization header, or what the client gets when it asks for a new one."""
        given = {"auth": auth, "next": after_401}
        self._call("auth", **{name: value for name, value in given.items() if value is not None})

    def move(self, server: str) -> None:
        """Use another address of the server."""
        self._call("move", server=server)

    def log(self, path: str = "") -> list[dict[str, Any]]:
        """Return the requests since the last call, and forget them."""
        return [each for each in self._call("log") if each["path"].endswith(path)]

    def events(self) -> list[str]:
        """Return what the client reported since the last call, and forget it."""
        return list(self._call("events"))

    def close(self) -> None:
        """Close the client, as a tab that is closed."""
        self._call("close")

    def _call(self, command: str, **arguments: Any) -> Any:
        return self._driver.call(command, client=self.name, **arguments)
