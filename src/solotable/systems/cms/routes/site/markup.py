"""URLs of pages, and sitemaps as XML, with every text escaped. The theme has the HTML of pages."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from html import escape
from urllib.parse import quote

from solotable.systems.cms.entities import ContentSummary

#: Characters that XML 1.0 cannot hold, even escaped.
_NOT_XML = dict.fromkeys([*range(9), 11, 12, *range(14, 32), 0xFFFE, 0xFFFF])


def url_path(path: str) -> str:
    """Return a path as in URLs, with one leading slash, so that it never names another host.

    >>> url_path("/ünser blog"), url_path("//evil.example")
    ('/%C3%BCnser%20blog', '/evil.example')
    """
    return "/" + quote(path.lstrip("/"), safe="/-._~")


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
