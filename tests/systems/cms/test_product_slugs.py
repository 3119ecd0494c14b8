"""Products by their slugs (B0.2): unique in a tenant, two reads, redirects that reveal no hidden product."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from solotable import Redirect
from solotable.errors import AlreadyExists, DataError, VersionConflict
from solotable.systems.cms import Product, ProductDraft
from solotable.systems.cms.formats.slugs import product_slug

from .api import Api, running
from .site import Site


def make(site: Site, title: str = "Mug", slug: str | None = None, tenant: str = "acme") -> Product:
    draft = ProductDraft(title=title, slug=slug, status="active")
    return site.run(site.of(tenant).products.create(draft))


def test_b0_2_a_product_is_found_by_its_slug_with_two_reads(site: Site) -> None:
    mug = make(site, "Blue Mug")
    assert mug.slug == "blue-mug"
    site.sent()
    for spelling in ("blue-mug", "Blue Mug", "/blue-mug/", "\uff22lue-mug"):
        assert site.run(site.acme.products.by_slug(spelling)) == mug
        assert site.sent() == ["GetItem", "GetItem"]
    for nothing in ("mug", "", "/", "!!!", "x" * 2000, mug.product_id):
        assert site.run(site.acme.products.by_slug(nothing)) is None
    assert site.run(site.zeta.products.by_slug("blue-mug")) is None


def test_b0_2_a_slug_is_one_products_in_each_tenant(site: Site) -> None:
    mug, zeta = make(site, slug="mug"), make(site, slug="mug", tenant="zeta")
    assert (mug.slug, zeta.slug) == ("mug", "mug")
    before = len(site.raw())
    with pytest.raises(AlreadyExists):
        make(site, "Other", slug="MUG")
    assert len(site.raw()) == before
    again = make(site)
    assert again.slug == f"mug-{again.product_id[-8:].lower()}"
    nameless = make(site, "!!!")
    assert nameless.slug == nameless.product_id.lower()
    with pytest.raises(DataError):
        make(site, slug="!!!")
    (listed, *_) = [each for each in site.run(site.acme.products.list()) if each.slug == "mug"]
    assert listed.product_id == mug.product_id


def test_b0_2_a_new_slug_leaves_a_redirect_and_a_delete_leaves_nothing(site: Site) -> None:
    products = site.acme.products
    mug = make(site)
    moved = site.run(products.update(mug.product_id, {"slug": "Cup", "title": "Cup"}, version=1))
    assert (moved.slug, moved.title, moved.version) == ("cup", "Cup", 2)
    former = site.run(products.by_slug("mug"))
    assert isinstance(former, Redirect)
    assert former.to == "cup"
    with pytest.raises(VersionConflict):
        site.run(products.update(mug.product_id, {"slug": "glass"}, version=1))
    other = make(site, "Glass")
    with pytest.raises(AlreadyExists):
        site.run(products.update(mug.product_id, {"slug": "glass"}))
    assert site.run(products.update(mug.product_id, {"slug": "mug"})).slug == "mug"
    assert site.run(products.update(mug.product_id, {"slug": "mug", "price": 3})).price == 3
    site.run(products.delete(mug.product_id))
    assert site.keys("PRODUCTSLUG#") == [f"PRODUCTSLUG#{other.slug}"]


def test_b0_2_a_product_without_a_slug_gets_one(site: Site) -> None:
    old = site.run(site.acme.store.create(Product(title="Old", status="active")))
    products = site.acme.products
    assert site.run(products.update(old.product_id, {"title": "Older"})).slug is None
    assert site.run(products.update(old.product_id, {"slug": "old"})).slug == "old"
    assert isinstance(site.run(products.by_slug("old")), Product)
    bare = site.run(site.acme.store.create(Product(title="Bare")))
    site.run(products.delete(bare.product_id))


def test_b0_2_slugs_are_one_segment() -> None:
    assert product_slug("a/b//C d") == "a-b-c-d"
    assert product_slug("/") == ""


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS for all tests here."""
    with running(tmp_path_factory.mktemp("slugs")) as made:
        yield made


def test_b0_2_visitors_see_active_products_by_slug_and_by_id(api: Api) -> None:
    made = {"title": "T\u00fcr Cup", "status": "active"}
    cup = api.ask("POST", "/products", "EDITOR", json=made).json()
    assert cup["slug"] == "t\u00fcr-cup"
    for name in (cup["slug"], cup["product_id"], "T\u00dcR cup"):
        assert api.ask("GET", f"/public/products/{name}").json()["product_id"] == cup["product_id"]
    assert api.ask("GET", f"/public/products/{cup['slug']}", tenant="zeta").status_code == 404
    assert api.ask("GET", f"/public/products/{cup['product_id']}", tenant="zeta").status_code == 404
    taken = api.ask("POST", "/products", "EDITOR", json={"title": "x", "slug": cup["slug"]})
    assert (taken.status_code, taken.json()["field"]) == (409, "slug")
    assert cup["slug"] in taken.json()["detail"]
    path = f"/products/{cup['product_id']}"
    assert api.ask("PUT", path, "EDITOR", json={"slug": "beaker"}).json()["slug"] == "beaker"
    gone = api.ask("GET", f"/public/products/{cup['slug']}")
    assert (gone.status_code, gone.headers["location"]) == (301, "/public/products/beaker")


def test_b0_2_a_product_that_is_not_for_sale_is_hidden(api: Api) -> None:
    made = {"title": "Gadget", "status": "active"}
    product = api.ask("POST", "/products", "EDITOR", json=made).json()
    path = f"/products/{product['product_id']}"
    api.ask("PUT", path, "EDITOR", json={"slug": "secret-gadget", "status": "draft"})
    for name in ("gadget", "secret-gadget", product["product_id"]):
        answer = api.ask("GET", f"/public/products/{name}")
        assert answer.status_code == 404
        assert "secret" not in str(answer.headers)
        assert "location" not in answer.headers
    for name in ("gadget", "secret-gadget"):
        shown = api.ask("GET", f"/products/by-slug/{name}", "RENDERER")
        assert shown.json()["product_id"] == product["product_id"]
        assert api.ask("GET", f"/products/by-slug/{name}", "EDITOR", "zeta").status_code == 404
        assert api.ask("GET", f"/products/by-slug/{name}", "CUSTOMER").status_code == 403
