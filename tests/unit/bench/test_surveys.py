"""Both layouts of the surveys answer alike; units come from replies, claims are judged as they are."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bench import limits
from bench.systems.surveys import compare, granular_layout, old_layout, tables, whole_survey
from bench.systems.surveys.compare import EMBEDDED, OLD, OURS
from bench.systems.surveys.workload import EDITS, FULL, LOAD, TINY, dollars_a_month, parts_of

ROOT = Path(__file__).parents[3]
RESULTS = ROOT / "bench" / "results" / "surveys.json"
GUIDE = ROOT / "docs" / "guide" / "surveys-cost.md"


@pytest.fixture(scope="module")
def measured(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The figures of tiny surveys in memory."""
    folder = tmp_path_factory.mktemp("surveys")
    numbers = iter(range(9))
    return compare.measure(lambda: f"sqlite:///{folder / f'{next(numbers)}.db'}", TINY, rounds=1)


def test_the_full_survey_is_that_of_the_requirements() -> None:
    kinds = Counter(part.kind for part in parts_of(FULL))
    assert kinds == {"section": 30, "element": 150, "component": 400}


def test_the_old_layout_has_eight_tables_and_over_fifteen_indexes() -> None:
    assert (len(old_layout.TABLES), old_layout.INDEXES) == (8, 18)
    assert (len(granular_layout.TABLES), granular_layout.INDEXES) == (1, 5)


def test_every_operation_has_figures_of_both_layouts(measured: dict[str, Any]) -> None:
    for layout in measured.values():
        assert list(layout) == list(LOAD)
        for name, each in layout.items():
            assert each["requests"] >= 1
            assert each["p50_ms"] > 0
            assert (each["wcu"] > 0) == (name in EDITS)
            assert each["dollars_a_month"] == dollars_a_month(name, each["rcu"], each["wcu"])


def test_an_edit_of_the_old_layout_writes_the_survey_with_each_of_its_indexes(
    measured: dict[str, Any],
) -> None:
    old = measured[OLD]["edit a section's note"]
    table = old["wcu"] - old["wcu_of_indexes"]
    # The entry by time moves, which is a delete and a put; two others are rewritten.
    assert old["wcu_of_indexes"] == 4 * table
    assert (old["requests"], measured[OURS]["edit a section's note"]["wcu"]) == (2, 10.0)


def test_the_tables_show_each_operation(measured: dict[str, Any]) -> None:
    text = list(tables.text_table(measured))
    assert [line.split("  ")[1] for line in text[1:-1]] == list(LOAD)
    sizes = {"tiny": {"parts": TINY.parts, "places": {EMBEDDED: measured}}}
    assert len(list(tables.markdown(sizes, "tiny", EMBEDDED))) == len(LOAD) + 3
    assert len(list(tables.claims_markdown(sizes))) == 3


def test_a_survey_that_is_too_large_fails_in_the_old_layout_and_is_not_beaten(tmp_path: Path) -> None:
    size = replace(TINY, components=600, surveys=1, sentences=10)
    numbers = iter(range(9))
    found = compare.measure(lambda: f"sqlite:///{tmp_path / f'{next(numbers)}.db'}", size, rounds=1)
    assert "at most 409,600" in found[OLD]["fails"]
    assert found[OURS]["Q2 complete survey"]["requests"] == 1
    assert tables.savings(found) is None
    assert any(line.startswith("  old fails: OldSurvey has") for line in tables.text_table(found))
    verdicts = limits.survey_verdicts({("full", EMBEDDED): None}, {})
    assert [each.outcome for each in verdicts] == ["not judged"] * 3


def test_claims_are_judged_by_what_was_measured() -> None:
    found = {("small", EMBEDDED): {"cost": 0.39, "writes": 0.70, "queries": -0.2}}
    verdicts = limits.survey_verdicts(found, {"memory": {"engine": 2.0, "service": 4.1}})
    assert [(each.outcome, each.figure) for each in verdicts] == [
        ("not reached", "-39.0%"),
        ("reached", "+70%"),
        ("not reached", "-20%"),
        ("not reached", "2.05x"),
    ]


def test_a_complete_survey_is_measured_beside_the_same_query(tmp_path: Path) -> None:
    for figures in whole_survey.measure(tmp_path, TINY, rounds=1).values():
        assert figures["requests"] == 1
        assert figures["service"] > 0
        assert figures["engine"] > 0


def test_the_guide_shows_the_figures_of_the_results() -> None:
    guide = GUIDE.read_text(encoding="utf-8")
    for table in tables.guide_tables(RESULTS):
        assert table in guide, "print the tables with `python -m bench.systems.surveys.tables`"
