"""Who hears of a change: subscribers whose filters match, and on expiry who downloaded it lately (3b)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import product
from operator import attrgetter
from typing import NamedTuple

from solotable import Database
from solotable.systems.portal.entities.notifications import Announcement
from solotable.systems.portal.entities.subscriptions import Downloader, Subscription
from solotable.systems.portal.entities.values import ANY_PRODUCT


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
    for each in db.all(query):
        if each.matches_tags(tags):
            common = [tag for tag in each.tags if tag in tags]
            followed = "; ".join(filter(None, (product_names, ", ".join(common)))) or "all content"
            yield NotifiedUser(each.user_id, f"You follow {followed}.")


def _downloaders(db: Database, announcement: Announcement) -> Iterator[NotifiedUser]:
    query = Downloader.of_content(announcement.content_id)
    if announcement.last_user:
        query = query.after(user_id=announcement.last_user)
    for each in db.all(query):
        day = each.last_at
        yield NotifiedUser(each.user_id, f"You downloaded it on {day.day} {day:%B %Y}.")
