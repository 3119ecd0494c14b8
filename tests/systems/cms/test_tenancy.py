"""Tenants, their isolation, their settings and users: S0.1, S0.2, S0.12, S0.17, C0.7-C0.11."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from solotable import ANY, FROM_SCOPE, Entity, Key
from solotable._protocol.requests import GetItem, PutItem, Query
from solotable._values import Item
from solotable.errors import (
    AlreadyExists,
    CursorRejected,
    DataError,
    DeclarationError,
    NotFound,
    NotUnique,
    TenantViolation,
    VersionConflict,
)
from solotable.systems.cms import (
    Content,
    ContentDraft,
    ContentPatch,
    Forbidden,
    PathRedirect,
    ProductDraft,
    Route,
    SignalDraft,
    TenantConfig,
    TenantDraft,
    User,
    Users,
    cms,
    erase_tenant,
)

from .site import Site


def test_s0_1_entities_are_in_a_tenants_partition_or_system_and_others_are_rejected(site: Site) -> None:
    site.page("/about")
    site.run(site.acme.leads.capture("a@example.org"))
    for item in site.raw():
        if not item["_type"]["S"].startswith("_"):
            assert item["PK"]["S"] in ("TENANT#acme", "TENANT#zeta", "SYSTEM")
    before = dict(cms.plans)
    with pytest.raises(DeclarationError, match=r"partition 'PAGE#\{tenant_id\}'"):

        class Stray(Entity, table=cms):
            key = Key("PAGE#{tenant_id}", "PAGE")
            tenant_id: str = FROM_SCOPE

    assert dict(cms.plans) == before


def test_s0_2_a_tenants_config_is_read_by_its_id_with_one_get(site: Site) -> None:
    site.sent()
    config = site.run(site.tenants.get("acme"))
    assert site.sent() == ["GetItem"]
    assert (config.name, config.domain) == ("Acme", "www.acme.example")
    (item,) = [
        item for item in site.raw() if item["SK"]["S"] == "TENANT#acme" and item["PK"]["S"] == "SYSTEM"
    ]
    assert item["_type"] == {"S": "TenantConfig"}


def test_s0_2_a_tenant_is_made_with_its_two_pages_in_one_transaction(site: Site) -> None:
    site.run(site.tenants.create(TenantDraft(id="nova", name="Nova", domain="nova.example")))
    assert site.sent() == ["TransactWriteItems"]
    for slug in ("/", "/contact"):
        page = site.run(site.of("nova").routes.resolve(slug))
        assert isinstance(page, Content)
        assert page.tenant_id == "nova"
    before = site.raw()
    with pytest.raises(AlreadyExists):
        site.run(site.tenants.create(TenantDraft(id="nova", name="Nova", domain="other.example")))
    with pytest.raises(NotUnique):
        site.run(site.tenants.create(TenantDraft(id="nova2", name="Nova", domain="NOVA.example")))
    with pytest.raises(ValueError, match="pattern"):
        TenantDraft(id="acme#CONTENT", name="x")
    assert site.raw() == before


def test_s0_12_the_tenant_of_a_host_is_found_by_the_index_of_domains(site: Site) -> None:
    site.sent()
    for host in ("www.acme.example", "WWW.ACME.example:8080", "www.acme.example."):
        found = site.run(site.tenants.of_host(host))
        assert found is not None
        assert found.id == "acme"
    queries = [each for each in site.journal.requests("Query") if isinstance(each, Query)]
    assert [each.index for each in queries] == ["GSI_Domain"] * 3
    assert site.sent() == ["Query"] * 3
    for host in ("unknown.example", "", "..", "a b", "x" * 300, "acme\x00.example"):
        assert site.run(site.tenants.of_host(host)) is None


def test_s0_12_a_suspended_or_closed_tenant_is_not_served(site: Site) -> None:
    site.run(site.tenants.set_status("acme", "suspended"))
    assert site.run(site.tenants.of_host("www.acme.example")) is None
    site.run(site.tenants.set_status("acme", "active"))
    assert site.run(site.tenants.of_host("www.acme.example")) is not None
    site.run(site.tenants.close("acme"))
    assert site.run(site.tenants.of_host("www.acme.example")) is None
    with pytest.raises(DataError, match="closed"):
        site.run(site.tenants.set_status("acme", "active"))
    assert site.run(site.tenants.move("zeta", "www.acme.example")).domain == "www.acme.example"


def test_s0_12_c0_3_a_tenant_is_suspended_at_the_version_that_was_seen(site: Site) -> None:
    seen = site.run(site.tenants.get("acme"))
    suspended = site.run(site.tenants.set_status("acme", "suspended", version=seen.version))
    assert (suspended.status, suspended.version) == ("suspended", seen.version + 1)
    for status in ("active", "suspended", "closed"):
        with pytest.raises(VersionConflict) as refused:
            site.run(site.tenants.set_status("acme", status, version=seen.version))
        assert refused.value.theirs == suspended
    with pytest.raises(VersionConflict):
        site.run(site.tenants.close("acme", version=seen.version))
    site.clock.seconds += 1
    closed = site.run(site.tenants.close("acme", version=suspended.version))
    assert (closed.status, closed.domain) == ("closed", None)
    site.deliver()
    trail = [each for each in site.run(site.acme.trail.list()) if each.target.entity == "TenantConfig"]
    changes = [each.changes["status"] for each in trail if "status" in each.changes]
    assert changes == [
        {"before": "suspended", "after": "closed"},
        {"before": "active", "after": "suspended"},
    ]
    assert all(each.actor is not None and each.actor.email == "ann@example.org" for each in trail)


def test_s0_17_without_a_tenant_nothing_is_sent(site: Site) -> None:
    page = site.page("/about")
    site.sent()
    attempts: list[Any] = [
        site.db.get(Content, node_id=page.node_id),
        site.db.page(Content.listed()),
        site.db.create(Content(slug="/x", title="X")),
        site.db.names(Route).resolve("/about"),
        site.db.delete(Content, node_id=page.node_id, version=ANY),
    ]
    for attempt in attempts:
        with pytest.raises(TenantViolation):
            site.run(attempt)
    assert site.sent() == []


def test_s0_17_one_tenant_never_reaches_another(site: Site) -> None:
    page = site.page("/secret", title="Secret")
    site.run(site.acme.products.create(ProductDraft(title="Secret")))
    site.run(site.acme.leads.capture("a@example.org"))
    site.run(site.acme.signals.create(SignalDraft(title="Secret")))
    zeta = site.zeta
    assert site.run(zeta.routes.resolve("/secret", preview=True)) is None
    for attempt in (
        zeta.contents.get(page.node_id),
        zeta.contents.update(page.node_id, ContentPatch(title="Mine")),
        zeta.contents.update(page.node_id, ContentPatch(slug="/mine")),
        zeta.contents.delete(page.node_id),
        zeta.contents.recover(page.node_id),
        zeta.versions.restore(page.node_id, 1),
        zeta.versions.get(page.node_id, 1),
        zeta.comments.post(page.node_id, author_name="Z", body="z"),
    ):
        with pytest.raises(NotFound):
            site.run(attempt)
    listed = [
        *site.run(zeta.contents.list()),
        *site.run(zeta.products.list()),
        *site.run(zeta.leads.list()),
        *site.run(zeta.signals.list()),
        *site.run(zeta.contents.inbox("published")),
    ]
    assert "Secret" not in repr(listed)
    assert "example.org" not in repr(listed)
    assert site.run(site.acme.contents.get(page.node_id)) == page


def test_c0_7_an_entity_or_cursor_of_another_tenant_is_rejected(site: Site) -> None:
    page = site.page("/about")
    for number in range(3):
        site.page(f"/more{number}")
    cursor = site.run(site.acme.contents.list(limit=2)).cursor
    assert cursor is not None
    with pytest.raises(CursorRejected):
        site.run(site.zeta.contents.list(cursor=cursor))
    with pytest.raises(CursorRejected):
        site.run(site.acme.products.list(cursor=cursor))
    with pytest.raises(TenantViolation):
        site.run(site.zeta.store.put(page))
    with pytest.raises(TenantViolation):
        site.run(site.zeta.store.get(Content, tenant_id="acme", node_id=page.node_id))
    with pytest.raises(TenantViolation):
        site.run(site.zeta.store.get(TenantConfig, id="acme"))


def test_c0_8_a_program_for_all_tenants_creates_comments_in_each_of_them(site: Site) -> None:
    for tenant in ("acme", "zeta"):
        services = site.of(tenant)
        home = site.run(services.routes.resolve("/"))
        assert isinstance(home, Content)
        site.run(services.comments.post(home.node_id, author_name="Vi", body=f"Hello {tenant}"))
        (waiting,) = site.run(services.comments.inbox())
        assert waiting.body == f"Hello {tenant}"


def test_c0_9_every_partition_of_an_index_has_its_tenant_inside(site: Site) -> None:
    site.page("/about")
    site.run(site.acme.products.create(ProductDraft(title="P")))
    site.run(site.acme.leads.capture("a@example.org"))
    site.run(site.acme.signals.create(SignalDraft(title="S")))
    seen = set()
    for item in site.raw():
        for name in ("GSI_TypePK", "GSI_StatusPK"):
            if name in item:
                seen.add(item["_type"]["S"])
                wanted = "SYSTEM#" if item["PK"]["S"] == "SYSTEM" else item["PK"]["S"] + "#"
                assert item[name]["S"].startswith(wanted)
    assert {"Content", "Product", "Lead", "Signal", "TenantConfig"} <= seen


def test_c0_10_one_of_many_concurrent_requests_gets_a_domain(site: Site) -> None:
    async def race() -> list[Any]:
        drafts = [TenantDraft(id=f"t{number}", name="T", domain="Same.example") for number in range(6)]
        return await asyncio.gather(*map(site.tenants.create, drafts), return_exceptions=True)

    results = site.run(race())
    won = [each for each in results if isinstance(each, TenantConfig)]
    assert len(won) == 1
    assert all(isinstance(each, NotUnique) for each in results if each is not won[0]), results
    found = site.run(site.tenants.of_host("same.example"))
    assert found is not None
    assert found.id == won[0].id
    partitions = {item["PK"]["S"] for item in site.raw() if item["PK"]["S"].startswith("TENANT#t")}
    assert partitions == {f"TENANT#{won[0].id}"}  # no page of the others


def test_c0_10_only_tenants_are_in_the_index_of_domains(site: Site) -> None:
    site.page("/about")
    assert {item["_type"]["S"] for item in site.raw() if "GSI_DomainPK" in item} == {"TenantConfig"}
    with pytest.raises(NotUnique):
        site.run(site.tenants.move("zeta", "WWW.acme.example"))
    assert site.run(site.tenants.move("acme", None)).domain is None
    assert site.run(site.tenants.of_host("www.acme.example")) is None


def test_c0_11_serving_a_page_reads_nothing_of_the_system_partition(site: Site) -> None:
    page = site.page("/about")
    site.sent()
    site.run(site.acme.routes.resolve("/about"))
    site.run(site.acme.contents.list())
    site.run(site.acme.comments.shown(page.node_id))
    keys = [each.key for each in site.journal.requests("GetItem") if isinstance(each, GetItem)]
    assert len(keys) == 2
    assert all(key["PK"] == {"S": "TENANT#acme"} for key in keys)
    assert "SYSTEM" not in repr(site.journal.requests())


def test_c0_14_a_closed_tenant_is_erased_with_everything_and_an_open_one_is_not(site: Site) -> None:
    page = site.page("/a")
    site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/b")))
    site.run(site.acme.users("TENANT_ADMIN").create(email="bo@example.org"))
    with pytest.raises(DataError, match="close it first"):
        site.run(erase_tenant(site.db, "acme"))
    site.run(site.tenants.close("acme"))
    zeta = [item for item in site.raw() if "zeta" in item["PK"]["S"]]
    acme = [item for item in site.raw() if "acme" in item["PK"]["S"]]
    bounded = site.run(erase_tenant(site.db, "acme", max_items=3))
    assert (bounded.done, bounded.removed >= 3) == (False, True)
    whole = site.run(erase_tenant(site.db, "acme"))
    assert (whole.tenant, whole.done) == ("acme", True)
    # The lock of the user's address is removed with the user, and not counted.
    assert bounded.removed + whole.removed == len(acme) - 1 == 14
    left = site.raw()
    assert [item for item in left if "acme" in item["PK"]["S"]] == []
    assert "bo@example.org" not in repr(left)
    assert [item for item in left if "zeta" in item["PK"]["S"]] == zeta
    # An item of a newer release is kept and reported.
    newer: Item = {"PK": {"S": "TENANT#acme"}, "SK": {"S": "POLL#1"}, "_type": {"S": "Poll"}}
    site.engine.handle(PutItem(table=site.prefix + cms.name, item=newer))
    assert site.run(erase_tenant(site.db, "acme")).model_dump() == {
        "tenant": "acme",
        "removed": 0,
        "done": True,
        "unknown": 1,
    }
    assert newer in site.raw()
    with pytest.raises(NotFound):
        site.run(site.tenants.get("acme"))


def test_settings_hide_secrets_and_merge_deeply(site: Site) -> None:
    settings = site.settings()
    site.run(settings.declare(["/mail/from", "/theme/dark", "/theme/font", "/hooks/url"]))
    shown = site.run(
        settings.merge(
            {"mail": {"apiKey": "k-1", "from": "a@x.org"}, "theme": {"dark": True}, "hooks": [{"token": "t"}]}
        )
    )
    assert shown["mail"] == {"apiKey": "********", "from": "a@x.org"}
    assert shown["hooks"] == [{"token": "********"}]
    shown["mail"]["from"] = "b@x.org"
    shown["theme"] = {"font": "serif"}
    del shown["hooks"]
    shown = site.run(settings.merge(shown))
    assert shown["theme"] == {"dark": True, "font": "serif"}
    assert site.run(settings.secrets()) == {"mail": {"apiKey": "k-1"}, "hooks": [{"token": "t"}]}
    assert site.run(settings.merge({"theme": None})).get("theme") is None
    assert "k-1" not in repr(site.run(site.tenants.list()))
    site.deliver()
    trail = repr(site.run(site.acme.trail.list()))
    assert "k-1" not in trail
    assert "TenantConfig" in trail


def test_users_cannot_manage_higher_roles_or_their_own(site: Site) -> None:
    boss = site.acme.users("TENANT_ADMIN", as_="boss")
    editor = site.run(boss.create(email="Ed@Example.org", name="Ed"))
    admin = site.run(boss.create(email="ad@example.org", role="TENANT_ADMIN"))
    with pytest.raises(AlreadyExists):
        site.run(boss.create(email="ed@example.ORG"))
    with pytest.raises(NotUnique):
        site.run(site.acme.users("GLOBAL_ADMIN").create(email="ed@example.ORG", user_id="subject-1"))
    with pytest.raises(Forbidden, match="GLOBAL_ADMIN"):
        site.run(boss.create(email="new@example.org", user_id="subject-1"))
    assert site.run(boss.set_role(editor.user_id, "TENANT_ADMIN")).role == "TENANT_ADMIN"
    for attempt in (
        site.acme.users("TENANT_ADMIN", as_=admin.user_id).set_role(admin.user_id, "EDITOR"),
        site.acme.users("TENANT_ADMIN", as_=admin.user_id).delete(admin.user_id),
        Users(
            site.acme.store, manager_id="subject-2", manager_email="AD@example.org", roles=["TENANT_ADMIN"]
        ).set_enabled(admin.user_id, enabled=True),
        site.acme.users("EDITOR", as_="e").set_enabled(admin.user_id, enabled=False),
        site.acme.users("EDITOR", as_="e").create(email="x@example.org", role="EDITOR"),
        site.acme.users("RENDERER", as_="r").create(email="x@example.org", role="CUSTOMER"),
        site.acme.users(as_="n").rename(admin.user_id, "N"),
    ):
        with pytest.raises(Forbidden):
            site.run(attempt)
    own = site.acme.users("EDITOR", as_=editor.user_id)
    assert site.run(own.rename(editor.user_id, "Eddie")).name == "Eddie"
    site.run(boss.delete(editor.user_id))
    assert [user.email for user in site.run(boss.list())] == ["ad@example.org"]
    assert site.run(site.zeta.users("TENANT_ADMIN").list()).items == []
    assert isinstance(site.run(boss.create(email="ed@example.org")), User)


def test_a_redirect_of_one_tenant_is_none_of_another(site: Site) -> None:
    page = site.page("/a")
    site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/b")))
    other = site.run(site.zeta.contents.create(ContentDraft(title="Z", slug="/a", status="published")))
    assert site.run(site.zeta.routes.resolve("/a")) == other
    assert site.run(site.acme.routes.resolve("/a")) == PathRedirect(path="/a", to="/b")
