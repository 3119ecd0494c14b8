"""The sitemap: cached, in parts if it is long, and with published pages only."""

from __future__ import annotations

import asyncio
import re
from xml.etree import ElementTree

import pytest

from solotable.systems.cms import ContentPatch
from solotable.systems.cms.routes.site.sitemaps import Sitemaps

from .site import Site

BASE = "https://www.acme.example"


def text(site: Site, sitemaps: Sitemaps, part: int | None = None, tenant: str = "acme") -> str:
    found = site.run(sitemaps.text(site.of(tenant).store, part, base=BASE))
    assert found is not None
    ElementTree.fromstring(found)  # noqa: S314 - our own answer
    return found


def locations(found: str) -> list[str]:
    return re.findall(r"<loc>https://www\.acme\.example([^<]*)</loc>", found)


def test_s0_14_c0_11_the_sitemap_is_read_once_and_remembered(site: Site) -> None:
    site.page("/about")
    sitemaps = Sitemaps()
    site.sent()

    async def crowd() -> set[str | None]:
        asked = [sitemaps.text(site.acme.store, None, base=BASE) for _ in range(5)]
        return set(await asyncio.gather(*asked))

    assert len(site.run(crowd())) == 1
    assert site.sent() == ["Query"] * 2, "the published pages, and the scheduled ones"
    text(site, sitemaps)
    assert site.sent() == []
    sitemaps.forget("zeta")
    text(site, sitemaps)
    assert site.sent() == []
    sitemaps.forget("acme")
    text(site, sitemaps)
    assert site.sent() == ["Query"] * 2


def test_s0_17_the_sitemap_has_the_published_pages_of_one_tenant_only(site: Site) -> None:
    page = site.page("/shown")
    for status in ("draft", "review", "archived"):
        site.page(f"/{status}-page", status=status)
    sitemaps = Sitemaps()
    assert sorted(locations(text(site, sitemaps))) == ["/", "/contact", "/shown"]
    assert sorted(locations(text(site, sitemaps, tenant="zeta"))) == ["/", "/contact"]
    site.run(site.acme.contents.update(page.node_id, ContentPatch(status="archived")))
    sitemaps.forget("acme")
    assert sorted(locations(text(site, sitemaps))) == ["/", "/contact"]


@pytest.mark.parametrize("pages", [3, 4, 5])
def test_a_long_sitemap_has_an_index_and_parts(site: Site, pages: int) -> None:
    for number in range(pages):
        site.page(f"/a&b|{number}")
    sitemaps = Sitemaps(max_pages_in_part=2)
    index = text(site, sitemaps)
    assert "<sitemapindex" in index
    parts = -(-(pages + 2) // 2)
    assert locations(index) == [f"/sitemap.xml?part={part}" for part in range(1, parts + 1)]
    found = [locations(text(site, sitemaps, part)) for part in range(1, parts + 1)]
    assert all(found)
    assert sorted(each for part in found for each in part) == sorted(
        ["/", "/contact", *(f"/a-b-{n}" for n in range(pages))]
    )
    assert site.run(sitemaps.text(site.acme.store, parts + 1, base=BASE)) is None
    site.sent()
    text(site, sitemaps, 2)
    assert site.sent() == []
    capped = text(site, Sitemaps(max_pages_in_part=2, max_parts=2))
    assert len(locations(capped)) == 2


def test_exactly_one_file_has_no_index(site: Site) -> None:
    site.page("/one")
    whole = text(site, Sitemaps(max_pages_in_part=3))
    assert len(locations(whole)) == 3
    assert "<urlset" in whole


def test_the_cache_of_sitemaps_has_a_limit(site: Site) -> None:
    sitemaps = Sitemaps(max_characters=10)
    text(site, sitemaps)
    site.sent()
    text(site, sitemaps)
    assert site.sent() == ["Query"] * 2
