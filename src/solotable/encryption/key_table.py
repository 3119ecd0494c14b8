"""KeyTable: subject keys in a separate table, in a file or on DynamoDB."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Index
from solotable._entities.keys.key import Key
from solotable._entities.patterns.conditions import missing
from solotable._protocol.requests import Control
from solotable._table import Table
from solotable.errors import AlreadyExists, ConditionFailed, NotConfigured, ServiceError, TableNotFound
from solotable.fork_safe import new_lock
from solotable.urls import Url

from .key_store import KeyRecord

if TYPE_CHECKING:
    from solotable._entities.patterns.query import Query
    from solotable._protocol.engine import Engine
    from solotable._store import Database

#: The indexes have no keys of subjects, so that destroying one is a write of one item.
table = Table(
    "SubjectKeys",
    indexes=[Index("GSI1", projection="KEYS_ONLY"), Index("GSI2", projection="KEYS_ONLY")],
)
#: How long `create` waits for Amazon to make the table.
_CREATION_SECONDS = 300
_PAGE = 500


class _SubjectKey(Entity, table=table, tag="SubjectKey"):
    """A KeyRecord as an item."""

    key = Key("KEY#{name}", "KEY")
    of_owner = Key("OWNER#{owner}", "{name}", index="GSI1")
    #: Only forgotten subjects are in this index.
    by_time = Key("FORGOTTEN", "{forgotten_at}#{name}", index="GSI2")
    name: str
    #: The tenant after "T", or "G" for global entities.
    owner: str
    kind: str
    tenant: str | None
    subject: str
    wrapped: bytes | None
    created_at: datetime
    forgotten_at: datetime | None = None
    had_key: bool = False


class KeyTable:
    """Stores subject keys in the table `SubjectKeys` of a URL: a file, or DynamoDB.

    Use another file than for the data, or another table, without point-in-time recovery and backups. `create`
    makes the table once. It is opened on first use, and a missing one is an error: writing with an empty
    table would give subjects other keys than their stored data has. In memory it always exists.
    """

    def __init__(self, url: str, *, session: Any = None) -> None:
        self._url = Url.parse(url)
        self._session = session
        self._lock = new_lock()
        self._opened: Database | None = None

    @classmethod
    def create(cls, url: str, *, session: Any = None) -> Self:
        """Create the table, once and before its first use; raise NotConfigured if it exists."""
        made = cls(url, session=session)
        if made._in_memory:
            return made
        engine = made._engine()
        try:
            if made._describe(engine) is not None:
                raise NotConfigured(f"{url} already has subject keys; open it with KeyTable({url!r}).")
            if others := made._other_tables(engine):
                raise NotConfigured(f"{others} Nothing was created.")
            engine.handle(Control(operation="CreateTable", members=table.definition(made._name)))
            deadline = time.monotonic() + _CREATION_SECONDS
            while (made._describe(engine) or {}).get("TableStatus") != "ACTIVE":
                if time.monotonic() > deadline:
                    raise NotConfigured(f"{made._name} is not active after {_CREATION_SECONDS} seconds.")
                time.sleep(0.2)
        finally:
            engine.close()
        return made

    def __repr__(self) -> str:
        return f"KeyTable({self._url.text!r})"

    def close(self) -> None:
        """Close the connection; the next call opens it again."""
        with self._lock:
            opened, self._opened = self._opened, None
        if opened is not None:
            opened.close()

    def read(self, names: Sequence[str]) -> dict[str, KeyRecord]:
        """Return the records with these names, as the last write left them; missing ones are left out."""
        found = self._db().get_many(_SubjectKey, [{"name": name} for name in names], consistent=True)
        return {each.name: _record(each) for each in found if each is not None}

    def add(self, record: KeyRecord) -> KeyRecord:
        """Store a record unless one has its name; return the stored one."""
        try:
            return _record(self._db().create(_entity(record)))
        except AlreadyExists:
            return self.read([record.name])[record.name]

    def rewrap(self, record: KeyRecord, wrapped: bytes) -> bool:
        """Replace the encrypted key of a record; return False if it has changed since it was read."""
        try:
            self._db().put(
                _entity(replace(record, wrapped=wrapped)), where=lambda key: key.wrapped == record.wrapped
            )
        except ConditionFailed:
            return False
        return True

    def forget(self, record: KeyRecord) -> KeyRecord:
        """Replace a record by one without a key; return the stored one, which keeps its first time."""
        try:
            return _record(self._db().put(_entity(record), where=lambda key: missing(key.forgotten_at)))
        except ConditionFailed:
            return self.read([record.name])[record.name]

    def records(self, *, tenant: str | None) -> Iterator[KeyRecord]:
        """Yield the records of a tenant; None: those of global entities."""
        return self._query(_SubjectKey.of_owner.query(owner=_owner(tenant)))

    def all_records(self) -> Iterator[KeyRecord]:
        """Yield every record; it scans the table."""
        for each in self._db().admin().scan(_SubjectKey, budget=sys.maxsize):
            yield _record(each)

    def forgotten(self) -> Iterator[KeyRecord]:
        """Yield the records of forgotten subjects, the first one first."""
        return self._query(_SubjectKey.by_time.query())

    def scrub(self) -> tuple[str, ...]:
        """Rewrite a file without the bytes of destroyed keys; return what may still bring them back."""
        engine = self._db().engine
        warnings = self._recovery(engine)
        if others := self._other_tables(engine):
            warnings.append(others)
        if self._url.path is not None:
            from solotable.engines.sqlite.maintenance.compact import compact

            if compact(self._url.path).held_by_readers:
                warnings.append(
                    f"{self._url.path} still has the old pages, because another process reads it; "
                    f"forget the subject again."
                )
        return tuple(warnings)

    def _query(self, query: Query[_SubjectKey]) -> Iterator[KeyRecord]:
        cursor = None
        while True:
            page = self._db().page(query, limit=_PAGE, cursor=cursor)
            yield from map(_record, page)
            cursor = page.cursor
            if cursor is None:
                return

    def _recovery(self, engine: Engine) -> list[str]:
        """Return the settings of the table that keep the keys that it had."""
        found: list[str] = []
        named = {"TableName": self._name}
        described = self._describe(engine) or {}
        if described.get("StreamSpecification", {}).get("StreamEnabled"):
            found.append(f"{self._name} has a stream, whose records keep a destroyed key for 24 hours.")
        try:
            backups = engine.handle(Control(operation="DescribeContinuousBackups", members=named))
            status = backups["ContinuousBackupsDescription"].get("PointInTimeRecoveryDescription", {})
            if status.get("PointInTimeRecoveryStatus") == "ENABLED":
                days = status.get("RecoveryPeriodInDays", 35)
                found.append(f"{self._name} has point-in-time recovery, which keeps a key for {days} days.")
            if engine.handle(Control(operation="ListBackups", members=named)).get("BackupSummaries"):
                found.append(f"{self._name} has backups on demand; delete those that are older.")
        except ServiceError as error:
            found.append(f"The backups of {self._name} are not known: {error.code}.")
        return found

    def _other_tables(self, engine: Engine) -> str | None:
        """Return a sentence about other tables in the file of the keys; None if there are none."""
        if self._url.path is None:
            return None
        listed = engine.handle(Control(operation="ListTables", members={}))["TableNames"]
        others = [name for name in listed if name != self._name]
        if not others:
            return None
        return (
            f"{self._url.path} has other tables ({others[0]}), so the backups of the file have the keys too; "
            f"use a separate file for the keys."
        )

    @property
    def _in_memory(self) -> bool:
        return self._url.scheme == "sqlite" and self._url.path is None

    @property
    def _name(self) -> str:
        from solotable._connect import table_names

        return table_names([table], self._url)[table.name]

    def _engine(self) -> Engine:
        from solotable._connect import open_engine

        return open_engine(self._url, session=self._session)

    def _describe(self, engine: Engine) -> dict[str, Any] | None:
        try:
            described: dict[str, Any] = engine.handle(
                Control(operation="DescribeTable", members={"TableName": self._name})
            )["Table"]
        except TableNotFound:
            return None
        return described

    def _db(self) -> Database:
        with self._lock:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _open(self) -> Database:
        from solotable._connect import over

        lost = (
            f"{self._url.text} has no table of subject keys; restore it, or call "
            f"KeyTable.create({self._url.text!r}) once before the first use."
        )
        if self._url.path is not None and not Path(self._url.path).exists():
            raise NotConfigured(lost)
        engine = self._engine()
        try:
            if not self._in_memory and self._describe(engine) is None:
                raise NotConfigured(lost)
            return over(engine, [table], self._url)
        except BaseException:
            engine.close()
            raise


def _owner(tenant: str | None) -> str:
    return "G" if tenant is None else f"T{tenant}"


def _entity(record: KeyRecord) -> _SubjectKey:
    return _SubjectKey(owner=_owner(record.tenant), **asdict(record))


def _record(entity: _SubjectKey) -> KeyRecord:
    return KeyRecord(**{name: getattr(entity, name) for name in KeyRecord.__dataclass_fields__})
