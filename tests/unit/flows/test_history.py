"""The flows of histories and names by themselves: what they ask for, driven by hand and without an engine."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import pytest

from solotable import ANY, FROM_SCOPE, Entity, History, Index, Key, Names, Redirect, Table, Version
from solotable._flows.cursors import CursorSigner
from solotable._flows.retry import Flow, Retries
from solotable._flows.scope import Scope
from solotable._flows.traits import history, rename
from solotable._flows.traits.restore import plan_restore
from solotable._flows.transactions.write import DerivedWrite, Write
from solotable._flows.writes.changes import Changes
from solotable._flows.writes.put import plan_delete, plan_put, prepare_put
from solotable._flows.writes.update import plan_update
from solotable._protocol.replies import GotItem
from solotable._protocol.requests import ConditionCheck, DeleteItem, GetItem, PutItem
from solotable._values import Item
from solotable.errors import DataError, VersionConflict

cms = Table("Cms", tenant="tenant_id", indexes=[Index("GSI1")])
SCOPE = Scope(
    names={"Cms": "cms"},
    clock=lambda: 0.0,
    retries=Retries(random=lambda: 0.0),
    cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: 0.0),
    tokens=lambda: "token",
    tenant="acme",
)


class Page(Entity, table=cms):
    key = Key("TENANT#{tenant_id}", "PAGE#{page_id}#LATEST")
    by_title = Key("TENANT#{tenant_id}", "{title}", index="GSI1")
    history = History("PAGE#{page_id}#v{version:03d}", keep=2)
    tenant_id: str = FROM_SCOPE
    page_id: str
    title: str = "t"
    version: Annotated[int, Version()] = 0


class Route(Entity, table=cms):
    key = Key("TENANT#{tenant_id}", "ROUTE#{path}")
    names = Names("path", protected=("/",))
    tenant_id: str = FROM_SCOPE
    path: str
    version: Annotated[int, Version()] = 0


def page(version: int, title: str = "t") -> Item:
    entity = Page(tenant_id="acme", page_id="p", title=title, version=version)
    return Page.plan().encode(entity.__dict__)


def route(path: str, version: int, *aliases: str) -> Item:
    entity = Route(tenant_id="acme", path=path, version=version)
    unknown: Item = {"_aliases": {"L": [{"S": each} for each in aliases]}} if aliases else {}
    return Route.plan().encode(entity.__dict__, unknown)


def redirect(path: str, to: str) -> Item:
    key: Item = {"PK": {"S": "TENANT#acme"}, "SK": {"S": f"ROUTE#{path}"}}
    return {**key, "_type": {"S": "_redirect:Route"}, "IsRedirect": {"BOOL": True}, "to": {"S": to}}


def drive(flow: Flow[Any], replies: Sequence[Item | None]) -> tuple[list[str], Any]:
    """Answer each GetItem in turn; return the sort keys that were asked for, and the result."""
    asked: list[str] = []
    try:
        request = next(flow)
        for item in replies:
            assert isinstance(request, GetItem)
            assert request.table == "cms"
            asked.append(request.key["SK"]["S"])
            request = flow.send(GotItem(item=item))
    except StopIteration as done:
        return asked, done.value
    raise AssertionError(f"it asks for more: {request}")


def derived_actions(write: Write) -> list[tuple[str, str, bool]]:
    """Return the kind, the sort key and whether there is a condition, of everything that goes along."""
    found = []
    for derived in write.derived_writes:
        assert isinstance(derived, DerivedWrite)
        action = derived.action
        key = action.item if isinstance(action, PutItem) else action.key
        found.append((type(action).__name__, key["SK"]["S"], action.condition is not None))
    return found


def test_an_update_puts_the_former_version_aside() -> None:
    flow = plan_update(SCOPE, Page.plan(), {"page_id": "p"}, Changes(set={"title": "u"}), version=5)
    asked, write = drive(flow, [page(5)])
    assert asked == ["PAGE#p#LATEST"]
    assert derived_actions(write) == [("PutItem", "PAGE#p#v005", True), ("DeleteItem", "PAGE#p#v003", False)]
    action = write.derived_writes[0].action
    assert isinstance(action, PutItem)
    assert action.item == {
        "PK": {"S": "TENANT#acme"},
        "SK": {"S": "PAGE#p#v005"},
        "_type": {"S": "_history:Page"},
        "tenant_id": {"S": "acme"},
        "page_id": {"S": "p"},
        "title": {"S": "t"},
        "version": {"N": "5"},
    }


def test_a_create_checks_that_no_history_is_in_the_way() -> None:
    asked, write = drive(plan_put(SCOPE, prepare_put(SCOPE, Page(page_id="p"))), [])
    assert asked == []
    assert derived_actions(write) == [("ConditionCheck", "PAGE#p#vDELETED", True)]


def test_a_delete_keeps_the_last_version_and_says_that_it_was() -> None:
    _, write = drive(plan_delete(SCOPE, Page.plan(), {"page_id": "p"}, version=ANY), [page(2)])
    assert isinstance(write.action, DeleteItem)
    assert derived_actions(write) == [
        ("PutItem", "PAGE#p#v002", True),
        ("DeleteItem", "PAGE#p#v000", False),
        ("PutItem", "PAGE#p#vDELETED", False),
    ]


def test_a_version_that_does_not_fit_the_template_is_refused() -> None:
    flow = plan_put(SCOPE, prepare_put(SCOPE, Page(page_id="p", version=1000)))
    with pytest.raises(DataError, match=r"Page\.version = 1000"):
        drive(flow, [page(1000)])


def test_a_restore_of_what_is_there_and_of_what_is_gone() -> None:
    place = history.locate_history(SCOPE, Page.plan(), {"page_id": "p"})
    snapshot = place.trait.snapshot(page(3, "old"), place.trait.key_of(place.key, place.values, 3))
    asked, write = drive(plan_restore(place, 3), [page(5), snapshot, page(5)])
    assert asked == ["PAGE#p#LATEST", "PAGE#p#v003", "PAGE#p#LATEST"]
    assert write.action.item["title"] == {"S": "old"}
    assert write.action.item["version"] == {"N": "6"}
    assert derived_actions(write)[0] == ("PutItem", "PAGE#p#v005", True)
    with pytest.raises(VersionConflict):
        drive(plan_restore(place, 3), [page(5), snapshot, page(6)])

    mark = {**place.trait.marker_of(place.key, place.values), "version": {"N": "5"}}
    asked, write = drive(plan_restore(place, 3), [None, snapshot, mark])
    assert asked == ["PAGE#p#LATEST", "PAGE#p#v003", "PAGE#p#vDELETED"]
    assert write.action.item["version"] == {"N": "6"}
    assert derived_actions(write) == [("DeleteItem", "PAGE#p#vDELETED", True)]


def test_a_rename_turns_every_former_name_and_takes_its_own_back() -> None:
    flow = rename.plan_rename(SCOPE, Route.plan(), {"path": "/c"}, to="/a", version=3)
    asked, write = drive(flow, [route("/c", 3, "/a", "/b")])
    assert asked == ["ROUTE#/c"]
    assert write.action.item == redirect("/c", "/a")
    assert derived_actions(write) == [("PutItem", "ROUTE#/a", True), ("PutItem", "ROUTE#/b", True)]
    moved, turned = (derived.action for derived in write.derived_writes)
    assert moved.item == route("/a", 4, "/b", "/c")
    assert turned.item == redirect("/b", "/a")


def test_a_delete_takes_the_redirects_along_and_stops_at_protected_names() -> None:
    flow = plan_delete(SCOPE, Route.plan(), {"path": "/c"}, version=ANY)
    _, write = drive(flow, [route("/c", 3, "/a", "/b")])
    assert derived_actions(write) == [("DeleteItem", "ROUTE#/a", True), ("DeleteItem", "ROUTE#/b", True)]
    with pytest.raises(DataError, match="protected and cannot be deleted"):
        drive(plan_delete(SCOPE, Route.plan(), {"path": "/"}, version=ANY), [route("/", 3)])


def test_following_a_name_ends() -> None:
    def resolve() -> Flow[Any]:
        return rename.resolve(SCOPE, Route.plan(), {"path": "/a"}, follow=True, consistent=False)

    asked, found = drive(resolve(), [redirect("/a", "/b"), route("/b", 2, "/a")])
    assert asked == ["ROUTE#/a", "ROUTE#/b"]
    assert isinstance(found, Redirect)
    # A loop that was planted by hand is not followed for ever.
    loop = [redirect("/a", "/b"), redirect("/b", "/a"), redirect("/a", "/b")] * 2
    asked, found = drive(resolve(), loop[:5])
    assert len(asked) == 5
    assert found is None


def test_actions_without_a_condition_are_never_blamed() -> None:
    _, write = drive(plan_delete(SCOPE, Page.plan(), {"page_id": "p"}, version=ANY), [page(2)])
    for derived in write.derived_writes:
        if not isinstance(derived.action, ConditionCheck) and derived.action.condition is None:
            with pytest.raises(AssertionError):
                derived.explain(None)
