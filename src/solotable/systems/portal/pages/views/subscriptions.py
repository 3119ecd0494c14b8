"""The subscriptions page: each subscription as a sentence, and the form of a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from solotable.systems.portal.entities.subscriptions import Subscription
from solotable.systems.portal.search.records import Fragment

_MOST_TAGS = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionView:
    """A subscription; the bold parts of its sentence are names."""

    id: str
    sentence: tuple[Fragment, ...]
    matches: str


@dataclass(frozen=True, slots=True)
class TagBox:
    """A tag to choose."""

    value: str
    checked: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SubscriptionsPage:
    """All subscriptions of a user, and the choices of the form."""

    items: tuple[SubscriptionView, ...]
    suites: tuple[tuple[str, str], ...]
    concepts: tuple[tuple[str, str], ...]
    tags: tuple[TagBox, ...]
    preview: str
    more_url: str


def sentence(suite: str | None, concept: str | None, tags: Sequence[str]) -> tuple[Fragment, ...]:
    """Return a subscription as a sentence.

    >>> "".join(each.text for each in sentence("Harbor", None, ["a", "b", "c"]))
    'Harbor, every concept, tagged a, b or c'
    """
    parts = [Fragment(suite, is_match=True) if suite else Fragment("Every suite")]
    if concept:
        parts += [Fragment(", "), Fragment(concept, is_match=True)]
    elif suite:
        parts.append(Fragment(", every concept"))
    if not tags:
        return (*parts, Fragment(", any tag"))
    parts.append(Fragment(", tagged "))
    for number, tag in enumerate(tags):
        if number:
            parts.append(Fragment(" or " if number == len(tags) - 1 else ", "))
        parts.append(Fragment(tag, is_match=True))
    return tuple(parts)


def plain_sentence(subscription: Subscription) -> str:
    """Return a subscription as a text."""
    parts = sentence(subscription.product_suite, subscription.product_concept, subscription.tags)
    return "".join(each.text for each in parts)


def matches_text(count: int | None) -> str:
    """Return how many items match, in words; None where the index does not answer."""
    match count:
        case None:
            return "You will hear about the next one."
        case 0:
            return "Nothing matches today. You will hear about the first one."
        case 1:
            return "1 approved item matches today"
        case _:
            return f"{count:,} approved items match today"


def options(known: Mapping[str, int], chosen: str, every: str) -> tuple[tuple[str, str], ...]:
    """Return the choices of a select: every product, those that content has, and the chosen one."""
    names = sorted({*known, *([chosen] if chosen else [])})
    return (("", every), *((name, name) for name in names))


def tag_boxes(known: Mapping[str, int], chosen: Sequence[str]) -> tuple[TagBox, ...]:
    """Return the tags to choose: the chosen ones, then the most frequent."""
    frequent = [tag for tag, _ in sorted(known.items(), key=lambda each: (-each[1], each[0]))]
    shown = list(dict.fromkeys([*chosen, *frequent]))[: max(_MOST_TAGS, len(chosen))]
    return tuple(TagBox(tag, tag in chosen) for tag in sorted(shown))
