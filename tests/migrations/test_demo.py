"""`make demo-migration` moves the surveys under writers, and exits with 0."""

from __future__ import annotations

import pytest

from solotable.systems.surveys.migration.demo import main


def test_the_demo_loses_no_write_and_shows_each_step(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--tenants", "4", "--surveys", "1"]) == 0
    printed = capsys.readouterr().out
    for words in (
        "diff: ",
        "switch-reads 10 %",
        "switch-reads 100 %: 4 of 4 tenants read the new table",
        "mirror: ",
        "switch-writes: the target takes writes",
        "reverse: the source takes writes",
        "complete --keep-data",
        "0 client errors, 0 lost",
    ):
        assert words in printed
