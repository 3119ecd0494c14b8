"""The page of a build: the result in words, what readers see now, the stages, the log, earlier builds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from solotable.systems.browser.dates import Moment, relative
from solotable.systems.community.builds.stages import STAGES, TITLES
from solotable.systems.community.entities.builds import Build, BuildLog, BuildSummary
from solotable.systems.community.entities.sites import Site

StageState = Literal["done", "failed", "running", "todo"]
_OVER = frozenset({"completed", "failed", "cancelled"})
#: State of a build that is not live: word, shape.
_BADGES = {
    "pending": ("Waiting", "info"),
    "running": ("Running", "info"),
    "completed": ("Replaced", "none"),
    "failed": ("Failed", "poor"),
    "cancelled": ("Cancelled", "none"),
}
_STAGE_WORDS = {"done": "Done", "failed": "Failed", "running": "Running", "todo": "Not started"}


@dataclass(frozen=True, slots=True)
class BuildBadge:
    """The state of a build as a word and a shape."""

    word: str
    shape: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    """A stage with its state and its time."""

    title: str
    state: StageState
    word: str
    took: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRow:
    """A line of the log."""

    clock: str
    iso: str
    text: str
    is_error: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRow:
    """A build in the list of a site."""

    path: str
    current: bool
    when: Moment | None
    badge: BuildBadge
    took: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildPage:
    """The page of one build."""

    site_title: str
    site_path: str
    build_path: str
    public_url: str | None
    when: Moment | None
    badge: BuildBadge
    summary: str
    #: What went wrong, and what readers see; empty without an error.
    problem: str
    advice: str
    is_over: bool
    may_cancel: bool
    stages: tuple[StageRow, ...]
    log: tuple[LogRow, ...]
    builds: tuple[BuildRow, ...]


def badge_of(build: Build | BuildSummary, live_job_id: str | None) -> BuildBadge:
    """Return the badge of a build; of those that completed, one is live."""
    if build.job_id == live_job_id:
        return BuildBadge("Live", "good")
    return BuildBadge(*_BADGES[build.status])


def took(started: datetime | None, completed: datetime | None) -> str:
    """Return a duration in words; empty before the end."""
    if started is None or completed is None:
        return ""
    return seconds_text((completed - started).total_seconds())


def seconds_text(seconds: float) -> str:
    """Return seconds as people read them.

    >>> seconds_text(0.04), seconds_text(6.42), seconds_text(41.2), seconds_text(125)
    ('0.0 s', '6.4 s', '41 s', '2 min 5 s')
    """
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def stages_of(build: Build) -> tuple[StageRow, ...]:
    """Return all stages with what is known of them."""
    rows = []
    for stage in STAGES:
        state: StageState = "todo"
        if build.error_stage == stage and build.status == "failed":
            state = "failed"
        elif stage in build.stages:
            state = "done"
        elif build.stage == stage and build.status == "running":
            state = "running"
        spent = build.stages.get(stage)
        text = "" if spent is None else seconds_text(spent)
        rows.append(StageRow(title=TITLES[stage], state=state, word=_STAGE_WORDS[state], took=text))
    return tuple(rows)


def build_page(
    site: Site,
    build: Build,
    log: Sequence[BuildLog],
    history: Sequence[BuildSummary],
    *,
    before: int,
    now: datetime,
) -> BuildPage:
    """Return the page of a build; `before` is how many builds wait before it."""
    path = f"/sites/{site.site_id}"
    is_live = site.live_job_id is not None
    problem = build.error or "" if build.status == "failed" else ""
    return BuildPage(
        site_title=site.title,
        site_path=path,
        build_path=f"{path}/builds/{build.job_id}",
        public_url=site.public_url if is_live else None,
        when=None if build.created_at is None else relative(build.created_at, now),
        badge=badge_of(build, site.live_job_id),
        summary=_summary(build, before),
        problem=problem,
        advice=_advice(site) if problem else "",
        is_over=build.status in _OVER,
        may_cancel=build.status in ("pending", "running") and not build.cancel_requested,
        stages=stages_of(build),
        log=tuple(_log_row(each) for each in log),
        builds=tuple(_build_row(each, site, build.job_id, now) for each in history),
    )


def _summary(build: Build, before: int) -> str:
    match build.status:
        case "pending":
            return "It is the next one." if before == 0 else f"{before} builds are before it."
        case "running":
            stage = next((TITLES[each] for each in STAGES if each == build.stage), "the first stage")
            return f"In “{stage}”."
        case "failed":
            stage = next((TITLES[each] for each in STAGES if each == build.error_stage), "the first stage")
            spent = took(build.started_at, build.completed_at)
            return f"In “{stage}”{f' after {spent}' if spent else ''}."
        case "cancelled":
            return "Nothing was published."
        case "completed":
            posts = "" if build.content_count is None else f" with {build.content_count} posts"
            return f"Built{posts} in {took(build.started_at, build.completed_at) or 'no time'}."


def _advice(site: Site) -> str:
    if site.live_job_id is None or site.built_at is None:
        return "Correct it and build again. Readers see nothing yet."
    return "Correct it and build again. Readers still see the last build that went live."


def _log_row(line: BuildLog) -> LogRow:
    at = line.created_at
    return LogRow(
        clock="" if at is None else f"{at:%H:%M:%S}",
        iso="" if at is None else at.isoformat(),
        text=line.text,
        is_error=line.level == "error",
    )


def _build_row(build: BuildSummary, site: Site, current: str, now: datetime) -> BuildRow:
    return BuildRow(
        path=f"/sites/{site.site_id}/builds/{build.job_id}",
        current=build.job_id == current,
        when=None if build.created_at is None else relative(build.created_at, now),
        badge=badge_of(build, site.live_job_id),
        took=took(build.started_at, build.completed_at),
    )
