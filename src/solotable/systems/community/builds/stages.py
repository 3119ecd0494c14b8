"""The stages of a build, their time limits, and what ends one early.

A build with a tool chain has the stages clone, fetch, inject, install, build, upload and invalidate. Here
`clone` is part of `fetch`, `install` does not exist, and `build` is `render`. No stage runs a shell, or the
code of a user.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final, Literal, get_args

from solotable.errors import SolotableError

Stage = Literal["fetch", "inject", "render", "upload", "invalidate"]
STAGES: Final[tuple[Stage, ...]] = get_args(Stage)

#: What a page calls each stage.
TITLES: Final[dict[Stage, str]] = {
    "fetch": "Fetch content",
    "inject": "Inject settings",
    "render": "Render pages",
    "upload": "Upload",
    "invalidate": "Go live",
}
_LIMITS: Final[dict[Stage, float]] = {
    "fetch": 60.0,
    "inject": 10.0,
    "render": 180.0,
    "upload": 180.0,
    "invalidate": 30.0,
}

#: Called with a stage and how many steps of it are done: posts that were read, files that were written.
Progress = Callable[[Stage, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildSettings:
    """The options of a worker."""

    #: The address of a site; `{subdomain}` is its subdomain.
    site_url: str = "http://{subdomain}.localhost"
    #: The address of a public neighbourhood, with `{slug}`; empty for no link.
    neighbourhood_url: str = ""
    stage_seconds: MappingProxyType[Stage, float] = field(default_factory=lambda: MappingProxyType(_LIMITS))
    #: How long a worker that died keeps others from its build.
    lease_seconds: float = 30.0
    #: How often a build starts: after a worker died, or an error that may pass.
    max_attempts: int = 3
    #: The pause before the second attempt; it doubles with each.
    retry_seconds: float = 5.0
    #: How long replaced files stay, for readers and for servers that remember them.
    grace_seconds: float = 600.0
    #: Files that go to the storage at the same time.
    uploads_at_once: int = 8
    #: Hosts that the manifest of a custom template may name.
    template_hosts: frozenset[str] = frozenset()


class StageTimedOut(SolotableError):
    """A stage took longer than its limit."""


class BuildCancelled(SolotableError):
    """The owner cancelled the build."""


class BuildRejected(SolotableError):
    """The build cannot succeed, however often it is repeated; the message is for the owner."""
