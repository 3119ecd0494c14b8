"""Change feeds as they are read: blocking, and awaited. What they do is in `flows.feed`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from functools import partial
from typing import Any, Generic, TypedDict, TypeVar

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._flows.feed.changes import changes_of, tables_of
from solotable._flows.feed.checkpoints import Checkpoint
from solotable._flows.feed.feed import Feed, Since
from solotable._flows.scope import Scope, Unknown
from solotable._protocol.engine import AsyncEngine, Engine
from solotable._store.arguments import check_class
from solotable._store.runner import arun, run
from solotable.errors import TenantViolation

ChangeT = TypeVar("ChangeT")
_POLL_SECONDS = 0.5


class FeedOptions(TypedDict, total=False):
    """The options of a change feed."""

    #: The consumer whose checkpoints are stored in the table; without one, none are stored.
    consumer: str
    #: Where a new consumer begins: "earliest" (24 hours ago at most) by default.
    since: Since
    #: Wait for more instead of ending, and how long between two looks.
    follow: bool
    poll_seconds: float
    #: The table that is read, where several are open; without it all that have a stream.
    table: Table
    #: Items that no entity matches: "raise" unless "skip".
    unknown: Unknown
    #: Forget the consumer's checkpoints and begin at `since`.
    restart: bool


def feed_of(scope: Scope, entities: Sequence[type[Entity]], options: FeedOptions) -> Feed[Any]:
    """Return the feed of these entities' changes, or of all."""
    if scope.tenant is not None:
        raise TenantViolation(
            "A stream has the changes of every tenant; read it from the store that this one was made of."
        )
    plans = [check_class("changes", entity).plan() for entity in entities]
    return Feed(
        scope,
        tables_of(scope, plans, options.get("table")),
        partial(changes_of, scope.reading(options.get("unknown", "raise")), plans),
        consumer=options.get("consumer"),
        since=options.get("since", "earliest"),
        restart=options.get("restart", False),
    )


class Changes(Generic[ChangeT]):
    """The changes of some tables; a loop over them ends after the last one, unless it follows.

    A second loop continues where the first ended.
    """

    def __init__(
        self,
        engine: Engine,
        feed: Feed[ChangeT],
        *,
        follow: bool = False,
        poll_seconds: float = _POLL_SECONDS,
        **_: Any,
    ) -> None:
        self._engine = engine
        self._feed = feed
        self._follow = follow
        self._poll_seconds = poll_seconds

    def __iter__(self) -> Iterator[ChangeT]:
        while run(self._feed.fill(follow=self._follow, poll_seconds=self._poll_seconds), self._engine):
            while (change := self._feed.take()) is not None:
                yield change

    def commit(self) -> None:
        """Store that every change up to the last one was handled, so that it is not delivered again."""
        run(self._feed.commit(), self._engine)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint after the last change, as `since` takes it, to store it elsewhere."""
        return self._feed.checkpoint


class AsyncChanges(Generic[ChangeT]):
    """The changes of some tables, for `async for`; as `Changes` otherwise."""

    def __init__(
        self,
        engine: AsyncEngine,
        feed: Feed[ChangeT],
        *,
        follow: bool = False,
        poll_seconds: float = _POLL_SECONDS,
        **_: Any,
    ) -> None:
        self._engine = engine
        self._feed = feed
        self._follow = follow
        self._poll_seconds = poll_seconds

    async def __aiter__(self) -> AsyncIterator[ChangeT]:
        while await arun(self._feed.fill(follow=self._follow, poll_seconds=self._poll_seconds), self._engine):
            while (change := self._feed.take()) is not None:
                yield change

    async def commit(self) -> None:
        """Store that every change up to the last one was handled, so that it is not delivered again."""
        await arun(self._feed.commit(), self._engine)

    @property
    def checkpoint(self) -> Checkpoint:
        """The checkpoint after the last change, as `since` takes it, to store it elsewhere."""
        return self._feed.checkpoint
