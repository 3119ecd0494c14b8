"""Table: a declared table that opens stores; importing it loads no store and no engine."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ._entities.declare import table as declared

if TYPE_CHECKING:
    from ._store import AsyncDatabase, Database
    from ._store.observation import Observer


class Table(declared.Table):
    """One DynamoDB table and its entities; `open(url)` returns the store for them.

    - `partition` and `sort` name the key attributes, `tag` the attribute with an item's type tag.
    - `tag_required=False` also recognises items without a tag, by the templates of their primary keys; writes
      add the tag. With `tag=None`, entities have no tag, and keys alone tell them apart.
    - `tenant` names the field that separates tenants.
    - `ttl` names the attribute of DynamoDB's time to live.
    - `flat=True` rejects nested values in every entity.
    - `stream=True` records every change of an item, for the change feed.
    - `schema_version` names the attribute with an item's schema version.
    - `key_format` is the format of its keys; None is `KeyFormat()`.
    - `adopt` names the library that wrote the table. It sets the defaults of `tag`, `tag_required` and
      `key_format`, the format of datetime fields, the attributes of `Created()` and `Updated()` fields, and
      the attributes that the library adds to its items.
    """

    def open(
        self,
        url: str,
        *,
        cursor_secrets: Sequence[bytes] = (),
        clock: Callable[[], float] = time.time,
        session: Any = None,
        observer: Observer | None = None,
    ) -> Database:
        """Open a URL for this table alone; see `connect`."""
        # A declaration needs no store: programs that only declare do not load one.
        from ._connect import connect

        return connect(
            url, self, cursor_secrets=cursor_secrets, clock=clock, session=session, observer=observer
        )

    def open_async(
        self,
        url: str,
        *,
        cursor_secrets: Sequence[bytes] = (),
        clock: Callable[[], float] = time.time,
        session: Any = None,
        observer: Observer | None = None,
    ) -> AsyncDatabase:
        """Open a URL for this table alone, for use with `await`."""
        from ._connect import connect_async

        return connect_async(
            url, self, cursor_secrets=cursor_secrets, clock=clock, session=session, observer=observer
        )
