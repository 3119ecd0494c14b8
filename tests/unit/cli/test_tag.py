"""`solotable tag`, and --skip-unknown of the commands that read, on a real file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from solotable import Entity, Key, Table

from .conftest import Ran, Run

MODELS = """
from typing import Self
from solotable import Entity, Key, Query, Table, pattern

app = Table("App", tag_required=False)

class Profile(Entity, table=app):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str

    @pattern
    @classmethod
    def of(cls, user_id: str) -> Query[Self]:
        '''A profile.'''
        return cls.key.query(user_id=user_id)

class Photo(Entity, table=app):
    key = Key("USER#{user_id}", "PHOTO#{photo:03d}")
    user_id: str
    photo: int

    @pattern
    @classmethod
    def of_user(cls, user_id: str) -> Query[Self]:
        '''The photos of a user.'''
        return cls.key.query(user_id=user_id)
"""
untagged = Table("App", tag=None)


class Thing(Entity, table=untagged):
    """Any item, as another program writes it."""

    key = Key(("PK",), ("SK",))
    PK: str
    SK: str
    user_id: str = "a"
    photo: int = 1


@pytest.fixture
def shop(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run commands on a file with three items without tags, one of which no entity matches."""
    monkeypatch.delenv("SOLOTABLE_TENANT", raising=False)
    (tmp_path / "models.py").write_text(MODELS)
    with untagged.open("sqlite:///survey.db") as db:
        for sort in ("PROFILE", "PHOTO#001", "PHOTO#one"):
            db.put(Thing(PK="USER#a", SK=sort))

    def run_(*arguments: str) -> Ran:
        found: Ran = run(*arguments, "-m", "models.py")
        return found

    return run_


def test_items_are_counted_and_then_tagged(shop: Callable[..., Ran]) -> None:
    counted = shop("tag", "--dry-run")
    assert counted.code == 0, counted.err
    assert counted.out.splitlines() == [
        "App: 3 items read.",
        "  Photo: 1 to tag",
        "  Profile: 1 to tag",
        "With a tag already: 0. Internal items: 0.",
        "Matched no entity: 1; the first ones:",
        '  {"PK": {"S": "USER#a"}, "SK": {"S": "PHOTO#one"}}',
    ]
    tagged = shop("tag", "App", "--json").json
    assert (tagged["counts"]["tagged"], tagged["done"]) == (2, True)
    assert shop("tag", "--dry-run", "--json").json["counts"]["known"] == 2


def test_a_checkpoint_file_continues_a_run(shop: Callable[..., Ran], tmp_path: Path) -> None:
    file = tmp_path / "position"
    first = shop("tag", "--budget", "2", "--checkpoint", str(file))
    assert "run it again with --checkpoint" in first.err
    assert file.exists()
    assert shop("tag", "--checkpoint", str(file), "--json").json["counts"]["seen"] == 1
    assert not file.exists()


def test_an_unknown_table_is_a_usage_error(shop: Callable[..., Ran]) -> None:
    assert "Name one of the declared tables: App." in shop("tag", "Other").err


def test_commands_that_read_skip_unknown_items_on_request(shop: Callable[..., Ran]) -> None:
    arguments = ("Photo.of_user", "user_id=a")
    assert "matches the key of no entity" in shop("query", *arguments).err
    found = shop("query", *arguments, "--skip-unknown", "--json")
    assert len(found.json["items"]) == 1
    assert "Skipped 1 item that no entity matches." in found.err
    assert len(shop("query", *arguments, "--skip-unknown", "--all", "--json").json) == 1
    assert shop("count", *arguments, "--skip-unknown", "--json").json == {"count": 1}
    assert shop("count", *arguments).code != 0
    assert len(shop("list", "Photo", "--skip-unknown", "--all", "--json").json) == 1


def test_a_killed_run_leaves_a_whole_checkpoint(
    shop: Callable[..., Ran], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "place"
    shop("tag", "--budget", "1", "--checkpoint", str(file))
    before = file.read_text()
    write = Path.write_text

    def interrupted(path: Path, text: str) -> int:
        write(path, text[:5])
        raise OSError("No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", interrupted)
        assert shop("tag", "--budget", "1", "--checkpoint", str(file)).code != 0
    assert file.read_text() == before
    assert shop("tag", "--checkpoint", str(file), "--json").json["counts"]["seen"] == 2
    assert not file.exists()
