"""What would have to be written so that the stored limits are those of a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from solotable.systems.limiter.admin.entities import StoredLimits
from solotable.systems.limiter.admin.names import DEFAULT

from .notation import format_limit
from .parse import Level, LevelContent, Manifest

Action = Literal["add", "change", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One level that differs: what is stored and what the file says, None where there is nothing."""

    level: Level
    before: LevelContent | None
    after: LevelContent | None

    @property
    def action(self) -> Action:
        """What applying would do."""
        if self.before is None:
            return "add"
        return "remove" if self.after is None else "change"

    def as_dict(self) -> dict[str, Any]:
        """Return the change as JSON has it."""
        return {
            "action": self.action,
            "entity": self.level.entity,
            "resource": self.level.resource,
            "before": _as_dict(self.before),
            "after": _as_dict(self.after),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The changes in the order of their levels, and the levels that the file does not name and that stay."""

    changes: tuple[Change, ...]
    same: int
    unnamed: tuple[Level, ...]

    def count(self, action: Action) -> int:
        """Return how many levels an action is for."""
        return sum(change.action == action for change in self.changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return {
            "changes": [change.as_dict() for change in self.changes],
            "same": self.same,
            "unnamed": [{"entity": each.entity, "resource": each.resource} for each in self.unnamed],
        }


def compare(manifest: Manifest, stored: Mapping[Level, LevelContent], *, prune: bool) -> Plan:
    """Return what differs between a file and what is stored; `prune` also removes what it does not name."""
    wanted = dict(manifest.levels)
    changes = [
        Change(level=level, before=stored.get(level), after=wanted[level])
        for level in wanted
        if stored.get(level) != wanted[level]
    ]
    unnamed = [level for level in stored if level not in wanted]
    if prune:
        changes += [Change(level=level, before=stored[level], after=None) for level in unnamed]
    return Plan(
        changes=tuple(sorted(changes, key=lambda change: change.level.order)),
        same=sum(stored.get(level) == content for level, content in wanted.items()),
        unnamed=() if prune else tuple(sorted(unnamed, key=lambda level: level.order)),
    )


def level_of(stored: StoredLimits) -> Level:
    """Return where stored limits are."""
    return Level(stored.entity, None if stored.resource == DEFAULT else stored.resource)


def content_of(stored: StoredLimits | None) -> LevelContent | None:
    """Return what is stored at a level, None where it is not set."""
    if stored is None or stored.state is None:
        return None
    return LevelContent(stored.limits, stored.on_unavailable)


def lines(content: LevelContent | None) -> list[str]:
    """Return what a level has as lines that people can compare."""
    if content is None:
        return []
    found = [format_limit(limit) for limit in content.limits or ()]
    return found if content.on_unavailable is None else [*found, f"on_unavailable={content.on_unavailable}"]


def _as_dict(content: LevelContent | None) -> dict[str, Any] | None:
    if content is None:
        return None
    limits = None if content.limits is None else [limit.as_dict() for limit in content.limits]
    return {"limits": limits, "on_unavailable": content.on_unavailable}
