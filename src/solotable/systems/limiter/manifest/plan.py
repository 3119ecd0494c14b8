"""What to write so that the stored limits are those of a file. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from solotable.systems.limiter.admin.entities import ENTITY_MODES, StoredLimits

from .notation import format_limit, format_rules
from .parse import Level, LevelContent, Manifest

Action = Literal["add", "change", "remove"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One level that differs: what is stored and what the file has, None for nothing."""

    level: Level
    before: LevelContent | None
    after: LevelContent | None

    @property
    def action(self) -> Action:
        """What applying the change does."""
        if self.before is None:
            return "add"
        return "remove" if self.after is None else "change"

    def as_dict(self) -> dict[str, Any]:
        """Return the change as JSON has it."""
        return {
            "action": self.action,
            **self.level._asdict(),
            "before": None if self.before is None else self.before.as_dict(),
            "after": None if self.after is None else self.after.as_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The changes in the order of their levels, and the levels that are not in the file and stay."""

    changes: tuple[Change, ...]
    same: int
    unnamed: tuple[Level, ...]

    def count(self, action: Action) -> int:
        """Return how many levels have an action."""
        return sum(change.action == action for change in self.changes)

    def as_dict(self) -> dict[str, Any]:
        """Return the plan as JSON has it."""
        return {
            "changes": [change.as_dict() for change in self.changes],
            "same": self.same,
            "unnamed": [level._asdict() for level in self.unnamed],
        }


def compare(manifest: Manifest, stored: Mapping[Level, LevelContent], *, prune: bool) -> Plan:
    """Return how stored limits differ from a file; `prune` also removes what is not in the file.

    A file does not change that an entity is denied, or bypasses its limits, unless it has a mode for it.
    """
    wanted = {level: _expected(content, stored.get(level)) for level, content in manifest.levels.items()}
    unnamed = [level for level, content in stored.items() if level not in wanted and _is_of_files(content)]
    levels = [level for level in wanted if stored.get(level) != wanted[level]]
    same = len(wanted) - len(levels)
    if prune:
        levels += unnamed
    levels.sort(key=lambda level: level.order)
    return Plan(
        changes=tuple(
            Change(level=level, before=stored.get(level), after=wanted.get(level)) for level in levels
        ),
        same=same,
        unnamed=() if prune else tuple(sorted(unnamed, key=lambda level: level.order)),
    )


def _expected(content: LevelContent, before: LevelContent | None) -> LevelContent:
    """Return what is stored after a file is applied."""
    if content.mode == "enforce":
        return replace(content, mode=None)
    if content.mode is None and before is not None and before.mode in ENTITY_MODES:
        return replace(content, mode=before.mode)
    return content


def _is_of_files(content: LevelContent) -> bool:
    """Return whether removing limits changes a level: not if it only has a mode of an entity."""
    return (
        content.limits is not None or content.on_unavailable is not None or content.mode not in ENTITY_MODES
    )


def level_of(stored: StoredLimits) -> Level:
    """Return the level of stored limits."""
    return Level(stored.entity, stored.resource_name)


def content_of(stored: StoredLimits | None) -> LevelContent | None:
    """Return what is stored at a level, None if it is not set."""
    if stored is None or stored.state is None:
        return None
    return LevelContent(stored.limits, stored.on_unavailable, stored.schedule, stored.mode)


def lines(content: LevelContent | None) -> list[str]:
    """Return the content of a level as lines to compare."""
    if content is None:
        return []
    found = [format_limit(limit) for limit in content.limits or ()]
    if content.schedule is not None:
        found += [
            f"{window.when} ({content.schedule.timezone}): {format_rules(window.limits)}"
            for window in content.schedule.windows
        ]
    if content.mode is not None:
        found.append(f"mode={content.mode}")
    return found if content.on_unavailable is None else [*found, f"on_unavailable={content.on_unavailable}"]
