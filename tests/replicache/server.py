"""The to-do server as a process: started, killed, restored from a copy, and read from outside."""

from __future__ import annotations

import functools
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import httpx2
import jwt

from tests.killing import Program
from tests.waiting import HANG_SECONDS, wait_until

SECRET = "a secret of the tests, longer than 32 bytes"
ISSUER = "https://id.example"
AUDIENCE = "todo"


@functools.cache
def token(user: str = "ann", tenant: str = "acme") -> str:
    """Return the Authorization header of a user."""
    claims = {"iss": ISSUER, "aud": AUDIENCE, "sub": user, "tenants": [tenant], "roles": ["USER"]}
    return "Bearer " + jwt.encode({**claims, "exp": time.time() + 86_400}, SECRET, algorithm="HS256")


class Servers:
    """The program that forks to-do servers."""

    def __init__(self, log: Path) -> None:
        self._program = Program(log, "-m", "tests.replicache.todo_server")
        self._count = 0

    def start(self, file: Path) -> tuple[int, int]:
        """Start a server on a file; return its port and its process."""
        assert self._program.process.stdin is not None
        self._program.process.stdin.write(f"{file}\n".encode())
        self._program.process.stdin.flush()
        self._count += 1
        found = re.fullmatch(r"port (\d+) process (\d+)", self._program.wait_for_lines(self._count)[-1])
        assert found is not None
        return int(found[1]), int(found[2])

    def close(self) -> None:
        """End the program."""
        self._program.end()


class TodoServer:
    """A to-do server on a file."""

    def __init__(self, servers: Servers, folder: Path, name: str = "todos") -> None:
        self.file = folder / f"{name}.db"
        self._servers = servers
        self._folder = folder
        self._starts = 0
        self.http = httpx2.Client(timeout=HANG_SECONDS)
        self.start()

    def start(self) -> None:
        """Start the server, on a new port."""
        self._starts += 1
        port, self._process = self._servers.start(self.file)
        self.url = f"http://127.0.0.1:{port}"

    def kill(self) -> None:
        """Send kill -9, and wait until the process is gone."""
        os.kill(self._process, signal.SIGKILL)
        wait_until(self._is_gone)

    def _is_gone(self) -> bool:
        try:
            os.kill(self._process, 0)
        except ProcessLookupError:
            return True
        return False

    def close(self) -> None:
        """End the server."""
        self.http.close()
        self.kill()

    def copy(self) -> Path:
        """Return a copy of the files of a server that was killed."""
        target = self._folder / f"copy-{self._starts}"
        target.mkdir()
        for file in self._folder.glob(f"{self.file.name}*"):
            shutil.copy(file, target)
        return target

    def replace_with(self, copy: Path | None) -> None:
        """Replace the files of a server that was killed with a copy, or with nothing."""
        for file in self._folder.glob(f"{self.file.name}*"):
            file.unlink()
        if copy is not None:
            for file in copy.iterdir():
                shutil.copy(file, self._folder)

    def push(self, mutations: list[dict[str, Any]], *, auth: str | None = None, **fields: Any) -> Any:
        """Send a push as a client would; return the reply."""
        body = {
            "pushVersion": 1,
            "clientGroupID": "group0000000000001",
            "profileID": "p0000000000000001",
            "schemaVersion": "1",
            "mutations": mutations,
        }
        return self._post("push", body | fields, auth)

    def pull(self, cookie: Any = None, *, auth: str | None = None, **fields: Any) -> Any:
        """Send a pull as a client would; return the reply."""
        body = {
            "pullVersion": 1,
            "clientGroupID": "group0000000000001",
            "profileID": "p0000000000000001",
            "schemaVersion": "1",
            "cookie": cookie,
        }
        return self._post("pull", body | fields, auth)

    def _post(self, path: str, body: Any, auth: str | None) -> httpx2.Response:
        headers = {"authorization": token() if auth is None else auth}
        return self.http.post(f"{self.url}/replicache/{path}", json=body, headers=headers)

    def put(self, todo_id: str, text: str = "", *, count: int = 0, tenant: str = "acme") -> None:
        """Write an item without the sync, as any other program of the tenant."""
        sent = self.http.put(f"{self.url}/todos/{tenant}/{todo_id}", json={"text": text, "count": count})
        assert sent.is_success, sent.text

    def delete(self, todo_id: str, *, tenant: str = "acme") -> None:
        """Delete an item without the sync."""
        assert self.http.delete(f"{self.url}/todos/{tenant}/{todo_id}").is_success

    def todos(self, tenant: str = "acme") -> dict[str, Any]:
        """Return the stored items of a tenant, by id."""
        found: dict[str, Any] = self.http.get(f"{self.url}/todos/{tenant}").json()
        return found

    def texts(self, tenant: str = "acme") -> dict[str, str]:
        """Return the stored texts, by id."""
        return {todo_id: todo["text"] for todo_id, todo in self.todos(tenant).items()}

    def fail(self, times: int) -> None:
        """Let the next transactions of the engine fail, as those of a busy table."""
        assert self.http.post(f"{self.url}/fail/{times}").is_success

    def reset(self) -> None:
        """Give every space a new epoch, as after a restore."""
        assert self.http.post(f"{self.url}/reset").is_success


def mutation(number: int, name: str, client: str = "client000000000001", **args: Any) -> dict[str, Any]:
    """Return a mutation as a client sends it."""
    return {"id": number, "clientID": client, "name": name, "args": args, "timestamp": 943.844}
