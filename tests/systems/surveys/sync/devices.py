"""A device of a surveyor without Node: it pushes and pulls as a client does, and applies what it gets."""

from __future__ import annotations

import itertools
from typing import Any

from solotable.sync import Sync
from solotable.systems.surveys.sync.mutators import survey_mutators
from solotable.systems.surveys.sync.rights import visible_spaces
from tests.systems.surveys.office import Office

_groups = itertools.count(1)


def make_sync(office: Office) -> Sync:
    """Return the sync of the office's table."""
    return Sync(office.blocking, mutators=survey_mutators, view=visible_spaces, poll_seconds=0)


class Device:
    """One client in its own group."""

    def __init__(self, sync: Sync, user: str, *, tenant: str = "acme", group: str | None = None) -> None:
        self._sync, self.user, self._tenant = sync, user, tenant
        self._base = {
            "schemaVersion": "1",
            "clientGroupID": group or f"group-{next(_groups)}",
            "profileID": "p",
        }
        self.client = f"client-{next(_groups)}"
        self._numbers = itertools.count(1)
        self._cookie: Any = None
        #: What the client shows, by key.
        self.view: dict[str, Any] = {}
        #: The last mutation of each client of the group that a pull confirmed.
        self.confirmed: dict[str, int] = {}

    def mutation(self, name: str, /, **args: Any) -> dict[str, Any]:
        """Return the next mutation of this client."""
        return {
            "id": next(self._numbers),
            "clientID": self.client,
            "name": name,
            "args": args,
            "timestamp": 1.5,
        }

    def push(self, *mutations: dict[str, Any]) -> None:
        """Push mutations; the answer must be a success."""
        body = {**self._base, "pushVersion": 1, "mutations": list(mutations)}
        answer = self._sync.push(self._tenant, self.user, body)
        assert "error" not in answer, answer

    def pull(self) -> list[dict[str, Any]]:
        """Pull, apply the patch, and return it."""
        body = {**self._base, "pullVersion": 1, "cookie": self._cookie}
        answer = self._sync.pull(self._tenant, self.user, body)
        patch: list[dict[str, Any]] = list(answer["patch"])
        for each in patch:
            match each["op"]:
                case "clear":
                    self.view.clear()
                case "put":
                    self.view[each["key"]] = each["value"]
                case "del":
                    self.view.pop(each["key"], None)
        self._cookie = answer["cookie"]
        self.confirmed |= answer["lastMutationIDChanges"]
        return patch

    def do(self, name: str, /, **args: Any) -> None:
        """Push one mutation and pull its effect."""
        mutation = self.mutation(name, **args)
        self.push(mutation)
        self.pull()
        assert self.confirmed[self.client] == mutation["id"]

    def rejections(self) -> list[str]:
        """Return the codes of the mutations that the server rejected, in order."""
        return [
            value["code"] for key, value in sorted(self.view.items()) if key.startswith("control/rejected/")
        ]

    def data(self) -> dict[str, Any]:
        """Return what the client shows without what the sync itself says."""
        return {key: value for key, value in self.view.items() if not key.startswith("control/")}
