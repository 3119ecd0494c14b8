"""Open a database URL as a store: the only module that names concrete engines."""

from __future__ import annotations

import os
import random
import re
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from solotable._entities.declare import table as declared
from solotable._flows.cursors import CursorSigner
from solotable._flows.retry import Retries
from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._protocol.error_texts import LATEST
from solotable._protocol.requests import Control
from solotable._store import AsyncDatabase, Database
from solotable._store.observation import ObservedAsyncEngine, ObservedEngine, Observer, check_observer
from solotable._store.runner import Inline, Threaded
from solotable._store.thread_pool import ThreadPool
from solotable.errors import DeclarationError, ServiceError, TableNotFound
from solotable.urls import Url

_THREADS = 16
_TABLE_NAME = re.compile(r"[A-Za-z0-9_.-]{3,255}")


def connect(
    url: str,
    *tables: declared.Table,
    cursor_secrets: Sequence[bytes] = (),
    clock: Callable[[], float] = time.time,
    session: Any = None,
    observer: Observer | None = None,
) -> Database:
    """Open a URL for these tables and return the store of their entities.

    `cursor_secrets` sign cursors (the first signs, all verify); without them cursors are valid in
    this process only. `session` is a botocore or boto3 session for `http://` and `aws://`. `observer` is
    called after each request; see `solotable.observe`.
    """
    if observer is not None:
        check_observer(observer)
    address = Url.parse(url)
    engine = open_engine(address, clock=clock, session=session)
    try:
        opened = over(engine, tables, address, cursor_secrets=cursor_secrets, clock=clock)
        return opened if observer is None else Database(ObservedEngine(engine, observer), opened.scope)
    except BaseException:
        engine.close()
        raise


def connect_async(
    url: str,
    *tables: declared.Table,
    cursor_secrets: Sequence[bytes] = (),
    clock: Callable[[], float] = time.time,
    session: Any = None,
    observer: Observer | None = None,
) -> AsyncDatabase:
    """Open a URL as `connect` does, for use with `await`."""
    if observer is not None:
        check_observer(observer)
    blocking = connect(url, *tables, cursor_secrets=cursor_secrets, clock=clock, session=session)
    engine = to_async(blocking.engine)
    if observer is not None:
        engine = ObservedAsyncEngine(engine, observer)
    return AsyncDatabase(engine, blocking.scope)


def over(
    engine: Engine,
    tables: Sequence[declared.Table],
    address: Url | None = None,
    *,
    cursor_secrets: Sequence[bytes] = (),
    clock: Callable[[], float] = time.time,
) -> Database:
    """Return a store over an open engine; on an embedded engine, missing tables are created."""
    names = table_names(tables, address)
    if address is None or address.scheme == "sqlite":
        for table in tables:
            ensure(engine, table, names[table.name])
    return Database(engine, scope_over(names, tables, cursor_secrets, clock))


def to_async(engine: Engine) -> AsyncEngine:
    """Return a blocking engine for use with `await`."""
    capabilities = engine.capabilities
    if capabilities.instant:
        return Inline(engine)
    if capabilities.make_async is not None and (made := capabilities.make_async()) is not None:
        return made
    return Threaded(engine, ThreadPool(_THREADS, name="solotable"))


def open_engine(address: Url, *, clock: Callable[[], float] = time.time, session: Any = None) -> Engine:
    """Open the engine of a URL."""
    if address.scheme == "sqlite":
        from solotable.engines import sqlite

        durability: Any = address.settings.get("durability", "full")
        if durability not in ("full", "relaxed"):
            raise DeclarationError(f"{address.text}: durability is full or relaxed.")
        texts: Any = address.settings.get("error_texts", LATEST)
        return sqlite.open(
            address.path or sqlite.MEMORY,
            durability=durability,
            lock_timeout_seconds=_seconds(address, "lock_timeout", sqlite.LOCK_SECONDS),
            clock=clock,
            error_texts=texts,
            heat=_switch(address, "heat"),
        )
    from solotable.engines import dynamodb

    if address.settings.get("client", "botocore") != "botocore":
        raise DeclarationError(f"{address.text}: client takes botocore; leave it out for the default.")
    return dynamodb.open(
        region=address.settings.get("region"),
        profile=address.settings.get("profile"),
        endpoint_url=address.endpoint,
        session=session,
        botocore="client" in address.settings,
    )


def _switch(address: Url, setting: str) -> bool:
    text = address.settings.get(setting, "on")
    if text not in ("on", "off"):
        raise DeclarationError(f"{address.text}: {setting} is on or off, got {text!r}.")
    return text == "on"


def _seconds(address: Url, setting: str, default: float) -> float:
    text = address.settings.get(setting)
    if text is None:
        return default
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= threading.TIMEOUT_MAX:
        raise DeclarationError(f"{address.text}: {setting} is a number of seconds, got {text!r}.")
    return seconds


def ensure(engine: Engine, table: declared.Table, name: str) -> None:
    """Create a declared table, or its missing indexes, stream and time to live."""
    try:
        described = engine.handle(Control(operation="DescribeTable", members={"TableName": name}))["Table"]
    except TableNotFound:
        try:
            engine.handle(Control(operation="CreateTable", members=table.definition(name)))
        except ServiceError as error:
            # Another process created it first.
            if error.code != "ResourceInUseException":
                raise
        _ensure_ttl(engine, table, name)
        return
    _ensure_indexes(engine, table, name, described)
    _ensure_stream(engine, table, name, described)
    _ensure_ttl(engine, table, name)


def _ensure_indexes(engine: Engine, table: declared.Table, name: str, described: dict[str, Any]) -> None:
    there = {each["IndexName"] for each in described.get("GlobalSecondaryIndexes", ())}
    wanted = table.definition(name)
    for index in wanted.get("GlobalSecondaryIndexes", ()):
        if index["IndexName"] in there:
            continue
        engine.handle(
            Control(
                operation="UpdateTable",
                members={
                    "TableName": name,
                    "AttributeDefinitions": wanted["AttributeDefinitions"],
                    "GlobalSecondaryIndexUpdates": [{"Create": index}],
                },
            )
        )


def _ensure_stream(engine: Engine, table: declared.Table, name: str, described: dict[str, Any]) -> None:
    if not table.stream or described.get("StreamSpecification", {}).get("StreamEnabled"):
        return
    members = {"TableName": name, "StreamSpecification": dict(declared.STREAM)}
    try:
        engine.handle(Control(operation="UpdateTable", members=members))
    except ServiceError as error:
        # Another process created it first.
        if "already has an enabled stream" not in error.message:
            raise


def _ensure_ttl(engine: Engine, table: declared.Table, name: str) -> None:
    if table.ttl is None:
        return
    now = engine.handle(Control(operation="DescribeTimeToLive", members={"TableName": name}))
    if now["TimeToLiveDescription"].get("TimeToLiveStatus") in ("ENABLED", "ENABLING"):
        return
    wanted = {"AttributeName": table.ttl, "Enabled": True}
    members = {"TableName": name, "TimeToLiveSpecification": wanted}
    try:
        engine.handle(Control(operation="UpdateTimeToLive", members=members))
    except ServiceError as error:
        # Another process created it first.
        if "TimeToLive is already enabled" not in error.message:
            raise


def table_names(tables: Sequence[declared.Table], address: Url | None) -> dict[str, str]:
    """Return the name of each table in the engine of a URL, by its declared name."""
    if not tables:
        raise DeclarationError(
            "connect() needs at least one table: connect(url, table, ...), or table.open(url)."
        )
    named = [table.name for table in tables]
    if len(set(named)) < len(named):
        twice = next(name for name in named if named.count(name) > 1)
        raise DeclarationError(f"Two tables have the name {twice!r}; pass each table once.")
    if address is not None and address.table is not None:
        if len(tables) > 1:
            raise DeclarationError(f"{address.text} names one table; open several without a name in the URL.")
        return {tables[0].name: _check_name(address.table)}
    prefix = address.settings.get("prefix", "") if address is not None else ""
    return {table.name: _check_name(prefix + table.name) for table in tables}


def _check_name(name: str) -> str:
    # DynamoDB: a table is also named by its ARN.
    if not _TABLE_NAME.fullmatch(name) and not name.startswith("arn:"):
        raise DeclarationError(
            f"{name!r} is not a valid name of a DynamoDB table; use 3 to 255 letters, digits, underscores, "
            f"hyphens and dots."
        )
    return name


def scope_over(
    names: Mapping[str, str],
    tables: Sequence[declared.Table],
    cursor_secrets: Sequence[bytes],
    clock: Callable[[], float],
) -> Scope:
    """Return the scope of a store over tables that have these names in its engine."""
    given = list(cursor_secrets) or _secrets_of_environment() or [secrets.token_bytes(32)]
    return Scope(
        names=names,
        tables=tuple(tables),
        clock=clock,
        retries=Retries(random=random.random),
        cursor_signer=CursorSigner(secrets=given, clock=clock),
        tokens=lambda: secrets.token_hex(16),
    )


def _secrets_of_environment() -> list[bytes]:
    text = os.environ.get("SOLOTABLE_CURSOR_SECRETS", "")
    return [secret.strip().encode() for secret in text.split(",") if secret.strip()]
