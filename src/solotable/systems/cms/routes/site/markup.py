"""Pages as minimal HTML, and sitemaps as XML. All texts are escaped, and blocks never hold markup.

Blocks are free JSON. Their `type` selects the element: heading, subheading, quote, code, list, else a
paragraph. No attribute takes a value from a block, so a block cannot inject a link, style or script.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from html import escape
from typing import Any
from urllib.parse import quote

from solotable.systems.cms.entities import Content, ContentSummary

from .site_info import SiteInfo

_ELEMENTS = {"heading": "h2", "subheading": "h3", "quote": "blockquote", "code": "pre"}
_TEXTS = ("text", "content", "body", "title", "caption")
_CHILDREN = ("items", "blocks", "children")
_MAX_DEPTH = 8
#: Characters that XML 1.0 cannot hold, even escaped.
_NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF])


def url_path(path: str) -> str:
    """Return a path as in URLs, with one leading slash, so that it never names another host.

    >>> url_path("/ünser blog"), url_path("//evil.example")
    ('/%C3%BCnser%20blog', '/evil.example')
    """
    return "/" + quote(path.lstrip("/"), safe="/-._~")


def page_html(page: Content, site: SiteInfo) -> str:
    """Return a page as HTML, with the site's name in the title and a relative canonical URL.

    >>> page_html(Content(slug="/", title="Home"), SiteInfo("Acme", "en")).splitlines()[2]
    '<title>Home – Acme</title>'
    """
    description = [f'<meta name="description" content="{escape(page.description)}">']
    lines = [
        "<!doctype html>",
        f'<html lang="{escape(site.language)}"><head><meta charset="utf-8">',
        f"<title>{escape(page.title)} – {escape(site.name)}</title>",
        *(description if page.description else ()),
        f'<link rel="canonical" href="{escape(url_path(page.slug))}">',
        '<meta name="viewport" content="width=device-width, initial-scale=1"></head><body><main>',
        f"<h1>{escape(page.title)}</h1>",
        *(line for block in page.blocks for line in _block(block, 0)),
        "</main></body></html>",
    ]
    return "\n".join(lines) + "\n"


def _block(block: Any, depth: int) -> Iterator[str]:
    if depth > _MAX_DEPTH:
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
        inner = [each for name in _CHILDREN if isinstance(some := block.get(name), list) for each in some]
        if kind == "list" and inner:
            yield "<ul>"
            for each in inner:
                yield f"<li>{escape(each)}</li>" if isinstance(each, str) else _item(each, depth + 1)
            yield "</ul>"
        else:
            for each in inner:
                yield from _block(each, depth + 1)


def _item(block: Any, depth: int) -> str:
    return f"<li>{''.join(_block(block, depth))}</li>"


def sitemap_xml(pages: Iterable[ContentSummary], *, base: str) -> str:
    """Return a sitemap of pages."""
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">',
        *(
            f"<url><loc>{_xml(base + url_path(page.slug))}</loc>{_lastmod(page.updated)}</url>"
            for page in pages
        ),
        "</urlset>",
    ]
    return "\n".join(lines) + "\n"


def sitemap_index_xml(parts: int, *, base: str) -> str:
    """Return the index of a sitemap with several parts."""
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


def _lastmod(updated: datetime | None) -> str:
    return "" if updated is None else f"<lastmod>{updated.isoformat(timespec='seconds')}</lastmod>"


def _xml(text: str) -> str:
    return escape(text.translate(_NOT_XML))
