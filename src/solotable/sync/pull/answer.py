"""The answer to a pull: its operations as JSON, and what its cookie and its ids must say."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from solotable._flows.sync.log import LogRecord

from .cookie import Cookie, PagePosition


@dataclass(slots=True)
class Answer:
    """What an answer has said so far, for its cookie and its mutation ids."""

    spaces: dict[str, tuple[int, str]] = field(default_factory=dict)
    confirmed: dict[str, int] = field(default_factory=dict)
    #: Ids of the log that the client's record did not show, with the times of their commits.
    recent: dict[str, tuple[int, int]] = field(default_factory=dict)
    following: PagePosition | None = None
    #: The versions of spaces that the ids and changes of the answer need.
    needs: dict[str, int] = field(default_factory=dict)
    ops: int = 0
    #: Clients whose ids are ahead of the table, as after a restore: a lower id would stop them.
    ahead: set[str] = field(default_factory=set)

    def confirm(self, group: str, records: Sequence[LogRecord]) -> None:
        """Note the last mutation ids in log records."""
        for record in records:
            for owner, client, last in record.clients:
                is_news = client not in self.ahead and last > self.confirmed.get(client, 0)
                if owner == group and is_news:
                    self.confirmed[client] = last
                    self.recent[client] = (last, int(record.at * 1000))

    def need(self, versions: Mapping[str, int]) -> None:
        """Note versions of spaces that the answer must include."""
        for name, version in versions.items():
            self.needs[name] = max(version, self.needs.get(name, 0))

    def put(self, key: str, value: str) -> str:
        """Return the operation that puts a key; `value` is JSON."""
        return self._comma() + f'{{"op":"put","key":{json.dumps(key)},"value":{value}}}'

    def op(self, operation: Mapping[str, Any]) -> str:
        """Return another operation of the patch."""
        return self._comma() + json.dumps(operation)

    def _comma(self) -> str:
        self.ops += 1
        return "," if self.ops > 1 else ""


def envelope(cookie: Cookie, confirmed: Mapping[str, int], patch: str) -> str:
    """Return a whole answer as JSON; `patch` is JSON."""
    return (
        f'{{"cookie":{json.dumps(cookie.to_json())},'
        f'"lastMutationIDChanges":{json.dumps(confirmed)},"patch":{patch}}}'
    )
