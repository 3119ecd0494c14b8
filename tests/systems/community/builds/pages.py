"""Built pages as a browser reads them: their tags, links and words."""

from __future__ import annotations

import re
from html.parser import HTMLParser

#: The elements and attributes that a built page may have; none runs anything or loads from another host.
_TAGS = """
html head meta title link body a header h1 h2 h3 h4 p main article section nav footer time ul ol li dl dt dd
div span b strong em code pre blockquote hr br img
"""
_ATTRIBUTES = """
lang charset name content rel href type title class id src width height alt datetime tabindex aria-label
aria-labelledby
"""
TAGS, ATTRIBUTES = frozenset(_TAGS.split()), frozenset(_ATTRIBUTES.split())
#: As browsers read it (WHATWG URL).
_SCHEME = re.compile(r"\s*([a-zA-Z][a-zA-Z0-9+.-]*):")


class PageReader(HTMLParser):
    """Collects the tags, attributes and links of a page."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: list[str] = []
        self.sources: list[str] = []
        self.headings: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        if "href" in given:
            self.links.append(given["href"] or "")
        if "src" in given:
            self.sources.append(given["src"] or "")
        if tag == "h1":
            self.headings.append(tag)


def check_page(page: bytes) -> PageReader:
    """Check that a page has nothing that runs, and one heading of the first level."""
    found = PageReader(page)
    assert found.tags <= TAGS, found.tags - TAGS
    assert found.attributes <= ATTRIBUTES, found.attributes - ATTRIBUTES
    assert len(found.headings) == 1
    for link in found.links:
        scheme = _SCHEME.match(link)
        assert scheme is None or scheme[1] in ("http", "https", "mailto"), link
        assert not set(link) & set("\t\n\r"), link
    for source in found.sources:
        assert "//" not in source
    return found
