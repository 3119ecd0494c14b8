"""Sites and posts: keys, subdomains, lists, limits, retention, lookups by id."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from solotable._protocol.requests import TransactWriteItems
from solotable.errors import NotFound, VersionConflict
from solotable.systems.community.entities.builds import Build, BuildLog
from solotable.systems.community.entities.sites import MAX_BODY
from solotable.systems.community.errors import Forbidden, NameTaken
from solotable.systems.community.formats.names import RESERVED_SUBDOMAINS, normalise_slug, normalise_subdomain
from solotable.systems.community.roles import VISITOR
from solotable.systems.community.services.drafts import PostDraft, PostPatch, SiteDraft, SitePatch
from solotable.systems.community.services.sites import Sites
from solotable.systems.errors import InvalidInput

from .town import ANN, BEN, EVA, OPERATOR, Town

ANN_DID = ANN.require_user()


def test_s2_6_a_site_has_the_key_and_the_attributes_of_the_design(town: Town) -> None:
    site = town.site(config={"author": "Ann", "accent_color": "#007bff", "custom_fields": {"a": [1, 0.5]}})
    (item,) = town.items("SITE")
    assert (item["PK"], item["SK"]) == ({"S": f"USER#{ANN_DID}"}, {"S": f"SITE#{site.site_id}"})
    names = {"title", "template", "status", "subdomain", "config", "created_at", "updated_at"}
    assert names <= item.keys()
    stored = town.run(town.sites.get(ANN, site.site_id))
    assert stored.config == {"author": "Ann", "accent_color": "#007bff", "custom_fields": {"a": [1, 0.5]}}


def test_s2_18_a_configuration_is_plain_json(town: Town) -> None:
    site = town.site(config={"b": 1, "a": {"ö": [True, None]}})
    (item,) = town.items("SITE")
    assert item["config"] == {"S": '{"b":1,"a":{"ö":[true,null]}}'}
    post = town.post(site)
    document = town.run(town.sites.export(ANN, site.site_id))
    assert document["site"]["config"] == {"b": 1, "a": {"ö": [True, None]}}
    assert [each["rkey"] for each in document["posts"]] == [post.rkey]


def test_s2_15_the_sites_of_a_user_are_one_query_and_one_site_is_one_get(town: Town) -> None:
    sites = [town.site(subdomain=f"blog-{number}") for number in range(3)]
    town.site(BEN, subdomain="ben")
    town.record(ANN)
    town.journal.clear()
    page, used = town.measured(town.sites.list(ANN))
    assert town.sent() == ["Query"]
    assert [each.site_id for each in page] == [site.site_id for site in sites]
    assert used.rcu == 0.5
    _, used = town.measured(town.sites.get(ANN, sites[0].site_id))
    assert town.sent() == ["GetItem"]
    assert used.rcu == 0.5


def test_c2_8_a_site_is_found_by_its_id_alone(town: Town) -> None:
    site = town.site()
    town.journal.clear()
    found, used = town.measured(town.sites.by_id(site.site_id))
    assert found == site
    assert town.sent() == ["GetItem", "GetItem"]
    assert used.rcu == 2
    with pytest.raises(NotFound):
        town.run(town.sites.by_id("none"))


def test_c2_8_two_builds_of_one_moment_are_two_items(town: Town) -> None:
    site = town.site()
    first, second = (town.blocking.create(Build(did=ANN_DID, site_id=site.site_id)) for _ in range(2))
    assert first.created_at == second.created_at
    assert len(town.items("BUILD")) == 2


def test_c2_3_the_history_of_builds_has_builds_only(town: Town) -> None:
    site = town.site()
    town.post(site)
    builds = []
    for _ in range(12):
        town.pass_time(seconds=1)
        builds.append(town.blocking.create(Build(did=ANN_DID, site_id=site.site_id)))
    town.journal.clear()
    page = town.blocking.page(Build.history(site.site_id), limit=10)
    assert [each.job_id for each in page] == [each.job_id for each in reversed(builds)][:10]
    assert town.sent() == ["Query"]
    assert {item["entity_type"]["S"] for item in town.raw() if "GSI4PK" in item} == {"BUILD"}


def test_c2_4_a_subdomain_belongs_to_one_site(town: Town) -> None:
    town.site(subdomain="Café")
    for spelling in ("cafe", "CAFÉ", "Cafe\u0301", "\u200bcafé", "ｃａｆｅ"):
        with pytest.raises(NameTaken):
            town.site(BEN, subdomain=spelling)
    assert len(town.items("SITE")) == 1
    assert len(town.items("SITE_OWNER")) == 1


def test_c2_4_two_sites_at_one_subdomain_at_the_same_time_have_one_winner(town: Town) -> None:
    draft = SiteDraft(title="Mine", template="blog", subdomain="same")
    town.watched.slip_in(
        TransactWriteItems,
        lambda: town.run_beside(lambda db: Sites(db, now=town.now).create(BEN, draft)),
    )
    with pytest.raises(NameTaken):
        town.site(ANN, subdomain="same")
    (item,) = town.items("SITE")
    assert item["did"] == {"S": BEN.did}
    assert town.run(town.sites.list(ANN)).items == []


def test_a_subdomain_moves_with_a_change_and_is_free_afterwards(town: Town) -> None:
    site = town.site(subdomain="one")
    town.run(town.sites.update(ANN, site.site_id, SitePatch(subdomain="two")))
    town.site(BEN, subdomain="one")
    with pytest.raises(NameTaken):
        town.run(town.sites.update(ANN, site.site_id, SitePatch(subdomain="one")))
    with pytest.raises(VersionConflict):
        town.run(town.sites.update(ANN, site.site_id, SitePatch(title="x"), version=1))


@pytest.mark.parametrize(
    "name",
    [
        "www",
        "API",
        "Admin",
        "ａｄｍｉｎ",
        "ad\u200bmin",
        "---",
        "x" * 64,
        "\u3164",
        "é" * 70,
        "東" * 60,
    ],
)
def test_a_reserved_or_impossible_subdomain_is_rejected(name: str) -> None:
    with pytest.raises(InvalidInput):
        normalise_subdomain(name)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("xn--foo", "xn-foo"),
        ("Ana's Café", "ana-s-cafe"),
        ("東京", "xn--1lqs71d"),
        ("x" * 63, "x" * 63),
        ("0-\u0300-0", "0-0"),
    ],
)
def test_a_subdomain_is_a_dns_label(text: str, label: str) -> None:
    assert normalise_subdomain(text) == label


@given(st.text(max_size=80))
def test_any_text_is_a_dns_label_or_rejected(text: str) -> None:
    try:
        label = normalise_subdomain(text)
    except InvalidInput:
        return
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", label)
    assert label not in RESERVED_SUBDOMAINS
    if not label.startswith("xn--"):
        assert normalise_subdomain(label) == label


@given(st.text(max_size=80))
def test_a_slug_of_a_slug_is_the_same(text: str) -> None:
    try:
        slug = normalise_slug(text)
    except InvalidInput:
        return
    assert normalise_slug(slug) == slug
    assert normalise_slug(text.upper()) == normalise_slug(text.upper().casefold())


def test_s2_25_a_deleted_site_is_purged_after_7_days_with_all_that_belongs_to_it(town: Town) -> None:
    site = town.site(subdomain="gone")
    town.post(site)
    build = town.blocking.create(Build(did=ANN_DID, site_id=site.site_id))
    town.blocking.create(
        BuildLog(did=ANN_DID, site_id=site.site_id, job_id=build.job_id, number=0, text="Start")
    )
    town.run(town.sites.delete(ANN, site.site_id))
    for attempt in (town.sites.get(ANN, site.site_id), town.sites.by_id(site.site_id)):
        with pytest.raises(NotFound):
            town.run(attempt)
    with pytest.raises(NotFound):
        town.run(town.posts.create(ANN, site.site_id, PostDraft(title="Late")))
    with pytest.raises(NameTaken):
        town.site(BEN, subdomain="gone")
    town.pass_time(days=6, hours=23)
    assert town.purge().removed == {}
    assert town.run(town.sites.restore(ANN, site.site_id)).subdomain == "gone"
    town.run(town.sites.delete(ANN, site.site_id))
    town.pass_time(days=7)
    removed = town.purge().removed
    assert removed == {"Build": 1, "BuildLog": 1, "Post": 1, "Site": 1, "SiteOwner": 1}
    left = [item for item in town.raw() if site.site_id in str(item)]
    assert left == []
    with pytest.raises(NotFound):
        town.run(town.sites.restore(ANN, site.site_id))
    town.site(BEN, subdomain="gone")


def test_s2_25_an_exported_site_is_purged_after_7_days(town: Town) -> None:
    site = town.site()
    town.post(site)
    document = town.run(town.sites.archive(ANN, site.site_id))
    assert len(document["posts"]) == 1
    with pytest.raises(NotFound):
        town.run(town.sites.get(ANN, site.site_id))
    town.pass_time(days=7)
    assert town.purge().removed == {"Post": 1, "Site": 1, "SiteOwner": 1}


def test_s2_23_the_lines_of_a_log_are_gone_after_90_days(town: Town) -> None:
    site = town.site()
    line = town.blocking.create(
        BuildLog(did=ANN_DID, site_id=site.site_id, job_id="j1", number=0, text="Start")
    )
    assert line.created_at is not None
    assert line.expires_at is not None
    assert line.expires_at - line.created_at == timedelta(days=90)
    town.pass_time(days=89, hours=23)
    assert len(list(town.blocking.all(BuildLog.of_build(site.site_id, "j1")))) == 1
    town.pass_time(hours=2)
    # C2.9: the item is still stored; reads hide it.
    assert len(town.items("BUILD_LOG")) == 1
    assert list(town.blocking.all(BuildLog.of_build(site.site_id, "j1"))) == []


def test_c2_9_an_expired_item_is_hidden_before_it_is_removed(town: Town) -> None:
    place = town.found(privacy="private")
    town.run(town.invitations.create(ANN, place.id))
    town.pass_time(days=15)
    assert len(town.items("INVITATION")) == 1
    assert list(town.run(town.invitations.list(ANN, place.id))) == []


def test_c2_11_posts_are_items_and_a_configuration_has_none(town: Town) -> None:
    with pytest.raises(ValidationError, match="must not have posts"):
        SiteDraft(title="x", template="blog", config={"posts": [{"title": "a"}]})
    site = town.site()
    before = town.items("SITE")
    for number in range(30):
        town.post(site, title=f"Post {number}", body="x" * MAX_BODY)
    assert town.items("SITE") == before
    page, used = town.measured(town.posts.list(ANN, site.site_id, limit=50))
    assert [each.title for each in page] == [f"Post {number}" for number in reversed(range(30))]
    # 2.7 MB of texts would be 330 units.
    assert used.rcu <= 3


def test_s2_27_the_largest_post_and_configuration_fit_an_item(town: Town) -> None:
    site = town.site(config={"text": "ö" * 31_000})
    post = town.post(site, title="x" * 200, body="\U0001f600" * MAX_BODY, summary="ö" * 500)
    assert len(town.run(town.posts.get(ANN, site.site_id, post.rkey)).body) == MAX_BODY
    with pytest.raises(ValidationError):
        PostDraft(title="x", body="x" * (MAX_BODY + 1))
    with pytest.raises(ValidationError, match="64000"):
        SitePatch(config={"text": "x" * 10_000_000})
    deep: dict[str, Any] = {}
    for _ in range(100):
        deep = {"a": deep}
    with pytest.raises(ValidationError, match="levels"):
        SitePatch(config=deep)


def test_posts_belong_to_the_owner_of_their_site(town: Town) -> None:
    site = town.site()
    post = town.post(site)
    for attempt in (
        town.posts.get(BEN, site.site_id, post.rkey),
        town.posts.list(BEN, site.site_id),
        town.posts.create(BEN, site.site_id, PostDraft(title="x")),
        town.posts.update(BEN, site.site_id, post.rkey, PostPatch(title="x")),
        town.posts.delete(BEN, site.site_id, post.rkey),
        town.sites.get(BEN, site.site_id),
        town.sites.update(BEN, site.site_id, SitePatch(title="x")),
        town.sites.delete(BEN, site.site_id),
        town.sites.export(BEN, site.site_id),
    ):
        with pytest.raises(NotFound):
            town.run(attempt)
    changed = town.run(town.posts.update(ANN, site.site_id, post.rkey, PostPatch(title="New")))
    assert (changed.title, changed.slug, changed.body) == ("New", "hello", "First post")
    with pytest.raises(VersionConflict):
        town.run(town.posts.update(ANN, site.site_id, post.rkey, PostPatch(title="x"), version=1))
    town.run(town.posts.delete(ANN, site.site_id, post.rkey))
    with pytest.raises(NotFound):
        town.run(town.posts.get(ANN, site.site_id, post.rkey))


def test_a_draft_is_published_once(town: Town) -> None:
    site = town.site()
    post = town.post(site, status="draft")
    assert post.published_at is None
    published = town.run(town.posts.update(ANN, site.site_id, post.rkey, PostPatch(status="published")))
    town.pass_time(days=1)
    again = town.run(town.posts.update(ANN, site.site_id, post.rkey, PostPatch(status="draft")))
    again = town.run(town.posts.update(ANN, site.site_id, post.rkey, PostPatch(status="published")))
    assert again.published_at == published.published_at


@pytest.mark.parametrize(
    "fields",
    [
        {"image": "javascript:alert(1)"},
        {"title": ""},
        {"tags": ["x"] * 21},
        {"status": "live"},
        {"rkey": "x"},
    ],
)
def test_a_post_that_breaks_a_rule_is_rejected(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        PostDraft.model_validate({"title": "x", **fields})


def test_a_site_of_a_neighbourhood_needs_a_member_and_its_settings(town: Town) -> None:
    place = town.found(privacy="private")
    with pytest.raises(Forbidden):
        town.site(BEN, subdomain="ben", neighbourhood_id=place.id)
    site = town.site(ANN, neighbourhood_id=place.id)
    town.blocking.put(site.model_copy(update={"status": "published"}))
    (shown,) = town.run(town.sites.of_neighbourhood(ANN, place.id))
    assert shown.site_id == site.site_id
    assert len(town.run(town.sites.of_neighbourhood(OPERATOR, place.id))) == 1
    for caller in (BEN, VISITOR):
        with pytest.raises(Forbidden):
            town.run(town.sites.of_neighbourhood(caller, place.id))
    strict = town.found(
        EVA, name="Strict", settings={"allow_site_creation": False, "require_email_verification": False}
    )
    town.join(BEN, strict)
    with pytest.raises(Forbidden):
        town.site(BEN, subdomain="ben", neighbourhood_id=strict.id)
    verified = town.found(EVA, name="Verified", settings={"require_email_verification": True})
    with pytest.raises(Forbidden):
        town.site(EVA, subdomain="eva", neighbourhood_id=verified.id)


def test_a_published_site_is_served_until_its_owner_deletes_the_account(town: Town) -> None:
    site = town.site(subdomain="ann")
    with pytest.raises(NotFound):
        town.run(town.sites.at_subdomain("ann"))
    town.blocking.put(site.model_copy(update={"status": "published"}))
    assert town.run(town.sites.at_subdomain("ann")).site_id == site.site_id
    town.run(town.accounts.delete(ANN))
    with pytest.raises(NotFound):
        town.run(town.sites.at_subdomain("ann"))
    town.run(town.accounts.recover(ANN_DID))
    assert town.run(town.sites.at_subdomain("ann")).site_id == site.site_id


def test_a_neighbourhood_shows_sites_of_members_with_an_account_only(town: Town) -> None:
    place = town.found(ANN)
    for caller, subdomain in ((ANN, "ann"), (BEN, "ben"), (EVA, "eva")):
        if caller is not ANN:
            town.join(caller, place)
        site = town.site(caller, subdomain=subdomain, neighbourhood_id=place.id)
        town.blocking.put(site.model_copy(update={"status": "published"}))

    def shown() -> list[str]:
        page, used = town.measured(town.sites.of_neighbourhood(VISITOR, place.id))
        # The neighbourhood, the sites, and for each owner the user and the membership.
        assert town.sent() == ["GetItem", "Query", "BatchGetItem", "BatchGetItem"]
        assert used.rcu <= 0.5 + 0.5 + 3 * (0.5 + 0.5)
        return sorted(site.subdomain for site in page)

    town.journal.clear()
    assert shown() == ["ann", "ben", "eva"]
    town.run(town.memberships.remove(ANN, place.id, BEN.require_user()))
    town.run(town.accounts.delete(EVA))
    town.journal.clear()
    assert shown() == ["ann"]
    town.join(BEN, place)
    town.run(town.accounts.recover(EVA.require_user()))
    town.journal.clear()
    assert shown() == ["ann", "ben", "eva"]
