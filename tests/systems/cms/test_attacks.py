"""Attacks on the services, and conflicts of concurrent changes."""

from __future__ import annotations

from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from solotable import ANY
from solotable._protocol.requests import GetItem, TransactWriteItems
from solotable.errors import AlreadyExists, DataError, NotFound, VersionConflict
from solotable.systems.cms import (
    Assets,
    BucketStorage,
    Content,
    ContentPatch,
    FolderStorage,
    Forbidden,
    PathRedirect,
    Route,
    Storage,
    TenantConfig,
    Users,
)
from solotable.systems.cms.app import create_app
from solotable.systems.cms.formats.slugs import normalise_slug
from solotable.systems.cms.services.tenancy.redaction import (
    HIDDEN,
    PublicPointers,
    hidden_values,
    merge,
    redact,
)

from .site import Site

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


@given(st.text(max_size=40) | st.text("aZ_-./ ß\u0301!", max_size=20))
@settings(max_examples=300, deadline=None)
def test_s0_22_a_clean_path_is_its_own_spelling(text: str) -> None:
    try:
        slug = normalise_slug(text)
    except DataError:
        return
    assert normalise_slug(slug) == slug


def test_s0_22_a_text_that_is_far_too_long_is_refused_before_it_is_folded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folded: list[int] = []

    def normalize(_: str, text: str) -> str:
        folded.append(len(text))
        return text

    monkeypatch.setattr("solotable.systems.cms.formats.slugs.unicodedata.normalize", normalize)
    with pytest.raises(DataError, match="at most 300"):
        # Half a megabyte of these marks would take minutes.
        normalise_slug("a" + "\u0301\u0316" * 250_000)
    assert folded == []


def test_s0_5_a_page_is_found_under_the_path_that_it_was_given(site: Site) -> None:
    page = site.page("/snake_ case__-x")
    assert page.slug == "/snake-case-x"
    assert site.run(site.acme.routes.resolve(page.slug)) == page


def test_c0_2_whether_a_page_is_published_is_asked_of_the_index(site: Site) -> None:
    page = site.page("/a", blocks=[{"text": "x" * 100_000}])
    site.sent()
    contents = site.acme.contents
    assert site.run(contents.is_public(page.node_id))
    assert not site.run(contents.is_public(page.node_id[:-1]))
    assert not site.run(site.zeta.contents.is_public(page.node_id))
    assert site.sent() == ["Query"] * 3
    site.run(contents.update(page.node_id, ContentPatch(status="archived")))
    assert not site.run(contents.is_public(page.node_id))


def moving_beside(site: Site, page: Content) -> Callable[[], None]:
    """Return a concurrent move of a page, for the time between the reads of the page and its route."""

    def move() -> None:
        beside = site.beside()
        with beside.transaction() as tx:
            tx.update(Content, node_id=page.node_id, version=1, set={"slug": "/theirs"})
            tx.include(beside.names(Route).renaming(page.slug, to="/theirs", version=ANY))

    return lambda: site.watched.slip_in(GetItem, move)


def test_c0_5_a_move_that_meets_another_one_moves_the_page_all_the_same(site: Site) -> None:
    page = site.page("/a")
    site.watched.slip_in(GetItem, moving_beside(site, page))
    moved = site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/mine")))
    assert (moved.slug, moved.version) == ("/mine", 3)
    for former in ("/a", "/theirs"):
        assert site.run(site.acme.routes.resolve(former)) == PathRedirect(path=former, to="/mine")


def test_c0_5_a_move_of_a_version_that_another_move_replaced_is_a_conflict(site: Site) -> None:
    page = site.page("/a")
    site.watched.slip_in(GetItem, moving_beside(site, page))
    with pytest.raises(VersionConflict):
        site.run(site.acme.contents.update(page.node_id, ContentPatch(slug="/mine"), version=1))
    assert site.run(site.acme.contents.get(page.node_id)).slug == "/theirs"
    with pytest.raises(NotFound):
        site.run(site.acme.contents.update("unknown", ContentPatch(slug="/mine")))


@pytest.mark.parametrize(
    "name",
    [
        "secretKey",
        "stripe_key",
        "jwt_key",
        "database_url",
        "webhook",
        "\uff53\uff45\uff43\uff52\uff45\uff54",
        "\uff46rom",
        "fr\u043em",
        "From",
        "from ",
        "from\u200b",
        "FROM",
        "mail/from",
        "a nice theme",
        "",
    ],
)
@pytest.mark.parametrize("value", ["s3cret", 7, True, "", None, ["s3cret"], {"deep": "s3cret"}, [[{"x": 1}]]])
def test_b0_3_settings_are_hidden_whatever_their_name_unless_they_are_declared_public(
    name: str, value: Any
) -> None:
    public = PublicPointers(["/outer/from", "/outer/list/title", "/from"])
    tree = {
        "outer": {name: value, "from": "shown", "list": [{"title": "shown", name: value}]},
        name: {"from": value},
        "from": {"title": value, name: value},
    }
    shown = redact(tree, public)
    assert shown == {
        "outer": {name: HIDDEN, "from": "shown", "list": [{"title": "shown", name: HIDDEN}]},
        name: HIDDEN,
        "from": HIDDEN,
    }
    assert merge(tree, shown, public) == tree
    hidden = hidden_values(tree, public)
    assert hidden == {
        "outer": {name: value, "list": [{name: value}]},
        name: {"from": value},
        "from": {"title": value, name: value},
    }


def test_b0_3_a_path_is_public_as_a_value_and_hides_a_map_that_takes_its_place() -> None:
    public = PublicPointers(["/a", "/b~1c/~0d", "/e"])
    assert redact({"a": 1, "b/c": {"~d": 2, "d": 3}, "b": {"c": 4}}, public) == {
        "a": 1,
        "b/c": {"~d": 2, "d": HIDDEN},
        "b": HIDDEN,
    }
    assert redact({"a": {"key": "s"}, "e": ["x", {"key": "s"}, ["y"]]}, public) == {
        "a": HIDDEN,
        "e": ["x", HIDDEN, ["y"]],
    }
    assert hidden_values({"a": 1, "e": ["x", {"key": "s"}]}, public) == {"e": [None, {"key": "s"}]}
    assert hidden_values({"a": 1, "e": ["x", "y"]}, public) == {}


def test_b0_3_entries_that_look_alike_are_not_mixed_up() -> None:
    public = PublicPointers(["/hooks/url"])
    stored = {"hooks": [{"url": "a", "key": 1}, {"url": "a", "key": 2}, {"url": "b", "key": 3}]}
    shown = redact(stored, public)
    assert merge(stored, shown, public) == stored
    turned = {"hooks": [shown["hooks"][2], *shown["hooks"][:2]]}
    assert [each["key"] for each in merge(stored, turned, public)["hooks"]] == [3, 1, 2]
    with pytest.raises(DataError, match="look the same"):
        merge(stored, {"hooks": shown["hooks"][:1]}, public)


def test_b0_3_settings_in_a_list_keep_their_secrets_when_they_come_back_hidden(site: Site) -> None:
    settings_ = site.settings()
    site.run(settings_.declare(["/hooks/url", "/nested/title"]))
    hooks = [{"url": "a", "secret": "s-a"}, {"url": "b", "secret": "s-b"}, {"url": "c"}]
    shown = site.run(settings_.merge({"hooks": hooks, "nested": [[{"token": "t"}]]}))
    assert "s-a" not in repr(shown)
    site.run(settings_.merge(shown))
    assert site.run(settings_.secrets()) == {
        "hooks": [{"secret": "s-a"}, {"secret": "s-b"}, None],
        "nested": [[{"token": "t"}]],
    }
    # Moved and removed entries: each keeps its own secret.
    site.run(settings_.merge({"hooks": [shown["hooks"][1], {"url": "d", "secret": "s-d"}]}))
    assert site.run(settings_.secrets())["hooks"] == [{"secret": "s-b"}, {"secret": "s-d"}]
    for changed in ({"url": "evil", "secret": HIDDEN}, {"inner": [{"secret": HIDDEN}]}):
        with pytest.raises(DataError, match="send that value"):
            site.run(settings_.merge({"hooks": [changed]}))


def test_settings_that_two_change_at_once_have_both_changes(site: Site) -> None:
    def slip_in() -> None:
        config = site.blocking.require(TenantConfig, id="acme")
        site.blocking.update(config, set={"settings": {"theirs": 1}})

    site.run(site.settings().declare(["/theirs", "/mine"]))
    site.watched.slip_in(TransactWriteItems, slip_in)
    assert site.run(site.settings().merge({"mine": 2})) == {"theirs": 1, "mine": 2}
    site.watched.slip_in(TransactWriteItems, slip_in)
    version = site.run(site.tenants.get("acme")).version
    with pytest.raises(VersionConflict):
        site.run(site.settings().merge({"mine": 3}, version=version))


def test_c0_14_a_closed_tenant_gets_no_domain(site: Site) -> None:
    site.run(site.tenants.close("zeta"))
    with pytest.raises(DataError, match="closed"):
        site.run(site.tenants.move("zeta", "squatted.example"))
    assert site.run(site.tenants.get("zeta")).domain is None


def test_users_are_themselves_by_their_address_as_well(site: Site) -> None:
    boss = site.acme.users("TENANT_ADMIN", as_="boss")
    own = site.run(boss.create(email="ann@example.org", role="EDITOR"))
    ann = Users(
        site.acme.store, manager_id="idp|4711", manager_email="Ann@Example.org", roles=["TENANT_ADMIN"]
    )
    attempts: list[Any] = [
        ann.set_role(own.user_id, "TENANT_ADMIN"),
        ann.set_enabled(own.user_id, enabled=False),
        ann.delete(own.user_id),
    ]
    for attempt in attempts:
        with pytest.raises(Forbidden):
            site.run(attempt)
    assert site.run(ann.rename(own.user_id, "Ann")).role == "EDITOR"
    odd = Users(site.acme.store, manager_id="m", manager_email="no address", roles=["TENANT_ADMIN"])
    assert site.run(odd.set_role(own.user_id, "CUSTOMER")).role == "CUSTOMER"


def test_c0_13_a_known_address_that_is_full_is_answered_as_any_other(site: Site) -> None:
    leads = site.acme.leads
    first = site.run(leads.capture("a@example.org", data={"first": "x" * 15_000}))
    again = site.run(leads.capture("a@example.org", name="Ann", data={"second": "x" * 15_000}))
    assert (again.data, again.name, again.submissions) == (first.data, "Ann", 2)
    with pytest.raises(DataError):
        site.run(leads.capture("a@example.org", data={"too": "x" * 21_000}))


def test_bytes_that_are_here_are_not_replaced(site: Site, tmp_path: Path) -> None:
    assets = site.acme.assets(tmp_path)
    made = site.run(assets.register(name="a.png", mime="image/png", size=len(PNG)))
    site.run(assets.upload(made.id, PNG))
    with pytest.raises(AlreadyExists):
        site.run(assets.upload(made.id, PNG[:-1] + b"1"))
    assert site.run(assets.read(made.id))[1] == PNG


class _Bucket:
    """The part of boto3's S3 client that reads."""

    class meta:  # noqa: N801  # boto3's name
        class config:  # noqa: N801
            signature_version = "s3v4"

    class exceptions:  # noqa: N801
        class NoSuchKey(Exception):
            """The error of a missing object."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.ranges: list[str] = []

    def get_object(self, *, Bucket: str, Key: str, Range: str = "") -> dict[str, Any]:  # noqa: N803
        if not self.data:
            raise self.exceptions.NoSuchKey
        self.ranges.append(Range)
        return {"Body": BytesIO(self.data[:16] if Range else self.data)}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803
        return {"ContentLength": len(self.data)}

    def generate_presigned_url(self, *_: Any, **__: Any) -> str:
        return "https://bucket.example/signed?X-Amz-Signature=x"


def test_bytes_uploaded_to_a_url_are_checked_as_well(site: Site) -> None:
    for data, good in ((PNG, True), (b"<svg onload=alert(1)>".ljust(len(PNG)), False)):
        bucket = _Bucket(data)
        assets = Assets(site.acme.store, BucketStorage(bucket, "b"))
        made = site.run(assets.register(name="a.png", mime="image/png", size=len(PNG)))
        if good:
            assert site.run(assets.confirm(made.id)).status == "stored"
        else:
            with pytest.raises(DataError, match="not of type"):
                site.run(assets.confirm(made.id))
            assert site.run(assets.get(made.id)).status == "pending"
        assert bucket.ranges == ["bytes=0-15"]


def test_the_first_bytes_of_a_file_in_a_folder_are_checked(site: Site, tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    assets = Assets(site.acme.store, storage)
    made = site.run(assets.register(name="a.png", mime="image/png", size=len(PNG)))
    key = site.run(assets.get(made.id)).storage_key
    with pytest.raises(NotFound):
        site.run(storage.head(key))
    site.run(storage.put(key, b"GIF89a".ljust(len(PNG)), mime="image/png"))
    with pytest.raises(DataError, match="not of type"):
        site.run(assets.confirm(made.id))
    site.run(storage.put(key, PNG, mime="image/png"))
    assert site.run(assets.confirm(made.id)).status == "stored"


async def pieces_of(storage: Storage, key: str) -> list[bytes]:
    return [piece async for piece in await storage.stream(key)]


def test_a_film_is_never_in_memory_whole(site: Site, tmp_path: Path) -> None:
    film = b"x" * 600_000
    folder = FolderStorage(tmp_path)
    site.run(folder.put("acme/assets/film", film, mime="video/mp4"))
    for storage in (folder, BucketStorage(_Bucket(film), "b")):
        pieces = site.run(pieces_of(storage, "acme/assets/film"))
        assert b"".join(pieces) == film
        assert max(len(each) for each in pieces) <= 256 * 1024
    for empty in (folder, BucketStorage(_Bucket(b""), "b")):
        with pytest.raises(NotFound):
            site.run(pieces_of(empty, "acme/assets/other"))


def test_c0_12_a_trail_that_no_delivery_could_reach_is_refused() -> None:
    with pytest.raises(TypeError, match="a file or a server"):
        create_app("sqlite://", deliver_seconds=1.0)
