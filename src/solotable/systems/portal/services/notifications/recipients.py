"""Who hears of a change: subscribers whose filters match, and on expiry who downloaded it lately (3b)."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from itertools import product

from solotable import Database
from solotable.systems.portal.entities.notifications import Announcement
from solotable.systems.portal.entities.subscriptions import Downloader, Subscription
from solotable.systems.portal.entities.values import ANY_PRODUCT


def recipients(db: Database, announcement: Announcement) -> Iterator[str]:
    """Yield the users behind the checkpoint of an announcement, in order and each once.

    At most four partitions of the index match: the suite or `*`, with the concept or `*`. Each is in the
    order of its users, as are the downloaders, so a merge reads all of them once.
    """
    suites = _or_any(announcement.product_suite)
    concepts = _or_any(announcement.product_concept)
    found: list[Iterable[str]] = [
        _subscribers(db, announcement, suite, concept) for suite, concept in product(suites, concepts)
    ]
    if announcement.kind == "expired":
        found.append(_downloaders(db, announcement))
    previous = ""
    for user in heapq.merge(*found):
        if user != previous:
            previous = user
            yield user


def _or_any(name: str | None) -> tuple[str, ...]:
    return (ANY_PRODUCT,) if name is None else (name, ANY_PRODUCT)


def _subscribers(db: Database, announcement: Announcement, suite: str, concept: str) -> Iterator[str]:
    query = Subscription.matching(suite, concept)
    if announcement.last_user:
        query = query.after(user_id=announcement.last_user)
    for each in db.all(query):
        if each.matches_tags(announcement.tags):
            yield each.user_id


def _downloaders(db: Database, announcement: Announcement) -> Iterator[str]:
    query = Downloader.of_content(announcement.content_id)
    if announcement.last_user:
        query = query.after(user_id=announcement.last_user)
    for each in db.all(query):
        yield each.user_id
