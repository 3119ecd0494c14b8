"""What the front page shows: each part of the demo with its address, its state and how to sign in."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Literal

State = Literal["waiting", "starting", "up", "failed"]


@dataclass(slots=True, kw_only=True)
class Part:
    """One part of the demo: a system, the endpoint or the console."""

    name: str
    title: str
    port: int
    summary: str = ""
    task: str = ""
    path: str = "/"
    host: str = "127.0.0.1"
    #: Whether it is one of the five systems.
    is_system: bool = False
    state: State = "waiting"
    #: Why it is not up.
    reason: str = ""
    #: What its data is.
    data: str = ""
    #: Addresses, keys and commands, as its own demo prints them.
    greeting: str = ""

    @property
    def url(self) -> str:
        """The address of the part."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def page_url(self) -> str:
        """The address of the page to open."""
        return f"http://{self.host}:{self.port}{self.path}"

    @property
    def has_docs(self) -> bool:
        """Whether the part describes an HTTP API."""
        return self.is_system

    def to_json(self) -> dict[str, Any]:
        """Return what `/status.json` says; keys stay on the page."""
        names = ("name", "title", "url", "state", "reason", "data")
        return {name: getattr(self, name) for name in names}


@dataclass(slots=True, kw_only=True)
class Status:
    """The parts of a demo that runs; threads change it."""

    parts: list[Part]
    file: str
    #: Whether the data stays when the demo ends.
    kept: bool
    #: How long it took until every part was up or had failed.
    seconds: float | None = None
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def systems(self) -> list[Part]:
        """The five systems."""
        return [each for each in self.parts if each.is_system]

    def part(self, name: str) -> Part | None:
        """Return a part by its name."""
        return next((each for each in self.parts if each.name == name), None)

    @property
    def is_settled(self) -> bool:
        """Whether every part is up or has failed."""
        return all(each.state in ("up", "failed") for each in self.parts)

    def set(self, part: Part, state: State, reason: str = "") -> None:
        """Change the state of a part."""
        with self.lock:
            part.state, part.reason = state, reason
