"""Four old tables, one new one, and the mapping between them: 1:1, 1:N, N:1, and keys that move."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from collections.abc import Mapping as Dict
from dataclasses import replace
from typing import Any

from solotable import Database, Entity, Key, Table
from solotable._connect import over
from solotable._protocol.engine import Capabilities, Engine, ReplyT
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import DeleteItem, PutItem, Request, Scan, TransactWriteItems
from solotable._values import Item, dump_item
from solotable.migrations.apply.markers import is_marked, strip_markers
from solotable.migrations.apply.reconcile import read_items
from solotable.migrations.mapping import Mapping, Output, OutputKey, Part, Source, output_key
from solotable.migrations.migration import Migration
from solotable.migrations.worker import Worker
from solotable.migrations.workflow.control import ControlRecord
from solotable.testing.engines.wrapper import EngineWrapper
from solotable.urls import Url

app = Table("App")


class User(Entity, table=app):
    key = Key("USER#{user_id}", "USER")

    user_id: str
    name: str
    email: str


class Email(Entity, table=app):
    """Who has an address: its key moves from one user to another."""

    key = Key("EMAIL#{email}", "EMAIL")

    email: str
    user_id: str


class Survey(Entity, table=app):
    key = Key("SURVEY#{survey_id}", "SURVEY")

    survey_id: str
    title: str


class Section(Entity, table=app):
    key = Key("SURVEY#{survey_id}", "SECTION#{number}")

    survey_id: str
    number: str
    text: str


class Profile(Entity, table=app):
    key = Key("PROFILE#{profile_id}", "PROFILE")

    profile_id: str
    name: str | None = None
    theme: str | None = None


OLD = (
    Table("Users", partition="id", sort=None),
    Table("Surveys", partition="id", sort=None),
    Table("Accounts", partition="id", sort=None),
    Table("Settings", partition="id", sort=None),
)
mapping = Mapping(app, *(Source(each.name, key="id") for each in OLD))


@mapping.rule("Users")
def new_user(item: dict[str, Any]) -> Iterator[Entity]:
    if item.get("bad"):
        raise ValueError("a bad user")
    yield User(user_id=item["id"], name=item["name"], email=item["email"])
    yield Email(email=item["email"], user_id=item["id"])


@mapping.rule("Surveys")
def new_survey(item: dict[str, Any]) -> Iterator[Entity]:
    yield Survey(survey_id=item["id"], title=item["title"])
    for number, text in sorted(item["sections"].items()):
        yield Section(survey_id=item["id"], number=number, text=text)


@mapping.rule("Accounts", parts={Profile: ("name",)})
def new_name(item: dict[str, Any]) -> Iterator[Part]:
    yield Part(Profile, {"profile_id": item["id"]}, {"name": item["name"]})


@mapping.rule("Settings", parts={Profile: ("theme",)})
def new_theme(item: dict[str, Any]) -> Iterator[Part]:
    yield Part(Profile, {"profile_id": item["id"]}, {"theme": item["theme"]})


@mapping.inverse("Users", User)
def old_user(user: User) -> dict[str, Any]:
    return {"id": user.user_id, "name": user.name, "email": user.email}


def _survey_entities(db: Database, key: Dict[str, Any]) -> list[Entity]:
    survey = db.get(Survey, survey_id=key["id"], consistent=True)
    return [] if survey is None else [survey, *_sections(db, key["id"])]


def _sections(db: Database, survey: str) -> list[Section]:
    found = []
    for number in range(10):
        section = db.get(Section, survey_id=survey, number=str(number), consistent=True)
        if section is not None:
            found.append(section)
    return found


@mapping.inverse("Surveys", Survey, Section, key=lambda each: {"id": each.survey_id}, read=_survey_entities)
def old_survey(entities: list[Any]) -> dict[str, Any]:
    (survey,) = [each for each in entities if isinstance(each, Survey)]
    sections = {each.number: each.text for each in entities if isinstance(each, Section)}
    return {"id": survey.survey_id, "title": survey.title, "sections": sections}


@mapping.inverse("Accounts", Profile)
def old_account(profile: Profile) -> dict[str, Any] | None:
    return None if profile.name is None else {"id": profile.profile_id, "name": profile.name}


@mapping.inverse("Settings", Profile)
def old_settings(profile: Profile) -> dict[str, Any] | None:
    return None if profile.theme is None else {"id": profile.profile_id, "theme": profile.theme}


#: A worker that needs more steps than this never ends.
_MOST_STEPS = 2000


class MovableClock:
    """The time, and the seconds that a test adds."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class TickingClock(MovableClock):
    """A clock that moves by a millisecond each time it is read: the load of the machine does not matter."""

    def __init__(self) -> None:
        super().__init__()
        self._now = time.time()

    def __call__(self) -> float:
        self._now += 0.001
        return self._now + self.ahead


class Watched(EngineWrapper):
    """An engine that calls a test before and after each request, and waits by moving the test's clock."""

    def __init__(self, engine: Engine, clock: MovableClock, *, waits: bool = False) -> None:
        super().__init__(engine)
        self._waits = waits
        self.before: Callable[[Request[Any]], object] | None = None
        self.after: Callable[[Request[Any]], object] | None = None
        self.sent: list[Request[Any]] = []
        self._clock = clock
        self._busy = threading.local()

    @property
    def capabilities(self) -> Capabilities:
        return replace(super().capabilities, sleep=self.sleep)

    def sleep(self, seconds: float) -> None:
        """Wait; without `waits`, let other threads run and move the clock."""
        time.sleep(seconds if self._waits else 0)
        self._clock.ahead += 0 if self._waits else seconds

    def handle(self, request: Request[ReplyT], /) -> ReplyT:
        if getattr(self._busy, "on", False):
            return self.inner.handle(request)
        if not self._waits:
            self.sent.append(request)
        self._call(self.before, request)
        reply = self.inner.handle(request)
        self._call(self.after, request)
        return reply

    def _call(self, hook: Callable[[Request[Any]], object] | None, request: Request[Any]) -> None:
        if hook is None:
            return
        self._busy.on = True
        try:
            hook(request)
        finally:
            self._busy.on = False

    def once(self, kind: type[Request[Any]], act: Callable[[], object], *, table: str | None = None) -> None:
        """Act before the first request of this kind, or the first write of a table."""

        def before(request: Request[Any]) -> None:
            if isinstance(request, kind) and (table is None or _writes(request, table)):
                self.before = None
                act()

        self.before = before


def _writes(request: Request[Any], table: str) -> bool:
    actions = request.actions if isinstance(request, TransactWriteItems) else (request,)
    return any(getattr(each, "table", None) == table for each in actions)


class Lab:
    """Both sides of a migration, and what a test does to them."""

    def __init__(
        self,
        source: Engine,
        target: Engine,
        prefix: str = "",
        name: str = "lab",
        clock: MovableClock | None = None,
        *,
        waits: bool = False,
    ) -> None:
        self.clock = clock or MovableClock()
        self.prefix = prefix
        self.old_engine = Watched(source, self.clock, waits=waits)
        self.new_engine = Watched(target, self.clock, waits=waits)
        address = Url("sqlite", "test", settings={"prefix": prefix})
        self.old = over(self.old_engine, OLD, address, clock=self.clock)
        self.new = over(self.new_engine, (app,), address, clock=self.clock)
        self.migration = self.opened(name=name)

    @property
    def target_table(self) -> str:
        """The name of the target in its engine."""
        return self.prefix + app.name

    def opened(
        self, source: Engine | None = None, target: Engine | None = None, name: str = "lab"
    ) -> Migration:
        """Return the migration as another process opens it, over its own engines."""
        old = Database(source or self.old.engine, self.old.scope)
        new = Database(target or self.new.engine, self.new.scope)
        return Migration(name, mapping, sources=old, target=new, control_table=self.prefix + "control")

    def put(self, table: str, **values: Any) -> None:
        """Write an item of a source."""
        request = PutItem(table=self.prefix + table, item=dump_item(values))
        self.old.engine.handle(request)

    def delete(self, table: str, key: str) -> None:
        """Delete an item of a source."""
        self.old.engine.handle(DeleteItem(table=self.prefix + table, key={"id": {"S": key}}))

    def user(self, number: int, name: str = "Ana", email: str | None = None) -> None:
        """Write a user."""
        self.put("Users", id=f"u{number}", name=name, email=email or f"u{number}@x.example")

    def survey(self, number: int, sections: int = 2, title: str = "T") -> None:
        """Write a survey with some sections."""
        texts = {str(each): f"{title} {each}" for each in range(sections)}
        self.put("Surveys", id=f"s{number}", title=title, sections=texts)

    def fill(self, users: int = 0, surveys: int = 0, profiles: int = 0) -> None:
        """Write some items of each kind."""
        for number in range(users):
            self.user(number)
        for number in range(surveys):
            self.survey(number, sections=number % 4)
        for number in range(profiles):
            self.put("Accounts", id=f"p{number}", name=f"N{number}")
            if number % 2:
                self.put("Settings", id=f"p{number}", theme="dark")

    def sources(self) -> dict[str, list[Item]]:
        """Return the items of each source."""
        return {each.name: items_of(self.old.engine, self.prefix + each.name) for each in OLD}

    def expected(self) -> dict[OutputKey, Item]:
        """Return what the target should have: the outputs of all source items."""
        found: dict[OutputKey, Item] = {}
        for source, items in self.sources().items():
            for item in items:
                for key, output in outputs_of(source, item).items():
                    found[key] = {**found.get(key, {}), **output.item}
        return found

    def raw_target(self) -> list[Item]:
        """Return the items of the target as they are stored."""
        return items_of(self.new.engine, self.prefix + app.name)

    def stored(self) -> dict[OutputKey, Item]:
        """Return the items of the target without markers."""
        return {
            output_key(app.name, {name: item[name] for name in app.key_names}): strip_markers(item)
            for item in self.raw_target()
        }

    def marked(self) -> int:
        """Return the number of items with markers."""
        return sum(1 for item in self.raw_target() if is_marked(item))

    def check(self) -> None:
        """Assert that the target is what the sources become, item by item."""
        expected, stored = self.expected(), self.stored()
        missing = {key: expected[key] for key in expected.keys() - stored.keys()}
        extra = {key: stored[key] for key in stored.keys() - expected.keys()}
        wrong = {key: (expected[key], stored[key]) for key in expected.keys() & stored.keys()}
        wrong = {key: pair for key, pair in wrong.items() if pair[0] != pair[1]}
        assert (missing, extra, wrong) == ({}, {}, {})

    def check_in_pages(self) -> int:
        """Assert the same as `check` in constant memory; return the number of the target's items."""
        keys = 0
        for source in OLD:
            for items in pages_of(self.old.engine, self.prefix + source.name):
                wanted = {
                    key: output for item in items for key, output in outputs_of(source.name, item).items()
                }
                found = read_items(self.migration.target, [(app.name, each.key) for each in wanted.values()])
                for output, item in zip(wanted.values(), found, strict=True):
                    bare = {} if item is None else strip_markers(item)
                    if output.kind == "part":
                        bare = {name: bare[name] for name in output.item if name in bare}
                    assert bare == output.item
                # A profile has two parts.
                keys += sum(1 for each in wanted.values() if each.owned != {"theme"})
        stored = sum(len(items) for items in pages_of(self.new.engine, self.target_table))
        assert stored == keys
        return stored

    def start(self, **options: Any) -> None:
        """Create and start the migration."""
        self.migration.create(**options)
        self.migration.start()

    def run_to(self, *states: str, worker: Worker | None = None) -> ControlRecord:
        """Work until the migration is in one of these states."""
        worker = worker or Worker(self.migration)
        for _ in range(_MOST_STEPS):
            record = self.migration.record()
            if record.state in states:
                worker.release()
                return record
            if worker.step(record) == "waiting":
                self.clock.ahead += 0.05
        raise AssertionError(f"The migration is not {states} after {_MOST_STEPS} steps.")

    def catch_up(self, worker: Worker | None = None) -> None:
        """Apply every change."""
        worker = worker or Worker(self.migration)
        for _ in range(_MOST_STEPS):
            if worker.step() != "worked":
                worker.release()
                return
        raise AssertionError("The worker finds changes without end.")

    def verified(self) -> None:
        """Copy, catch up, and record a comparison without differences."""
        self.run_to("Running")
        self.check()
        self.migration.record_diff(compared=1, differences=0, flips=self.migration.record().flips)


def outputs_of(source: str, item: Item) -> Dict[OutputKey, Output]:
    """Return what an item of a source becomes."""
    return mapping.outputs(source, item).items


def items_of(engine: Engine, table: str) -> list[Item]:
    """Return the items of a table."""
    return [item for items in pages_of(engine, table) for item in items]


def pages_of(engine: Engine, table: str) -> Iterator[list[Item]]:
    """Yield the items of a table in pages."""
    start = None
    while True:
        page = engine.handle(Scan(table=table, start=start, consistent=True))
        yield decode_items(page.items or ())
        start = page.last_key
        if not start:
            return
