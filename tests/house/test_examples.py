"""The examples run and print what they promise."""

from __future__ import annotations

import runpy

import pytest

from .checkout import ROOT


def test_the_tour_of_the_engine_tells_what_happened_and_what_it_cost(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(ROOT / "examples" / "engine_tour.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    for expected in (
        "put dune 1.0 units",
        "lend dune to ana: table and index are written 2.0 units",
        "lend dune again: The conditional request failed; copies are 0",
        "ana has ['dune'] 0.5 units",
        "lend emma and note the loan: double price 6.0 units",
        "again: nothing written, ['ConditionalCheckFailed', 'None']",
        "two minutes later: 1 item expired",
        "MODIFY dune book, by a caller",
        "REMOVE emma loan, by dynamodb.amazonaws.com",
        "dune: {'pk': 'dune', 'sk': 'book', 'copies': Decimal('0'), 'reader': 'ana'}",
        "All of it was in library.db",
    ):
        assert expected in printed


def test_the_tour_of_the_store_tells_what_is_stored_and_what_is_refused(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(ROOT / "examples" / "surveys.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    for expected in (
        "Survey(tenant_id='acme', survey_id='s1', title='12 Main Street', status='draft', section_count=4,",
        "Loft is number 9 now: Damp",
        "expected version 1, found 2",
        "first Roof, Walls, Cellar, cursor of",
        "then Loft, the end: True",
        "as zeta: This cursor is not one of this query's",
        "with notes: Loft, of 4 that were read",
        "12 Main Street: Cellar, Loft, Roof, Walls",
        "Transaction of 2 failed at #2 Check Survey survey_id='s1': status = 'draft' was required",
        "sections: 4",
        "is taken by Survey survey_id='s1'",
        "zeta has 0 sections, acme 4",
        "All of it was in surveys.db",
    ):
        assert expected in printed
