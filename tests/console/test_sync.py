"""The page of Sync: spaces of synced entities, their clients and their log."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable import connect
from tests.store.syncing import Project, Replica, Todo, sync_of, synced

from .site import Site, SiteMaker

TABLE = "/t/Synced"
SCRIPT = "<script>alert(1)</script>"


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    path = tmp_path / "synced.db"
    with connect(f"sqlite:///{path}", synced) as database:
        service = sync_of(database, view=lambda db, user: ["", f"project/{SCRIPT}"])
        ann = Replica(service)
        ann.mutate("put", id="a", text="A")
        ann.mutate("reject", id="b")
        ann.sync_all()
        Replica(service, group=f"g2/{SCRIPT}", client=SCRIPT, user=SCRIPT).push(
            {"id": 1, "clientID": SCRIPT, "name": "put", "args": {"id": SCRIPT}, "timestamp": 1}
        )
        acme = database.tenant("acme")
        acme.put(Project(project_id="p 1", title=SCRIPT))
        for number in range(30):
            acme.put(Todo(todo_id=f"t{number}"))
        acme.delete(Todo, todo_id="t0")
        database.tenant("globex").put(Todo(todo_id="g"))
    made = Site(path, tables=[synced])
    yield made
    made.close()


def test_the_spaces_of_all_tenants_are_listed_with_their_heads(site: Site) -> None:
    found = site.json(f"{TABLE}/-/sync.json")
    rows = [(each["tenant"], each["name"], each["version"], each["oldest"]) for each in found["spaces"]]
    assert rows == [("acme", "", 33, 1), ("acme", "project/p 1", 1, 1), ("globex", "", 1, 1)]
    assert all(each["epoch"] and each["at"] for each in found["spaces"])
    # Two small reads for each space.
    assert found["cost"] == {"requests": 6, "rcu": 3.0}
    assert {each["name"]: each["space"] for each in found["entities"]}["Note"] == "project/{project_id}"
    scoped = site.json(f"{TABLE}/-/sync.json?tenant=globex")
    assert [(each["tenant"], each["name"]) for each in scoped["spaces"]] == [("globex", "")]


def test_a_space_shows_clients_and_its_log_in_pages(site: Site) -> None:
    found = site.json(f"{TABLE}/-/sync.json?of=acme&space=")
    clients = {each["client"]: each for each in found["clients"]}
    assert clients["c1"] == {
        "group": "g1",
        "client": "c1",
        "user": "ann",
        "last_mutation_id": 2,
        "at": clients["c1"]["at"],
        "rejected": 1,
        "is_reset": False,
        "confirmed_at": 1,
        "versions_since": 32,
    }
    assert (clients[SCRIPT]["group"], clients[SCRIPT]["user"]) == (f"g2/{SCRIPT}", SCRIPT)
    assert [each["version"] for each in found["log"]] == list(range(33, 8, -1))
    assert found["log"][0]["keys"] == [{"key": "todo/t0", "change": "deleted", "group": None}]
    older = site.json(found["next"].replace("?", ".json?"))
    assert [each["version"] for each in older["log"]] == list(range(8, 0, -1))
    assert older["next"] is None
    assert older["log"][-1]["clients"] == [["g1", "c1", 2]]


def test_pages_escape_what_clients_chose(site: Site) -> None:
    for path in (
        f"{TABLE}/-/sync",
        f"{TABLE}/-/sync?of=acme&space=",
        f"{TABLE}/-/sync?of=acme&space=project/p+1",
    ):
        assert SCRIPT not in site.get(path).text
    missing = site.client.get(f"{TABLE}/-/sync", params={"of": SCRIPT, "space": SCRIPT})
    assert missing.status_code == 404
    assert SCRIPT not in missing.text
    assert site.client.get(f"{TABLE}/-/sync/acme/~~?before=x").status_code == 400


def test_a_table_without_synced_entities_says_how_to_declare_one(make_site: SiteMaker) -> None:
    assert "sync = Synced()" in make_site().get("/t/SurveyorData/-/sync").text
    assert "-m models.py" in make_site(models=False).get("/t/SurveyorData/-/sync").text
    assert make_site().client.get("/t/SurveyorData/-/sync/acme/~~").status_code == 404
