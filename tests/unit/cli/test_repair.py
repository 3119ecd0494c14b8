"""`solotable recount` and `solotable locks` on a real file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from solotable._connect import connect
from solotable._expressions.ast import Assign, Const, Update
from solotable._protocol.requests import PutItem, UpdateItem
from tests.serving import command

MODELS = """
from typing import Annotated
from solotable import Counted, Counter, Entity, Key, Table, Unique

shop = Table("Shop")

class Group(Entity, table=shop):
    key = Key("GROUP#{group}", "GROUP")
    group: str
    members: Annotated[int, Counter()] = 0

class Member(Entity, table=shop):
    key = Key("GROUP#{group}", "MEMBER#{member}")
    counted = Counted(Group, "members")
    group: str
    member: str
    email: Annotated[str | None, Unique()] = None
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "models.py").write_text(MODELS)
    scope: dict[str, object] = {"__name__": "models_of_the_test"}
    exec(compile(MODELS, "models.py", "exec", dont_inherit=True), scope)  # noqa: S102 - the test's own text
    group, member, shop = scope["Group"], scope["Member"], scope["shop"]
    with connect(f"sqlite:///{tmp_path}/shop.db", shop) as db:  # type: ignore[arg-type]  # made above
        db.create(group(group="g"))  # type: ignore[operator]  # the same
        db.create(member(group="g", member="a", email="x"))  # type: ignore[operator]  # the same
        spoilt = Update((Assign(("members",), Const({"N": "7"})),), creates=True)
        key = {"PK": {"S": "GROUP#g"}, "SK": {"S": "GROUP"}}
        db.engine.handle(UpdateItem(table="Shop", key=key, update=spoilt))
        copy = member(group="g", member="b", email="x")  # type: ignore[operator]  # the same
        db.engine.handle(PutItem(table="Shop", item=copy.plan().encode(copy.__dict__)))
    return tmp_path


def test_recount_reports_and_repairs_wrong_counters(folder: Path) -> None:
    arguments = ("recount", "Member", "-m", "models.py:shop", "-d", "sqlite:///shop.db")
    tried = command(*arguments, "--dry-run", "--json", cwd=folder)
    assert tried.returncode == 1, tried.stderr
    (drifted,) = json.loads(tried.stdout)["drifted"]
    assert (drifted["stored"], drifted["counted"], drifted["repaired"]) == ("7", "2", False)
    repaired = command(*arguments, cwd=folder)
    assert (repaired.returncode, "1 counter checked, 1 wrong." in repaired.stdout) == (0, True)
    assert command(*arguments, "--dry-run", cwd=folder).returncode == 0


def test_locks_reports_duplicate_values(folder: Path) -> None:
    done = command("locks", "Member", "-m", "models.py:shop", "-d", "sqlite:///shop.db", cwd=folder)
    assert done.returncode == 1, done.stderr
    assert "Member.email = 'x' is already used by Member group='g', member='a'" in done.stdout
    assert "2 Member checked, 1 without a lock." in done.stdout
