"""Texts, dates, URLs and tables as escaped HTML, for the page of a report."""

from __future__ import annotations

import re
from datetime import date, datetime
from html import escape
from urllib.parse import urlsplit

from solotable.systems.texts import clean

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October"),
    *("November", "December"),
)
_LONG_WORD = re.compile(r"\S{24}(?=\S)")


def paragraphs(text: str) -> str:
    r"""Return a text as paragraphs; a single line break stays one.

    >>> paragraphs("Dry.\nNo <moss>.\n\nSee photo.")
    '<p>Dry.<br>No &lt;moss&gt;.</p><p>See photo.</p>'
    """
    blocks = (block.strip("\n") for block in clean(text).strip().split("\n\n"))
    return "".join(f"<p>{lines_html(block)}</p>" for block in blocks if block.strip())


def text_html(text: str) -> str:
    """Return a text, escaped for elements and for quoted attributes."""
    return escape(clean(text))


def lines_html(text: str) -> str:
    """Return a text with its line breaks."""
    return text_html(text.strip()).replace("\n", "<br>")


def cell_html(text: str) -> str:
    """Return a text of a table, in which long words may break; a cell is as wide as its longest word."""
    marked = _LONG_WORD.sub("\\g<0>\0", clean(text).strip())  # clean() removes what is stored of this mark
    return escape(marked).replace("\0", "<wbr>").replace("\n", "<br>")


def day_html(day: date) -> str:
    """Return a date, as in 29 October 2026."""
    return f'<time datetime="{day:%Y-%m-%d}">{day.day} {_MONTHS[day.month - 1]} {day.year}</time>'


def moment_html(moment: datetime) -> str:
    """Return a date and a time of day."""
    return f"{day_html(moment)}, {moment:%H:%M} UTC"


def safe_url(url: str | None) -> str | None:
    """Return a URL of a page or a picture; None for one that could run a script."""
    if url is None:
        return None
    scheme = urlsplit(url).scheme
    is_picture = scheme == "data" and url.startswith("data:image/") and "svg" not in url.partition(",")[0]
    return url if scheme in ("", "http", "https") or is_picture else None


def columns_html(*names: str) -> str:
    """Return the headings of a table's columns."""
    return "".join(f'<th scope="col">{name}</th>' for name in names)


def table_html(kind: str, columns: str, rows: str) -> str:
    """Return a table that scrolls in a frame, so that the page never scrolls sideways."""
    head = f"<thead><tr>{columns}</tr></thead>" if columns else ""
    return f'<div class="wide"><table class="{kind}">{head}<tbody>{rows}</tbody></table></div>'
