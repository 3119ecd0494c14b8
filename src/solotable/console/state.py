"""What the pages share: the database, its tables, the log of requests, and what a user may do."""

from __future__ import annotations

import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

from solotable._connect import scope_over, table_names
from solotable._entities.declare.table import Table
from solotable._entities.patterns.cost import SECONDS_PER_MONTH, Prices
from solotable._protocol.engine import Engine
from solotable._store import AdminStore, Database, Store
from solotable.pages.forms import Form
from solotable.urls import Url

from .data.catalog import Catalog, LiveTable
from .data.census import Census
from .data.request_log import LoggedEngine, RequestLog
from .security import Gate

#: The most notices that wait for the page after a redirect.
_MOST_NOTICES = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSettings:
    """What the command line chose."""

    prices: Prices
    #: Whether items may be changed.
    write: bool = False
    #: The models as they were given, to show them; empty without models.
    models: str = ""
    #: The address of the DynamoDB endpoint beside the console; empty without one.
    endpoint: str = ""
    clock: Callable[[], float] = time.time


@dataclass(kw_only=True)
class Console:
    """An opened database with everything that its pages need."""

    engine: LoggedEngine
    url: Url
    tables: Sequence[Table]
    settings: ConsoleSettings
    catalog: Catalog
    census: Census
    log: RequestLog
    database: Database | None
    gate: Gate = field(default_factory=Gate)
    _notices: OrderedDict[str, dict[str, str]] = field(default_factory=OrderedDict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def name(self) -> str:
        """The name of the database: of its file, or its URL."""
        if self.url.scheme == "sqlite":
            return PurePath(self.url.path).name if self.url.path else "memory"
        return self.url.text.partition("?")[0]

    @property
    def is_remote(self) -> bool:
        """Whether requests cost money."""
        return self.url.scheme == "aws"

    def store(self, tenant: str | None) -> Store | AdminStore:
        """Return the store of a tenant, or of all; only with models."""
        assert self.database is not None
        return self.database.admin() if tenant is None else self.database.tenant(tenant)

    def read_dollars(self, units: float) -> float:
        """Return the price of read units."""
        return units * self.settings.prices.read_per_million / 1e6

    def write_dollars(self, units: float) -> float:
        """Return the price of write units."""
        return units * self.settings.prices.write_per_million / 1e6

    def monthly(self, rcu: float, wcu: float) -> tuple[float, float]:
        """Return the dollars of a month at these units a second."""
        return self.read_dollars(rcu) * SECONDS_PER_MONTH, self.write_dollars(wcu) * SECONDS_PER_MONTH

    def notify(self, text: str, **link: str) -> str:
        """Keep a notice for the next page; return its id."""
        number = secrets.token_urlsafe(9)
        with self._lock:
            self._notices[number] = {"text": text, "href": "", "label": "", **link}
            while len(self._notices) > _MOST_NOTICES:
                self._notices.popitem(last=False)
        return number

    def notice(self, number: str) -> dict[str, str] | None:
        """Return a notice once."""
        with self._lock:
            return self._notices.pop(number, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """What a page gets: the variable segments of its path, the parameters, and the form of a POST."""

    path: str
    segments: tuple[str, ...]
    parameters: dict[str, str]
    form: Form = field(default_factory=Form)

    @property
    def tenant(self) -> str | None:
        """The tenant that the user chose."""
        return self.parameters.get("tenant") or None

    def get(self, name: str, default: str = "") -> str:
        """Return a parameter."""
        return self.parameters.get(name, default)


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A page: a template, and the data that it shows, which is also the answer as JSON."""

    template: str
    title: str
    data: dict[str, Any]
    table: LiveTable | None = None
    #: The section of the table that the navigation marks.
    section: str = ""
    #: Links above the page: text and path; the page itself is the last one.
    crumbs: tuple[tuple[str, str], ...] = ()
    status: int = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect:
    """An answer that sends the browser to another page of the console."""

    path: str
    #: A cookie to set: its name and value.
    cookie: tuple[str, str] | None = None


def open_console(engine: Engine, url: Url, tables: Sequence[Table], settings: ConsoleSettings) -> Console:
    """Return the console of an open engine; it creates and changes nothing."""
    log = RequestLog(settings.clock)
    logged = engine if isinstance(engine, LoggedEngine) else LoggedEngine(engine, log)
    catalog = Catalog(logged, url, tables)
    database = None
    if tables:
        # Not `connect`: it would create missing tables.
        scope = scope_over(table_names(tables, url), tables, [secrets.token_bytes(32)], settings.clock)
        database = Database(logged, scope)
    return Console(
        engine=logged,
        url=url,
        tables=tables,
        settings=settings,
        catalog=catalog,
        census=Census(logged, catalog, settings.clock, set() if url.scheme == "aws" else None),
        log=logged.log,
        database=database,
    )
