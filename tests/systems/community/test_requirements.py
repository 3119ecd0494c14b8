"""Every requirement and trap of the community has a test with its number, and the page lists it."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from solotable import connect
from solotable._entities.lint import lint
from solotable.backup import BackupFile
from solotable.backup.drill import run_drill
from solotable.engines import sqlite
from solotable.errors import NotUnique
from solotable.exports import export_table, import_export, locate, open_export
from solotable.systems.community.entities.neighbourhoods import Membership, Neighbourhood
from solotable.systems.community.entities.users import User
from solotable.systems.community.table import community
from tests.systems.requirements import check_requirements

NUMBERS = [f"s2_{n}" for n in range(1, 29)] + [f"c2_{n}" for n in range(1, 14)]


def test_every_number_has_a_test_and_a_row_on_the_page() -> None:
    check_requirements(Path(__file__).parent, "requirements-community.md", NUMBERS)


def test_the_linter_finds_nothing_that_is_wrong() -> None:
    assert [each for each in lint(community) if each.severity != "note"] == []


def test_s2_26_the_table_is_billed_per_request() -> None:
    assert community.definition()["BillingMode"] == "PAY_PER_REQUEST"


def test_s2_19_the_table_is_in_one_region() -> None:
    assert "Replicas" not in community.definition()


def fill(path: Path) -> str:
    """Store a small neighbourhood, and return its URL."""
    url = f"sqlite:///{path}"
    with connect(url, community) as db, BackupFile(str(path)) as file:
        file.enable("community", days=35)
        for number in range(20):
            user = db.create(
                User(did=f"did:plc:u{number}", display_name="U", bluesky_handle=f"u{number}.example")
            )
            assert user.created_at is not None
        place = db.create(Neighbourhood(neighbourhood_id="n1", name="N", slug="n", creator_did="did:plc:u0"))
        assert place.created_at is not None
        for number in range(20):
            db.create(
                Membership(
                    neighbourhood_id="n1",
                    user_did=f"did:plc:u{number}",
                    role="creator" if number == 0 else "member",
                    status="active",
                    joined_at=place.created_at,
                    changed_at=place.created_at,
                )
            )
    return url


def test_s2_20_a_drill_restores_a_random_moment_with_all_indexes(tmp_path: Path) -> None:
    fill(tmp_path / "town.db")
    with sqlite.open(str(tmp_path / "town.db")) as engine:
        drill = run_drill(engine, "community", folder=tmp_path, chance=random.Random(1))
    assert drill.passed
    assert (drill.indexes, drill.differences, drill.index_differences) == (7, 0, 0)
    assert drill.restore_seconds < 24 * 3600


def test_c2_13_an_export_is_imported_into_a_community_that_works(tmp_path: Path) -> None:
    fill(tmp_path / "town.db")
    with sqlite.open(str(tmp_path / "town.db")) as engine:
        export_table(engine, "community", locate(str(tmp_path / "exports")))
    target = f"sqlite:///{tmp_path / 'copy.db'}"
    with connect(target, community):
        pass
    with sqlite.open(str(tmp_path / "copy.db")) as copy:
        import_export(copy, "community", open_export(locate(str(tmp_path / "exports"))))
    with connect(target, community) as db:
        assert db.require(Neighbourhood, neighbourhood_id="n1").member_count == 20
        assert len(list(db.all(User.newest()))) == 20
        with pytest.raises(NotUnique):
            db.create(User(did="did:plc:thief", display_name="T", bluesky_handle="u3.example"))
        db.delete(db.require(Membership, neighbourhood_id="n1", user_did="did:plc:u3"))
        assert db.require(Neighbourhood, neighbourhood_id="n1").member_count == 19
