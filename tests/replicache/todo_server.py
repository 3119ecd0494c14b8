"""A to-do list on the sync library, as a program: `python -m tests.replicache.todo_server`.

For each line that it reads, the path of a file, it forks a server and prints its port and its process: a
server that was killed starts again without the time of the imports. Besides the sync it has what tests need
from outside of a client: writes over HTTP, the stored items, errors of the engine on demand, and a new epoch.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
from dataclasses import replace
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel, ConfigDict, Field

from solotable import FROM_SCOPE, Database, Entity, Key, Store, Synced, Table, connect
from solotable._protocol.engine import Engine, ReplyT
from solotable._protocol.requests import Request, TransactWriteItems
from solotable.errors import Throttled
from solotable.sync import Mutators, Rejected, Sync
from solotable.web import Auth, JwtSettings, install
from solotable.web.replicache import replicache_router
from tests.killing import tell

from .server import AUDIENCE, ISSUER, SECRET

table = Table("Todos", tenant="tenant_id", ttl="ttl")
mutators = Mutators()


class Todo(Entity, table=table):
    """A task of a tenant."""

    key = Key("TENANT#{tenant_id}", "TODO#{todo_id}")
    sync = Synced()

    tenant_id: str = FROM_SCOPE
    todo_id: str
    text: str = ""
    count: int = 0


class NewTodo(BaseModel):
    """A new task."""

    id: str
    text: str = ""
    count: int = 0


class Rename(BaseModel):
    """A new text of a task."""

    id: str
    text: str


class Addition(BaseModel):
    """What to add to the count of a task."""

    id: str
    amount: int = 1


class Transfer(BaseModel):
    """What to move from the count of one task to that of another."""

    model_config = ConfigDict(populate_by_name=True)

    source: str = Field(alias="from")
    to: str
    amount: int = 1


class One(BaseModel):
    """One task."""

    id: str


@mutators.register("createTodo")
def create_todo(db: Store, args: NewTodo) -> None:
    """Create a task, unless it exists."""
    if args.text == "forbidden":
        raise Rejected("The text is forbidden.", code="forbidden")
    if db.get(Todo, todo_id=args.id) is None:
        db.put(Todo(todo_id=args.id, text=args.text, count=args.count))


@mutators.register("renameTodo")
async def rename_todo(db: Any, args: Rename) -> None:
    """Change the text of a task; a mutator may be async."""
    await db.update(Todo, todo_id=args.id, set={"text": args.text})


@mutators.register("addTo")
def add_to(db: Store, args: Addition) -> None:
    """Change the count of a task: running it twice would show."""
    todo = db.require(Todo, todo_id=args.id)
    db.put(todo.model_copy(update={"count": todo.count + args.amount}))


@mutators.register("transfer")
def transfer(db: Store, args: Transfer) -> None:
    """Move a part of a count: half of it would show."""
    add_to(db, Addition(id=args.source, amount=-args.amount))
    add_to(db, Addition(id=args.to, amount=args.amount))


@mutators.register("deleteTodo")
def delete_todo(db: Store, args: One) -> None:
    """Delete a task."""
    db.delete(Todo, todo_id=args.id)


class Faulty:
    """An engine whose next transactions fail, as those of a busy table."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.capabilities = engine.capabilities
        self.failures = 0

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        """Answer a request, or fail."""
        if self.failures and isinstance(request, TransactWriteItems):
            self.failures -= 1
            raise Throttled("ThrottlingException", "busy")
        return self._engine.handle(request)

    def close(self) -> None:
        """Close the engine."""
        self._engine.close()


def make_app(db: Database) -> FastAPI:
    """Return the app of a database."""
    faulty = Faulty(db.engine)
    # One attempt: a failure of the engine reaches the push.
    scope = replace(db.scope, retries=replace(db.scope.retries, attempts=1))
    sync = Sync(Database(faulty, scope), mutators=mutators, schema_versions={"1"}, poll_seconds=0.05)
    app = FastAPI()
    app.include_router(replicache_router(sync, pause_seconds=0.01))
    jwt = JwtSettings(issuer=ISSUER, audience=AUDIENCE, secrets=[SECRET])
    install(app, auth=Auth(jwt=jwt), cors_origins=["https://app.example"])

    @app.put("/todos/{tenant}/{todo_id}")
    def put(tenant: str, todo_id: str, body: dict[str, Any]) -> None:
        db.tenant(tenant).put(Todo(todo_id=todo_id, **body))

    @app.delete("/todos/{tenant}/{todo_id}")
    def delete(tenant: str, todo_id: str) -> None:
        db.tenant(tenant).delete(Todo, todo_id=todo_id)

    @app.get("/todos/{tenant}")
    def todos(tenant: str) -> dict[str, Todo]:
        return {each.todo_id: each for each in db.tenant(tenant).all(Todo.key.query())}

    @app.post("/fail/{times}")
    def fail(times: int) -> None:
        faulty.failures = times

    @app.post("/reset")
    def reset() -> None:
        sync.reset_all()

    return app


def main() -> None:
    """Fork a server for each line of the standard input."""
    # Nothing waits for a server that is killed.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            serve(line.strip())


def serve(file: str) -> None:
    """Serve a file until the process is killed."""
    with connect(f"sqlite:///{file}", table) as db, socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(128)
        tell(f"port {listener.getsockname()[1]} process {os.getpid()}")
        uvicorn.Server(uvicorn.Config(make_app(db), log_level="error")).run(sockets=[listener])


if __name__ == "__main__":
    main()
