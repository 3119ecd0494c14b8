"""Programs that fork while they have a store open, with observers, a keyring and storages.

Run as `python -m tests.unit.store.forking PROGRAM ARGUMENTS`. Parent and children do the same work at the
same time; the parent then compares the table with what all of them did.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from collections.abc import Callable
from functools import partial
from io import StringIO
from typing import Annotated, Any

from pydantic import Field

from solotable import (
    Blob,
    Database,
    Encrypted,
    Entity,
    Key,
    Offloaded,
    Store,
    Table,
    Unique,
)
from solotable.blobs import FolderStorage, MemoryStorage
from solotable.blobs.s3 import S3Storage
from solotable.encryption import Keyring
from solotable.observe import EmfObserver, PrometheusObserver, combine
from tests.s3_server import s3_client

CHILDREN = 2
ROUNDS = 8
keyring = Keyring(lambda: {"k": bytes(32)}, per_tenant=True)
memory = MemoryStorage()


class Folder(FolderStorage):
    """A folder that the program chooses."""

    def __init__(self) -> None:
        super().__init__("unused")

    def use(self, folder: str) -> None:
        """Store the objects below this folder."""
        super().__init__(folder)


folder = Folder()
shop = Table("Shop", stream=True)


class Account(Entity, table=shop):
    """Everything that a fork can break."""

    key = Key("ACCOUNT#{name}", "ACCOUNT")
    name: str
    visits: int = 0
    changes: int = 0
    log: list[str] = Field(default_factory=list)
    secret: Annotated[str, Encrypted(keyring)] = ""
    photo: Annotated[Blob | None, Offloaded(folder, inline_bytes=10)] = None
    draft: Annotated[Blob | None, Offloaded(memory, inline_bytes=10)] = None


class Handle(Entity, table=shop):
    """A unique name."""

    key = Key("HANDLE#{owner}", "HANDLE")
    owner: str
    handle: Annotated[str, Unique()]


class Line(Entity, table=shop):
    """One of many items in a partition."""

    key = Key("LINES#{name}", "{number:06d}")
    name: str
    number: int


def fork(work: Callable[[], None]) -> int:
    """Run the work in a forked child, which ends without Python's own clean-up."""
    child = os.fork()
    if child == 0:
        status = 0
        try:
            work()
        except BaseException:  # noqa: BLE001 - the parent reports it
            traceback.print_exc()
            status = 1
        os._exit(status)
    return child


def wait_for(children: list[int]) -> None:
    """Wait for children, which must succeed."""
    statuses = [os.waitpid(child, 0)[1] for child in children]
    assert statuses == [0] * len(children), statuses


def _with(account: Account, **changes: Any) -> Account:
    return account.model_copy(update=changes)


def work(db: Store, name: str) -> None:
    """Use each verb, on entities of this process and on one that all share."""
    for number in range(ROUNDS):
        db.upsert(Account, name=name, set={"secret": f"{name}-{number}"})
        db.update(Account, name="shared", add={"visits": 1})
        db.modify(Account, lambda each: each.model_copy(update={"changes": each.changes + 1}), name="shared")
        db.update(Account, name="shared", prepend={"log": [name]}, set_if_missing={"secret": "first"})
        blob = Blob(f"{name} {number} ".encode() * 100)
        found = db.modify(Account, partial(_with, photo=blob, draft=blob), name=name)
        assert found.secret == f"{name}-{number}"
        read = db.require(Account, name=name)
        assert read.photo is not None
        assert read.draft is not None
        assert (read.photo.read(), read.draft.read()) == (blob.read(), blob.read())
        db.put(Handle(owner=name, handle=f"{name}-{number}"))
        with db.batch() as batch:
            for line in range(30):
                batch.put(Line(name=name, number=line))
        assert db.delete_partition(Line.key.query(name=name)).total == 30


def verbs(url: str, place: str) -> None:
    """Parent and children use one open store."""
    folder.use(place)
    metrics, lines = PrometheusObserver(), StringIO()
    with shop.open(url, observer=combine(metrics, EmfObserver(lines))) as db:
        db.put(Account(name="shared"))
        work(db, "before")
        names = [f"child{number}" for number in range(CHILDREN)]
        children = [fork(lambda name=name: work(db, name)) for name in names]  # type: ignore[misc] # bound now
        work(db, "parent")
        wait_for(children)
        _check(db, ["before", "parent", *names])
        assert "solotable" in metrics.render()


def busy(url: str, place: str) -> None:
    """Threads of the parent use the store while it forks; the children find every lock free."""
    folder.use(place)
    with shop.open(url, observer=combine(PrometheusObserver(), EmfObserver(StringIO()))) as db:
        db.put(Account(name="shared"))
        threads = [threading.Thread(target=work, args=(db, f"thread{number}")) for number in range(2)]
        for thread in threads:
            thread.start()
        names = [f"child{number}" for number in range(CHILDREN)]
        for name in names:
            wait_for([fork(lambda name=name: work(db, name))])  # type: ignore[misc] # bound now
        for thread in threads:
            thread.join()
        _check(db, ["thread0", "thread1", *names])


def awaited(url: str, place: str) -> None:
    """The child of a program with an async store runs an event loop of its own."""
    folder.use(place)
    opened = shop.open_async(url)

    async def use(name: str) -> None:
        for number in range(ROUNDS):
            blob = Blob(f"{name} {number} ".encode() * 100)
            stored = await opened.upsert(Account, name=name, set={"photo": blob, "secret": "s"})
            assert stored.photo is not None
            await opened.update(Account, name="shared", add={"visits": 1})
            read = await opened.require(Account, name=name)
            assert read.photo is not None
            assert await read.photo.aread() == blob.read()

    async def check() -> None:
        shared = await opened.require(Account, name="shared")
        assert shared.visits == ROUNDS * 2, shared
        await opened.close()

    asyncio.run(_put_shared(opened))
    children = [fork(lambda: asyncio.run(use("child")))]
    wait_for(children)
    asyncio.run(use("parent"))
    asyncio.run(check())


async def _put_shared(opened: Any) -> None:
    await opened.put(Account(name="shared"))


def _check(db: Database, names: list[str]) -> None:
    shared = db.require(Account, name="shared")
    total = ROUNDS * len(names)
    assert (shared.visits, shared.changes, len(shared.log)) == (total, total, total), shared
    assert {name: shared.log.count(name) for name in names} == dict.fromkeys(names, ROUNDS)
    for name in names:
        account = db.require(Account, name=name)
        assert account.secret == f"{name}-{ROUNDS - 1}"
        assert account.photo is not None
        assert account.photo.read() == f"{name} {ROUNDS - 1} ".encode() * 100
        assert db.require(Handle, owner=name).handle == f"{name}-{ROUNDS - 1}"
        assert list(db.all(Line.key.query(name=name))) == []


def s3(endpoint: str, bucket: str) -> None:
    """Parent and children use one S3 client, whose connections they must not share."""
    storage = S3Storage(s3_client(endpoint), bucket)

    def use(name: str) -> None:
        for number in range(20):
            data = f"{name} {number} ".encode() * 1_000
            storage.put(name, data, None)
            assert storage.get(name) == data, name
            assert storage.touch(name, None)
            assert name in [each.name for each in storage.list("")]

    use("before")
    names = [f"child{number}" for number in range(CHILDREN)]
    children = [fork(lambda name=name: use(name)) for name in names]  # type: ignore[misc] # bound now
    use("parent")
    wait_for(children)
    assert sorted(each.name for each in storage.list("")) == sorted(["before", "parent", *names])


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
