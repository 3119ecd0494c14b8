"""Who hears of a change: subscribers whose filters match, and on expiry who downloaded it lately (3b)."""

from __future__ import annotations

import heapq
import logging
from collections.abc import Iterable, Iterator
from itertools import product
from operator import attrgetter
from typing import NamedTuple, TypeVar

from solotable import Database, Query
from solotable.errors import DataError, StoredDataError
from solotable.systems.portal.entities.notifications import Announcement
from solotable.systems.portal.entities.subscriptions import (
    Downloader,
    DownloaderReference,
    Subscription,
    SubscriptionReference,
)
from solotable.systems.portal.entities.values import ANY_PRODUCT

_log = logging.getLogger("solotable.portal")
RowT = TypeVar("RowT", Subscription, Downloader)


class NotifiedUser(NamedTuple):
    """A user, and why the user hears of a change."""

    user_id: str
    reason: str


def recipients(db: Database, announcement: Announcement) -> Iterator[NotifiedUser]:
    """Yield the users behind the checkpoint of an announcement, in order and each once.

    At most four partitions of the index match: the suite or `*`, with the concept or `*`. Each is in the
    order of its users, as are the downloaders, so a merge reads all of them once.
    """
    suites = _or_any(announcement.product_suite)
    concepts = _or_any(announcement.product_concept)
    found: list[Iterable[NotifiedUser]] = [
        _subscribers(db, announcement, suite, concept) for suite, concept in product(suites, concepts)
    ]
    if announcement.kind == "expired":
        found.append(_downloaders(db, announcement))
    previous = ""
    for each in heapq.merge(*found, key=attrgetter("user_id")):
        if each.user_id != previous:
            previous = each.user_id
            yield each


def _or_any(name: str | None) -> tuple[str, ...]:
    return (ANY_PRODUCT,) if name is None else (name, ANY_PRODUCT)


def _subscribers(
    db: Database, announcement: Announcement, suite: str, concept: str
) -> Iterator[NotifiedUser]:
    query = Subscription.matching(suite, concept)
    if announcement.last_user:
        query = query.after(user_id=announcement.last_user)
    product_names = ", ".join(name for name in (suite, concept) if name != ANY_PRODUCT)
    tags = set(announcement.tags)
    for each in _valid_rows(db, Subscription, query, SubscriptionReference):
        if each.matches_tags(tags):
            common = [tag for tag in each.tags if tag in tags]
            followed = "; ".join(filter(None, (product_names, ", ".join(common)))) or "all content"
            yield NotifiedUser(each.user_id, f"You follow {followed}.")


def _downloaders(db: Database, announcement: Announcement) -> Iterator[NotifiedUser]:
    query = Downloader.of_content(announcement.content_id)
    if announcement.last_user:
        query = query.after(user_id=announcement.last_user)
    for each in _valid_rows(db, Downloader, query, DownloaderReference):
        day = each.last_at
        yield NotifiedUser(each.user_id, f"You downloaded it on {day.day} {day:%B %Y}.")


def _valid_rows(
    db: Database,
    entity: type[RowT],
    query: Query[RowT],
    reference: type[SubscriptionReference] | type[DownloaderReference],
) -> Iterator[RowT]:
    """Yield the rows of a query in the order of their users; log and skip what another program wrote wrongly.

    An invalid item ends the query. The rows from the user before it are then read one by one.
    """
    user = ""
    try:
        for row in db.all(query, unknown="skip"):
            user = row.user_id
            yield row
    except StoredDataError as error:
        _log.warning("an item in the way of notifications is invalid: %s", error)
    else:
        return
    for key in db.all(query.select(reference), unknown="skip"):
        if key.user_id < user:
            continue
        try:
            found = db.get(entity, **dict(key))
        except DataError as error:
            _log.warning("user %r is not notified by an invalid %s: %s", key.user_id, entity.__name__, error)
            continue
        if found is not None:
            yield found
