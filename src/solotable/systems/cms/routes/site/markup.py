"""A page as minimal HTML, and the sitemap as XML. Every text from outside is escaped, and no block is markup.

Blocks are free JSON: their texts are shown by what they say they are (heading, quote, code, list, else a
paragraph). No attribute is filled from a block, so there is no link, source, style or handler to smuggle.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import quote

from solotable.systems.cms.entities import Content, ContentSummary

_ELEMENTS = {"heading": "h2", "subheading": "h3", "quote": "blockquote", "code": "pre"}
_TEXTS = ("text", "content", "body", "title", "caption")
_DEEPEST = 8
#: What XML 1.0 cannot hold, even escaped.
_UNWRITABLE = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF])


def address(path: str) -> str:
    """Return a path as URLs have it: one slash in front, so that it never names another host.

    >>> address("/ünser blog"), address("//evil.example")
    ('/%C3%BCnser%20blog', '/evil.example')
    """
    return "/" + quote(path.lstrip("/"), safe="/-._~")


def page_html(page: Content) -> str:
    """Return a page as HTML; its canonical address is relative, as a page is read without its tenant."""
    lines = [
        "<!doctype html>",
        '<html><head><meta charset="utf-8">',
        f"<title>{escape(page.title)}</title>",
        f'<meta name="description" content="{escape(page.description)}">',
        f'<link rel="canonical" href="{escape(address(page.slug))}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>',
        f"<h1>{escape(page.title)}</h1>",
        *(line for block in page.blocks for line in _block(block, 0)),
        "</main></body></html>",
    ]
    return "\n".join(lines) + "\n"


def _block(block: Any, depth: int) -> Iterable[str]:
    if depth > _DEEPEST:
        return
    if isinstance(block, str):
        yield f"<p>{escape(block)}</p>"
    elif isinstance(block, dict):
        kind = block.get("type")
        element = _ELEMENTS.get(kind, "p") if isinstance(kind, str) else "p"
        for name in _TEXTS:
            text = block.get(name)
            if isinstance(text, str) and text:
                yield f"<{element}>{escape(text)}</{element}>"
        for name in ("items", "blocks", "children"):
            inner = block.get(name)
            for each in inner if isinstance(inner, list) else ():
                yield from _block(each, depth + 1)


def sitemap_xml(pages: Iterable[ContentSummary], *, base: str) -> str:
    """Return a sitemap of pages."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *(
            f"<url><loc>{_xml(base + address(page.slug))}</loc>{_changed(page.updated)}</url>"
            for page in pages
        ),
        "</urlset>",
    ]
    return "\n".join(lines) + "\n"


def sitemap_index_xml(parts: int, *, base: str) -> str:
    """Return the index of a sitemap that has several parts."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *(
            f"<sitemap><loc>{_xml(f'{base}/sitemap.xml?part={part}')}</loc></sitemap>"
            for part in range(1, parts + 1)
        ),
        "</sitemapindex>",
    ]
    return "\n".join(lines) + "\n"


def _changed(moment: datetime | None) -> str:
    return "" if moment is None else f"<lastmod>{moment.isoformat(timespec='seconds')}</lastmod>"


def _xml(text: str) -> str:
    return escape(text.translate(_UNWRITABLE))
