"""The performance page: every missed limit says what bounds it, and every recorded figure is on the page."""

from __future__ import annotations

import re

import pytest

from bench import bounds, page, report
from bench.limits import Verdict

from .checkout import ROOT

PAGE = ROOT / "docs" / "explanation" / "performance.md"
RECORDS = page.records()


def test_every_missed_limit_says_what_bounds_it() -> None:
    assert page.unexplained(RECORDS) == []


def test_a_missed_limit_without_a_text_is_named() -> None:
    limit = {"what": "a new figure", "limit": "at most 2x", "figure": "3.00x", "outcome": "not reached"}
    (message,) = page.unexplained({"new": {"limits": [limit, {**limit, "outcome": "reached"}]}})
    assert "bench/results/new.json: 'a new figure' misses its limit (at most 2x: 3.00x)" in message
    assert "bench/bounds.py" in message
    (line,) = report.bounds([Verdict(**limit)])  # type: ignore[arg-type]  # an outcome as text
    assert "a new figure: NOT KNOWN" in line


def test_the_page_has_every_recorded_figure() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for part, stored in RECORDS.items():
        for limit in stored["limits"]:
            cells = " | ".join(page.cell(limit[name]) for name in ("what", "limit", "figure"))
            assert f"| {cells} | " in text, f"{part}: run python docs/generate.py"


@pytest.mark.parametrize("start, text", bounds.BOUNDS, ids=[start for start, _ in bounds.BOUNDS])
def test_a_bound_is_a_sentence_whose_links_lead_to_files(start: str, text: str) -> None:
    re.compile(start)
    assert text.strip().endswith(".")
    links = re.findall(r"\]\(([^)#]+)", text)
    assert [link for link in links if not (PAGE.parent / link).exists()] == []


def test_every_record_says_what_it_was_measured_on() -> None:
    for part, stored in RECORDS.items():
        assert {"cores", "load_average", "python", "sqlite"} <= stored["machine"].keys(), part
        assert not stored.get("quick"), f"{part} is a quick look, not a figure"
