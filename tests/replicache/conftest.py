"""One Node process and one to-do server for all scenarios; each scenario has its own tenant."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from .clients import Client, Driver, installed
from .server import Servers, TodoServer, mutation, token

_tenants = itertools.count()


@dataclass
class World:
    """A tenant of the to-do server, and clients of its users."""

    driver: Driver
    server: TodoServer
    tenant: str

    def open(self, user: str = "ann", **options: Any) -> Client:
        """Open a client of a user; those of one user and name share their store, as tabs of one browser."""
        name = options.pop("name", f"{self.tenant}/{user}/{id(options)}/{next(_tenants)}")
        auth = options.pop("auth", None) or self.auth(user)
        return self.driver.open(name=name, server=self.server.url, auth=auth, **options)

    def auth(self, user: str = "ann") -> str:
        """Return the credential of a user of this tenant."""
        return token(user, self.tenant)

    def put(self, todo_id: str, text: str = "", *, count: int = 0) -> None:
        """Write an item as another program does."""
        self.server.put(todo_id, text, count=count, tenant=self.tenant)

    def delete(self, todo_id: str) -> None:
        """Delete an item as another program does."""
        self.server.delete(todo_id, tenant=self.tenant)

    def texts(self) -> dict[str, str]:
        """Return the stored texts, by id."""
        return self.server.texts(self.tenant)

    def counts(self) -> dict[str, int]:
        """Return the stored counts, by id."""
        return {todo_id: todo["count"] for todo_id, todo in self.server.todos(self.tenant).items()}

    def push(self, *mutations: dict[str, Any], user: str = "ann", **fields: Any) -> Any:
        """Send a push without a client."""
        return self.server.push(list(mutations), auth=self.auth(user), **fields)

    def pull(self, cookie: Any = None, *, user: str = "ann", **fields: Any) -> Any:
        """Send a pull without a client."""
        return self.server.pull(cookie, auth=self.auth(user), **fields)


@pytest.fixture(scope="session")
def driver() -> Iterator[Driver]:
    made = Driver(installed())
    yield made
    made.close()


@pytest.fixture(scope="session")
def servers(driver: Driver, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    made = Servers(tmp_path_factory.mktemp("servers") / "log")
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_server(servers: Servers, tmp_path_factory: pytest.TempPathFactory) -> Iterator[TodoServer]:
    made = TodoServer(servers, tmp_path_factory.mktemp("todos"))
    yield made
    made.close()


@pytest.fixture
def world(driver: Driver, shared_server: TodoServer) -> World:
    """A new tenant of the shared server."""
    return World(driver, shared_server, f"t{next(_tenants)}")


@pytest.fixture
def own_world(driver: Driver, servers: Servers, tmp_path: Path) -> Iterator[World]:
    """A tenant of a server that the test may kill."""
    made = TodoServer(servers, tmp_path)
    yield World(driver, made, "acme")
    made.close()


__all__ = ["World", "mutation"]
