"""Parse a file of limits, and report every problem with its line.

Only `capacity` is required: `refill` defaults to it, `period_seconds` to 60, `kind` to token_bucket. A number
alone is a capacity, a string such as `100/hour+150` a rate. All problems are reported at once; a file with
one is rejected whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple, TypeVar

from solotable.errors import DataError
from solotable.systems.limiter.admin.entities import ENTITY_MODES, MODES, Mode, OnUnavailable
from solotable.systems.limiter.admin.limits import Limit, Limits, limits_of
from solotable.systems.limiter.admin.names import DEFAULT, entity_name, resource_name
from solotable.systems.limiter.admin.namespaces import namespace_name
from solotable.systems.limiter.admin.schedule import Schedule, ScheduleWindow

from .notation import parse_rate, seconds_of
from .source import Entry, MalformedText, Node, parse_text

ResultT = TypeVar("ResultT")

#: A YAML alias can make a small file large.
MOST_LEVELS = 100_000
_MOST_PROBLEMS = 20
_TOP = ("namespace", "system", "resources", "entities")
_LIMIT = ("capacity", "refill", "period_seconds", "period", "soft", "kind", "per", "timezone", "anchor")
_PERIOD_SECONDS = 60


class Level(NamedTuple):
    """Where limits are stored: None is every entity, or every resource."""

    entity: str | None
    resource: str | None

    def __str__(self) -> str:
        if self.entity is None:
            return "system" if self.resource is None else f"resource {self.resource}"
        on = "" if self.resource is None else f" on {self.resource}"
        return f"entity {self.entity}{on}"

    @property
    def order(self) -> tuple[str, str]:
        """Sorts the system first, then resources, then entities."""
        return (self.entity or "", self.resource or "")


@dataclass(frozen=True, slots=True)
class LevelContent:
    """The content of a level; one without limits has a mode, or is the system's with `on_unavailable`.

    `mode` None is "enforce", unless an operator denied the entity or let it bypass its limits.
    """

    limits: Limits | None
    on_unavailable: OnUnavailable | None = None
    schedule: Schedule | None = None
    mode: Mode | None = None

    @property
    def rules(self) -> Limits | Schedule | None:
        """What `set_limits` takes."""
        return self.limits if self.schedule is None else self.schedule

    def as_dict(self) -> dict[str, Any]:
        """Return the content as JSON has it."""
        limits = None if self.limits is None else [limit.as_dict() for limit in self.limits]
        schedule = None if self.schedule is None else self.schedule.as_dict()
        return {
            "limits": limits,
            "schedule": schedule,
            "on_unavailable": self.on_unavailable,
            "mode": self.mode or "enforce",
        }


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in a file."""

    line: int
    message: str


class ManifestError(DataError):
    """A file of limits is not valid; `problems` has all reasons, up to a bound."""

    def __init__(self, name: str, problems: list[Problem]) -> None:
        super().__init__("\n".join(f"{name}:{each.line}: {each.message}" for each in problems))
        self.name = name
        self.problems = problems


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """The limits of a file."""

    namespace: str | None
    levels: Mapping[Level, LevelContent]


def read_manifest(text: str, name: str) -> Manifest:
    """Parse a file, or raise ManifestError; one that is named *.json is JSON, any other YAML."""
    try:
        root = parse_text(text, is_json=name.lower().endswith(".json"))
    except MalformedText as error:
        raise ManifestError(name, [Problem(error.line, error.message)]) from error
    reader = _Reader()
    namespace = reader.document(root)
    if reader.problems:
        reader.problems.sort(key=lambda each: each.line)
        raise ManifestError(name, reader.problems)
    return Manifest(namespace=namespace, levels=reader.levels)


class _Stop(Exception):
    """There are too many levels or problems to continue."""


@dataclass(slots=True)
class _Reader:
    levels: dict[Level, LevelContent] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)

    def document(self, root: Node) -> str | None:
        """Parse everything, and return the namespace of the file."""
        namespace = None
        try:
            top = self._members(root, "the file", _TOP)
            for name, entry in (top or {}).items():
                match name:
                    case "namespace":
                        namespace = self._checked(entry.node.line, partial(namespace_name, entry.node.value))
                    case "system":
                        self._level(Level(None, None), entry)
                    case "resources":
                        self._resources(None, entry)
                    case "entities":
                        self._entities(entry)
            if not self.levels and not self.problems:
                # With --prune, applying it would remove everything.
                self._problem(root.line, "The file has no limits of the system, of resources or of entities.")
        except _Stop:
            pass
        return namespace

    def _entities(self, entry: Entry) -> None:
        for name, each in (self._members(entry.node, "entities") or {}).items():
            if self._checked(each.line, partial(entity_name, name)) is None:
                continue
            found = self._members(each.node, f"entity {name}", ("limits", "schedule", "mode", "resources"))
            if found is not None and not found:
                self._problem(each.line, f"Entity {name!r} has neither limits nor resources.")
            if found and not found.keys() <= {"resources"}:
                self._content(Level(name, None), each.line, found)
            if found and "resources" in found:
                self._resources(name, found["resources"])

    def _resources(self, entity: str | None, entry: Entry) -> None:
        for name, each in (self._members(entry.node, "resources") or {}).items():
            # Limits of an entity on all resources are stored as `_default_`, and some tools write that.
            if name == DEFAULT and entity is not None:
                self._level(Level(entity, None), each)
            elif self._checked(each.line, partial(resource_name, name)) is not None:
                self._level(Level(entity, name), each)

    def _level(self, level: Level, entry: Entry) -> None:
        is_system = level == (None, None)
        allowed = ("limits", "schedule", "mode", *(("on_unavailable",) if is_system else ()))
        found = self._members(entry.node, str(level), allowed)
        if found is None:
            return
        if not found:
            self._problem(entry.line, f"{_capital(level)} has no limits; leave it out to have none.")
        else:
            self._content(level, entry.line, found)

    def _content(self, level: Level, line: int, found: Mapping[str, Entry]) -> None:
        """Parse what a level has: limits, a schedule, a mode, and a choice for an unavailable table."""
        choice = self._choice(found["on_unavailable"]) if "on_unavailable" in found else None
        mode = self._mode(found["mode"], level) if "mode" in found else None
        if ("on_unavailable" in found and choice is None) or ("mode" in found and mode is None):
            return
        if "limits" not in found:
            self._without_limits(level, line, found, LevelContent(None, choice, mode=mode))
            return
        limits, schedule = self._limits(found["limits"]), None
        if limits is not None and "schedule" in found:
            schedule = self._schedule(found["schedule"], limits)
            if schedule is None:
                return
        if limits is not None:
            self._store(level, line, LevelContent(limits, choice, schedule, mode))

    def _without_limits(
        self, level: Level, line: int, found: Mapping[str, Entry], content: LevelContent
    ) -> None:
        if "schedule" in found:
            self._problem(found["schedule"].line, "A schedule needs limits, which apply outside of it.")
        elif content.on_unavailable is None and content.mode in (None, "enforce", "shadow"):
            self._problem(line, f"{_capital(level)} has no limits; leave it out to have none.")
        else:
            self._store(level, line, content)

    def _schedule(self, entry: Entry, limits: Limits) -> Schedule | None:
        members = self._members(entry.node, "schedule", ("timezone", "windows"))
        if members is None or "windows" not in members or not isinstance(members["windows"].node.value, list):
            self._problem(entry.line, "A schedule has a list of windows, each with when and limits.")
            return None
        zone = members["timezone"].node.value if "timezone" in members else "UTC"
        windows = [self._window(node) for node in members["windows"].node.value]
        if any(each is None for each in windows):
            return None
        return self._checked(
            entry.line,
            lambda: Schedule(limits, [each for each in windows if each is not None], timezone=zone),
            lines={key: each.line for key, each in members.items()},
        )

    def _window(self, node: Node) -> ScheduleWindow | None:
        members = self._members(node, "a window", ("when", "limits"))
        if members is None or not members.keys() >= {"when", "limits"}:
            self._problem(node.line, "A window has when, as in mon-fri 08:00-18:00, and limits.")
            return None
        limits, when = self._limits(members["limits"]), members["when"].node.value
        if limits is None:
            return None
        return self._checked(members["when"].line, lambda: ScheduleWindow(when, limits))

    def _store(self, level: Level, line: int, content: LevelContent) -> None:
        if level in self.levels:
            self._problem(line, f"The limits of {level} occur twice.")
            return
        if len(self.levels) == MOST_LEVELS:
            self._problem(line, f"A file has at most {MOST_LEVELS:,} levels.")
            raise _Stop
        self.levels[level] = content

    def _limits(self, entry: Entry) -> Limits | None:
        members = self._members(entry.node, "limits")
        if members is None:
            return None
        found = [self._limit(name, each) for name, each in members.items()]
        if any(each is None for each in found):
            return None
        return self._checked(entry.line, lambda: limits_of(each for each in found if each is not None))

    def _limit(self, name: str, entry: Entry) -> Limit | None:
        value = entry.node.value
        if type(value) is int:
            return self._checked(entry.line, lambda: Limit(name, value, value, _PERIOD_SECONDS))
        if isinstance(value, str):
            return self._checked(entry.line, lambda: parse_rate(name, value))
        members = self._members(entry.node, f"limit {name}", _LIMIT)
        if members is None:
            return None
        if "capacity" not in members:
            self._problem(entry.line, f"Limit {name!r} has no capacity.")
            return None
        if "period" in members and "period_seconds" in members:
            self._problem(entry.line, f"Limit {name!r} has period and period_seconds; give one of them.")
            return None
        given = {key: each.node.value for key, each in members.items() if key != "period"}
        if "period" in members:
            seconds = seconds_of(str(members["period"].node.value))
            if seconds is None:
                line = members["period"].line
                self._problem(line, "A period is second, minute, hour, day, or a number of seconds.")
                return None
            given["period_seconds"] = seconds
        elif given.get("kind") != "calendar":
            given.setdefault("period_seconds", _PERIOD_SECONDS)
        return self._checked(
            next((each.line for each in members.values()), entry.line),
            lambda: Limit.from_dict({"name": name, **given}),
            lines={key: each.line for key, each in members.items()},
        )

    def _mode(self, entry: Entry, level: Level) -> Mode | None:
        modes = MODES if level.entity is not None else [each for each in MODES if each not in ENTITY_MODES]
        mode = next((each for each in modes if each == entry.node.value), None)
        if mode is None:
            self._problem(entry.line, f"mode is {', '.join(modes)}; got {entry.node.value!r}.")
        return mode

    def _choice(self, entry: Entry) -> OnUnavailable | None:
        choice: OnUnavailable
        for choice in ("block", "allow"):
            if entry.node.value == choice:
                return choice
        self._problem(entry.line, f"on_unavailable is block or allow; got {entry.node.value!r}.")
        return None

    def _checked(
        self, line: int, make: Callable[[], ResultT], *, lines: Mapping[str, int] | None = None
    ) -> ResultT | None:
        """Return what `make` returns, or note its error on the line of the member that the error names."""
        try:
            return make()
        except DataError as error:
            message = str(error)
            named = (at for key, at in (lines or {}).items() if message.startswith(f"The {key} "))
            self._problem(next(named, line), message)
            return None

    def _members(self, node: Node, what: str, allowed: tuple[str, ...] = ()) -> dict[str, Entry] | None:
        """Return the members of a mapping; unknown ones are noted and left out."""
        if node.value is None:
            return {}
        if not isinstance(node.value, dict):
            listed = f" of {_listed(allowed)}" if allowed else " of names"
            self._problem(node.line, f"{_capital(what)} must be a mapping{listed}, not {_kind(node.value)}.")
            return None
        found: dict[str, Entry] = {}
        for name, entry in node.value.items():
            if allowed is _TOP and name.startswith("x-"):
                # Members for YAML anchors.
                continue
            if allowed and name not in allowed:
                self._problem(entry.line, f"{_capital(what)} has {_listed(allowed)}; got {name!r}.")
            else:
                found[name] = entry
        return found

    def _problem(self, line: int, message: str) -> None:
        self.problems.append(Problem(line, message))
        if len(self.problems) == _MOST_PROBLEMS:
            raise _Stop


def _listed(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _capital(what: object) -> str:
    text = str(what)
    return text[:1].upper() + text[1:]


def _kind(value: object) -> str:
    match value:
        case list():
            return "a list"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
    return "a string"
