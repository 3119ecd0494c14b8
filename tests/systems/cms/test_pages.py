"""Pages, routes and versions: S0.3-S0.5, S0.18-S0.22 and the traps around them."""

from __future__ import annotations

import asyncio

import pytest

from solotable import ANY, History
from solotable._expressions.ast import Exists, Not
from solotable._protocol.requests import PutItem, TransactWriteItems
from solotable.errors import AlreadyExists, DataError, NotFound, VersionConflict
from solotable.systems.cms import Content, ContentDraft, ContentPatch, ContentStatus, PathRedirect, Route

from .site import Site


def patch(**changes: object) -> ContentPatch:
    return ContentPatch.model_validate(changes)


def test_s0_3_the_current_copy_is_at_latest_and_carries_its_version(site: Site) -> None:
    page = site.page("/about")
    (item,) = [item for item in site.raw() if item["SK"]["S"] == f"CONTENT#{page.node_id}#LATEST"]
    assert item["PK"] == {"S": "TENANT#acme"}
    assert item["version"] == {"N": "1"}
    assert site.run(site.acme.contents.get(page.node_id)) == page


def test_s0_4_an_edit_leaves_the_old_copy_under_the_version_it_had(site: Site) -> None:
    page = site.page("/about", title="Old")
    site.run(site.acme.contents.update(page.node_id, patch(title="New"), version=1))
    assert site.keys(f"CONTENT#{page.node_id}") == [
        f"CONTENT#{page.node_id}#LATEST",
        f"CONTENT#{page.node_id}#v000001",
    ]
    assert site.run(site.acme.versions.get(page.node_id, 1)).title == "Old"


def test_s0_5_a_path_is_resolved_by_one_get_for_the_route_and_one_for_the_page(site: Site) -> None:
    page = site.page("/about", blocks=[{"text": "x" * 3000}])
    site.sent()
    assert site.run(site.acme.routes.resolve("/about")) == page
    assert site.journal.rcu == 1.0  # 0.5 for a route, 0.5 for a page of up to 4 KB
    assert site.sent() == ["GetItem", "GetItem"]
    assert site.run(site.acme.routes.resolve("/nowhere")) is None
    assert site.sent() == ["GetItem"]


def test_s0_5_a_draft_is_not_published_but_can_be_previewed(site: Site) -> None:
    page = site.page("/soon", status="draft")
    assert site.run(site.acme.routes.resolve("/soon")) is None
    assert site.run(site.acme.routes.resolve("/soon", preview=True)) == page


def test_s0_18_the_root_and_contact_are_neither_renamed_nor_deleted(site: Site) -> None:
    services, before = site.acme, site.raw()
    for slug in ("/", "/contact"):
        page = site.run(services.routes.resolve(slug))
        assert isinstance(page, Content)
        attempts = (
            services.contents.delete(page.node_id),
            services.contents.update(page.node_id, patch(slug="/elsewhere")),
            services.store.delete(Route, slug=slug, version=ANY),
            services.store.names(Route).rename(slug, to="/elsewhere", version=ANY),
        )
        for attempt in attempts:
            with pytest.raises(DataError, match="protected"):
                site.run(attempt)
    assert site.raw() == before
    home = site.run(services.routes.resolve("/"))
    assert isinstance(home, Content)
    changed = site.run(services.contents.update(home.node_id, patch(title="Write to us")))
    assert changed.title == "Write to us"


@pytest.mark.parametrize(
    "spelling", ["/CONTACT", "contact/", "//contact", " /Contact ", "/Ｃontact", "/ contact"]
)
def test_s0_18_another_spelling_is_the_same_protected_path(site: Site, spelling: str) -> None:
    with pytest.raises(AlreadyExists):
        site.run(site.acme.contents.create(ContentDraft(title="Mine", slug=spelling)))


def test_s0_19_k_updates_leave_k_snapshots_and_version_k_plus_1(site: Site) -> None:
    page = site.page("/about")
    for number in range(12):
        page = site.run(
            site.acme.contents.update(page.node_id, patch(title=f"T{number}"), version=page.version)
        )
    assert page.version == 13
    assert len(site.keys(f"CONTENT#{page.node_id}#v")) == 12


def test_s0_19_what_is_not_given_stays_and_empty_is_a_value(site: Site) -> None:
    page = site.page("/about", description="Something", blocks=[{"type": "text"}])
    changed = site.run(site.acme.contents.update(page.node_id, patch(description="")))
    assert (changed.title, changed.description, changed.blocks) == (page.title, "", [{"type": "text"}])
    assert site.run(site.acme.contents.update(page.node_id, ContentPatch())) == changed


def test_s0_20_a_new_slug_leaves_a_redirect_under_the_old_one(site: Site) -> None:
    page = site.page("/a")
    moved = site.run(site.acme.contents.update(page.node_id, patch(slug="/b", title="B"), version=1))
    assert (moved.slug, moved.title, moved.version) == ("/b", "B", 2)
    (old,) = [item for item in site.raw() if item["SK"]["S"] == "ROUTE#/a"]
    assert (old["IsRedirect"], old["to"]) == ({"BOOL": True}, {"S": "/b"})
    assert site.run(site.acme.routes.resolve("/a")) == PathRedirect(path="/a", to="/b")
    assert site.run(site.acme.routes.resolve("/b")) == moved
    assert site.run(site.acme.routes.redirects()).items == [PathRedirect(path="/a", to="/b")]


@pytest.mark.parametrize("status", ["draft", "review", "archived"])
def test_s0_20_a_redirect_does_not_tell_the_path_of_what_is_not_published(
    site: Site, status: ContentStatus
) -> None:
    page = site.page("/plan-a")
    routes, contents = site.acme.routes, site.acme.contents
    site.run(contents.update(page.node_id, patch(slug="/secret-plan", status=status)))
    assert site.run(routes.resolve("/plan-a")) is None
    assert site.run(routes.resolve("/Plan_A/")) is None
    assert site.run(routes.resolve("/plan-a", preview=True)) == PathRedirect(
        path="/plan-a", to="/secret-plan"
    )
    site.run(contents.update(page.node_id, patch(status="published")))
    assert site.run(routes.resolve("/plan-a")) == PathRedirect(path="/plan-a", to="/secret-plan")
    site.run(contents.delete(page.node_id))
    assert site.run(routes.resolve("/plan-a", preview=True)) is None


def test_s0_20_content_and_route_move_in_one_transaction_or_not_at_all(site: Site) -> None:
    page = site.page("/a")
    site.page("/taken")
    before = site.raw()
    with pytest.raises(AlreadyExists):
        site.run(site.acme.contents.update(page.node_id, patch(slug="/taken", title="X"), version=1))
    with pytest.raises(VersionConflict):
        site.run(site.acme.contents.update(page.node_id, patch(slug="/free"), version=7))
    assert site.raw() == before
    site.sent()
    site.run(site.acme.contents.update(page.node_id, patch(slug="/free"), version=1))
    assert site.sent().count("TransactWriteItems") == 1


def test_s0_21_creating_what_exists_is_refused(site: Site) -> None:
    page = site.page("/about")
    copy = page.model_copy(update={"version": 0, "title": "Other"})
    with pytest.raises(AlreadyExists):
        site.run(site.acme.store.create(copy))
    request = site.journal.requests("TransactWriteItems")[-1]
    assert isinstance(request, TransactWriteItems)
    (put,) = [
        each for each in request.actions if isinstance(each, PutItem) and "LATEST" in repr(each.item["SK"])
    ]
    assert put.condition == Not(Exists(("PK",)))
    assert site.run(site.acme.contents.get(page.node_id)).title == "About"


def test_s0_22_content_and_route_are_made_together_or_neither_is(site: Site) -> None:
    site.page("/about")
    site.sent()
    before = site.raw()
    with pytest.raises(AlreadyExists, match="/about"):
        site.run(site.acme.contents.create(ContentDraft(title="Second", slug="About")))
    assert site.raw() == before
    assert site.sent() == ["TransactWriteItems"]


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("About Us", "/about-us"),
        ("/Blog//2024/", "/blog/2024"),
        ("--x--", "/x"),
        ("/../../etc/passwd", "/etc/passwd"),
        ("/%2e%2e/a", "/2e-2e/a"),
        ("/A\u0308rger", "/ärger"),
        ("/STRASSE", "/strasse"),
        ("/straße", "/strasse"),
        ("/a\u200bb", "/a-b"),
        ("/<script>", "/script"),
        ("a／b", "/a/b"),
    ],
)
def test_s0_22_slugs_have_one_spelling(site: Site, given: str, kept: str) -> None:
    page = site.page(given)
    assert page.slug == kept
    found = site.run(site.acme.routes.resolve(given))
    assert isinstance(found, Content)
    assert found.node_id == page.node_id


@pytest.mark.parametrize(
    "slug", ["/product/1", "/checkout", "/api/x", "!!!", "x" * 301, "𠀀" * 299, "/ROBOTS.txt"]
)
def test_s0_22_slugs_that_are_not_a_pages_are_refused(site: Site, slug: str) -> None:
    with pytest.raises(DataError):
        site.page(slug)
    assert site.run(site.acme.routes.resolve("!!!")) is None


def test_c0_1_the_newest_version_comes_first_also_beyond_nine(site: Site) -> None:
    page = site.page("/about")
    for number in range(11):
        site.run(site.acme.contents.update(page.node_id, patch(title=f"T{number}")))
    listed = site.run(site.acme.versions.list(page.node_id))
    assert [each.version for each in listed] == list(range(11, 0, -1))
    assert "blocks" not in type(listed.items[0]).model_fields


def test_c0_3_of_two_editors_one_wins_and_no_version_is_lost(site: Site) -> None:
    page = site.page("/about")

    async def race() -> list[object]:
        edits = [
            site.acme.contents.update(page.node_id, patch(title=f"Editor {number}"), version=1)
            for number in range(4)
        ]
        return await asyncio.gather(*edits, return_exceptions=True)

    results = site.run(race())
    won = [each for each in results if isinstance(each, Content)]
    assert len(won) == 1
    assert all(isinstance(each, VersionConflict) for each in results if each is not won[0])
    assert site.run(site.acme.contents.get(page.node_id)) == won[0]
    assert [each.version for each in site.run(site.acme.versions.list(page.node_id))] == [1]


def test_c0_3_an_edit_that_slips_in_between_read_and_write_is_not_overwritten(site: Site) -> None:
    page = site.page("/about")

    def slip_in() -> None:
        site.beside().update(Content, node_id=page.node_id, version=1, set={"title": "Theirs"})

    for change in (patch(title="Mine"), patch(title="Mine", slug="/mine")):
        site.watched.slip_in(TransactWriteItems, slip_in)
        with pytest.raises(VersionConflict):
            site.run(site.acme.contents.update(page.node_id, change, version=1))
        assert site.run(site.acme.contents.get(page.node_id)).title == "Theirs"
        assert site.run(site.acme.routes.resolve("/mine")) is None
        assert len(site.keys(f"CONTENT#{page.node_id}#v")) == 1
        page = site.page("/next/" + change.slug)


def test_c0_5_back_and_forth_and_chains_lead_straight_to_the_page(site: Site) -> None:
    page = site.page("/a")
    for slug in ("/b", "/a", "/c", "/d"):
        page = site.run(site.acme.contents.update(page.node_id, patch(slug=slug)))
    assert site.run(site.acme.routes.resolve("/d")) == page
    for former in ("/a", "/b", "/c"):
        assert site.run(site.acme.routes.resolve(former)) == PathRedirect(path=former, to="/d")
    with pytest.raises(AlreadyExists, match="redirects to"):
        site.page("/a")
    site.run(site.acme.routes.release("/a"))
    assert site.page("/a").slug == "/a"


def test_c0_6_a_restore_goes_forward_and_moves_no_route(site: Site) -> None:
    page = site.page("/old", title="First", blocks=[{"n": 1}])
    page = site.run(site.acme.contents.update(page.node_id, patch(title="Second", blocks=[], slug="/new")))
    page = site.run(site.acme.contents.update(page.node_id, patch(status="draft")))
    restored = site.run(site.acme.versions.restore(page.node_id, 1, over=3))
    assert (restored.version, restored.restored_from) == (4, 1)
    assert (restored.title, restored.blocks) == ("First", [{"n": 1}])
    assert (restored.slug, restored.status, restored.created) == ("/new", "draft", page.created)
    assert site.run(site.acme.versions.get(page.node_id, 3)) == page
    assert site.run(site.acme.routes.resolve("/new", preview=True)) == restored
    assert [each.version for each in site.run(site.acme.versions.list(page.node_id))] == [3, 2, 1]


def test_c0_6_a_restore_over_another_version_is_rejected(site: Site) -> None:
    page = site.page("/x")
    site.run(site.acme.contents.update(page.node_id, patch(title="2")))
    latest = site.run(site.acme.contents.update(page.node_id, patch(title="3")))
    with pytest.raises(VersionConflict):
        site.run(site.acme.versions.restore(page.node_id, 1, over=2))
    with pytest.raises(DataError, match="current"):
        site.run(site.acme.versions.restore(page.node_id, 3))
    with pytest.raises(NotFound):
        site.run(site.acme.versions.restore(page.node_id, 9))
    assert site.run(site.acme.contents.get(page.node_id)) == latest
    (change,) = [
        each for each in site.run(site.acme.versions.diff(page.node_id, 1, 3)) if each.field == "title"
    ]
    assert (change.before, change.after) == ("About", "3")


def test_c0_14_deleting_a_page_takes_its_routes_and_keeps_its_versions_until_they_are_purged(
    site: Site,
) -> None:
    page = site.page("/a", title="Stored")
    page = site.run(site.acme.contents.update(page.node_id, patch(slug="/b")))
    with pytest.raises(VersionConflict):
        site.run(site.acme.contents.delete(page.node_id, version=1))
    site.sent()
    site.run(site.acme.contents.delete(page.node_id, version=2))
    assert site.sent().count("TransactWriteItems") == 1
    assert site.keys("ROUTE#") == ["ROUTE#/", "ROUTE#/contact"]
    assert [site.run(site.acme.routes.resolve(slug)) for slug in ("/a", "/b")] == [None, None]
    with pytest.raises(NotFound):
        site.run(site.acme.contents.get(page.node_id))

    back = site.run(site.acme.contents.recover(page.node_id))
    assert (back.title, back.slug, back.version) == ("Stored", "/b", 3)
    assert site.run(site.acme.routes.resolve("/b")) == back
    with pytest.raises(DataError, match="not deleted"):
        site.run(site.acme.contents.purge(page.node_id))
    with pytest.raises(DataError, match="not deleted"):
        site.run(site.acme.contents.recover(page.node_id))

    site.run(site.acme.contents.delete(page.node_id))
    assert site.run(site.acme.contents.purge(page.node_id)) == 3
    assert site.keys(f"CONTENT#{page.node_id}") == []
    with pytest.raises(NotFound):
        site.run(site.acme.contents.recover(page.node_id))


def test_c0_14_a_recovered_page_does_not_take_a_path_that_another_has_by_now(site: Site) -> None:
    page = site.page("/a")
    site.run(site.acme.contents.delete(page.node_id))
    other = site.page("/a")
    with pytest.raises(AlreadyExists):
        site.run(site.acme.contents.recover(page.node_id))
    assert site.run(site.acme.routes.resolve("/a")) == other
    with pytest.raises(NotFound):
        site.run(site.acme.contents.get(page.node_id))


def test_c0_14_so_many_versions_are_kept(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    (trait,) = [trait for trait in Content.plan().traits if isinstance(trait, History)]
    assert trait.keep == 200
    monkeypatch.setattr(trait, "keep", 3)
    page = site.page("/a")
    for number in range(5):
        site.run(site.acme.contents.update(page.node_id, patch(title=f"{number}")))
    assert [each.version for each in site.run(site.acme.versions.list(page.node_id))] == [5, 4, 3]


def test_c0_14_a_page_beyond_its_size_is_refused_before_anything_is_sent(site: Site) -> None:
    large = [{"text": "x" * 349_900}]
    page = site.page("/large", blocks=large)
    site.run(site.acme.contents.update(page.node_id, patch(title="Still fits")))
    site.sent()
    deep: dict[str, object] = {}
    for _ in range(100):
        deep = {"a": deep}
    for blocks in ([{"text": "x" * 350_001}], [{"n": float("nan")}], [deep]):
        with pytest.raises(ValueError, match=r"room for|JSON|float|nested"):
            site.page("/larger", blocks=blocks)
    assert site.sent() == []
