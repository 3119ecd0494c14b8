"""The examples run and print what they promise."""

from __future__ import annotations

import runpy

import pytest

from .checkout import ROOT


def test_the_engine_tour_prints_results_and_capacity_units(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(ROOT / "examples" / "engine_tour.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    for expected in (
        "put dune 1.0 units",
        "lend dune to ana: table and index are written 2.0 units",
        "lend dune again: The conditional request failed; copies are 0",
        "ana has ['dune'] 0.5 units",
        "lend emma and record the loan: twice the units 6.0 units",
        "again: nothing written, ['ConditionalCheckFailed', 'None']",
        "two minutes later: 1 item expired",
        "MODIFY dune book, by a caller",
        "REMOVE emma loan, by dynamodb.amazonaws.com",
        "dune: {'pk': 'dune', 'sk': 'book', 'copies': Decimal('0'), 'reader': 'ana'}",
        "The file was temporary; it had ",
    ):
        assert expected in printed


def test_the_store_tour_prints_results_and_errors(
    capsys: pytest.CaptureFixture[str],
) -> None:
    runpy.run_path(str(ROOT / "examples" / "surveys.py"), run_name="__main__")
    printed = " ".join(capsys.readouterr().out.split())
    for expected in (
        "Survey(tenant_id='acme', survey_id='s1', title='12 Main Street', status='draft', section_count=4,",
        "Loft is number 9 now: Damp",
        "expected version 1, found version 2",
        "first Roof, Walls, Cellar, cursor of",
        "then Loft, the end: True",
        "as zeta: Invalid cursor",
        "with notes: Loft, of 4 items read",
        "12 Main Street: Cellar, Loft, Roof, Walls",
        "Transaction of 2 failed at #2 Check Survey survey_id='s1': status = 'draft' was required",
        "sections: 4",
        "is already used by Survey survey_id='s1'",
        "zeta has 0 sections, acme 4",
        "The file was temporary. Open aws://SurveyorData?region=eu-west-1",
    ):
        assert expected in printed
