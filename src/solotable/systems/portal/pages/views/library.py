"""The library page: a search, filters, and rows of content."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlencode

from solotable.systems.browser.dates import Moment, relative
from solotable.systems.portal.search.records import Fragment, Hit, SearchQuery
from solotable.systems.portal.search.service import SearchPage

from .shared import Link, StatusBadge, content_url, library_url, product_of

#: The filters of the library: the parameter and field of the query, and its heading.
FILTERS = {
    "status": "Status",
    "suite": "Product suite",
    "concept": "Concept",
    "audience": "For",
    "tags": "Tags",
}
_MOST_OPTIONS = 12
_MOST_TAGS = 8


@dataclass(frozen=True, slots=True)
class Option:
    """A checkbox of a filter."""

    value: str
    checked: bool


@dataclass(frozen=True, slots=True)
class FilterGroup:
    """A group of checkboxes."""

    name: str
    label: str
    options: tuple[Option, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemRow:
    """Content in the list; title and summary mark what matches."""

    url: str
    title: tuple[Fragment, ...]
    summary: tuple[Fragment, ...]
    status: StatusBadge
    product: str
    tags: tuple[Link, ...]
    more_tags: int
    changed: Moment


@dataclass(frozen=True, slots=True)
class EmptyState:
    """What is missing, why, and what to do."""

    title: str
    text: str
    actions: tuple[Link, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryPage:
    """The library."""

    title: str
    query: str
    #: Filters as hidden fields of the search form.
    kept: tuple[tuple[str, str], ...]
    facets: tuple[FilterGroup, ...]
    chips: tuple[Link, ...]
    clear_url: str
    found: str
    items: tuple[ItemRow, ...]
    empty: EmptyState | None
    more_url: str
    searched: str
    may_create: bool


def library_page(
    query: SearchQuery,
    page: SearchPage,
    *,
    next_cursor: str | None,
    shown_before: int,
    now: datetime,
    may_create: bool,
) -> LibraryPage:
    """Return the library with the results of a search."""
    chosen: dict[str, tuple[str, ...]] = {name: getattr(query, name) for name in FILTERS}
    shown = shown_before + len(page.hits)
    chips = tuple(
        Link(value, _without(query.text, chosen, name, value)) for name in FILTERS for value in chosen[name]
    )
    more = ""
    if next_cursor is not None:
        given = [("query", query.text)] if query.text else []
        given += [(name, value) for name in FILTERS for value in chosen[name]]
        more = "/?" + urlencode([*given, ("cursor", next_cursor), ("shown", str(shown))])
    return LibraryPage(
        title=f"“{query.text}”" if query.text else "Library",
        query=query.text,
        kept=tuple((name, value) for name in FILTERS for value in chosen[name]),
        facets=tuple(_filter(name, page.facets.get(name, {}), chosen[name]) for name in FILTERS),
        chips=chips,
        clear_url=library_url(query=query.text),
        found=_found(page.total, query.text, bool(chips)),
        items=tuple(_row(hit, now) for hit in page.hits),
        empty=None if page.hits else _empty(query.text, chosen, chips, may_create),
        more_url=more,
        searched=f"{shown:,} of {page.total:,} are shown so far. There are more.",
        may_create=may_create,
    )


def _filter(name: str, counts: Mapping[str, int], chosen: tuple[str, ...]) -> FilterGroup:
    known = [value for value, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0]))]
    values = [*chosen, *(value for value in known if value not in chosen)][: max(_MOST_OPTIONS, len(chosen))]
    return FilterGroup(name, FILTERS[name], tuple(Option(each, each in chosen) for each in sorted(values)))


def _row(hit: Hit, now: datetime) -> ItemRow:
    document = hit.document
    return ItemRow(
        url=content_url(document.content_id),
        title=hit.title,
        summary=hit.summary,
        status=StatusBadge.of(document.status),
        product=product_of(document.suite, document.concept),
        tags=tuple(Link(tag, library_url(tags=tag)) for tag in document.tags[:_MOST_TAGS]),
        more_tags=max(0, len(document.tags) - _MOST_TAGS),
        changed=relative(document.updated, now, clock=False),
    )


def _without(text: str, chosen: Mapping[str, tuple[str, ...]], name: str, value: str) -> str:
    kept = {each: [one for one in values if (each, one) != (name, value)] for each, values in chosen.items()}
    return library_url(query=text, **kept)


def _found(total: int, text: str, filtered: bool) -> str:
    words = f"{total:,} found" + (f" for “{text}”" if text else "")
    return f"{words} in" if filtered else words


def _empty(
    text: str, chosen: Mapping[str, tuple[str, ...]], chips: tuple[Link, ...], may_create: bool
) -> EmptyState:
    if not text and not chips:
        actions = (Link("Write the first one", "/content/new"),) if may_create else ()
        return EmptyState("Nothing is here yet", "The library has no content that you may see.", actions)
    title = f"Nothing matches “{text}” yet" if text else "Nothing matches these filters yet"
    names = ", ".join(each.label for each in chips)
    filters = {0: "No filter is set.", 1: f"One filter is set: {names}."}.get(
        len(chips), f"{len(chips)} filters are set: {names}."
    )
    follow = urlencode([(name, chosen[name][0]) for name in ("suite", "concept") if chosen[name]])
    clear = Link("Search without filters", library_url(query=text)) if chips else Link("Show everything", "/")
    return EmptyState(
        title,
        f"{filters} Everything that you may see was searched.",
        (clear, Link("Tell me when it appears", f"/subscriptions?{follow}" if follow else "/subscriptions")),
    )
