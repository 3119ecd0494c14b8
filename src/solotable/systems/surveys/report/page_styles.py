"""The styles of a report: a stylesheet for all, and the texts that repeat on each printed page."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from .model import UNFINISHED, Report

_SAFE = re.compile(r"[^A-Za-z0-9 ,.\-\u00a1-\ud7ff]")
_STATUS = {"draft": "Draft", "in_progress": "Draft, in progress"}
_MOST_CHARACTERS = 90


@cache
def stylesheet() -> str:
    """Return the stylesheet of every report."""
    return Path(__file__).with_name("report.css").read_text(encoding="utf-8")


def running_styles(report: Report) -> str:
    """Return the page margins of a printed report: title, reference, client; the cover has none."""
    reference = f"Report {report.survey_id}, version {report.version}"
    if report.status in UNFINISHED:
        reference = f"{_STATUS[report.status]} · {reference}"
    names = [report.facts.firm, f"for {report.client_name}" if report.client_name else ""]
    margins = {
        "top-left": report.title,
        "top-right": reference,
        "bottom-left": ", ".join(name for name in names if name),
    }
    page = " ".join(f"@{margin} {{ content: {css_string(text)}; }}" for margin, text in margins.items())
    cover = " ".join(f"@{margin} {{ content: none; }}" for margin in (*margins, "bottom-right"))
    return f"@page {{ {page} }}\n@page cover {{ {cover} }}\n"


def css_string(text: str) -> str:
    r"""Return a text as a CSS string that nothing can end, on one line, cut at a length that a margin holds.

    >>> css_string('4" </style>\n')
    '"4\\22  \\3c \\2f style\\3e "'
    """
    line = " ".join(text.split())
    if len(line) > _MOST_CHARACTERS:
        line = line[: _MOST_CHARACTERS - 1].rstrip() + "…"
    return '"' + _SAFE.sub(lambda found: f"\\{ord(found[0]):x} ", line) + '"'
