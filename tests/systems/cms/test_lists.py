"""The reads and the cost of lists: S0.6, S0.9, S0.13-S0.16, C0.2, and the predicted cost of writes."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from solotable._protocol.requests import Query, TransactWriteItems
from solotable._values.size import item_size
from solotable.errors import NotFound
from solotable.systems import cms as systems_cms
from solotable.systems.cms import ContentPatch, ContextDraft, ProductDraft, SignalDraft, cms

from .site import Site

LARGE = [{"type": "text", "text": "x" * 40_000}]


def test_s0_6_the_key_of_a_product_has_its_id(site: Site) -> None:
    product = site.run(
        site.acme.products.create(ProductDraft(title="Lamp", price=Decimal("12.50"), description="d" * 9000))
    )
    assert site.keys("PRODUCT#") == [f"PRODUCT#{product.product_id}"]
    site.sent()
    assert site.run(site.acme.products.get(product.product_id)) == product
    assert site.sent() == ["GetItem"]
    changed = site.run(site.acme.products.update(product.product_id, {"status": "active"}, version=1))
    assert (changed.title, changed.status, changed.version) == ("Lamp", "active", 2)
    (listed,) = site.run(site.acme.products.list())
    assert (listed.title, listed.price, listed.status) == ("Lamp", Decimal("12.50"), "active")
    site.run(site.acme.products.delete(product.product_id, version=2))
    with pytest.raises(NotFound):
        site.run(site.acme.products.get(product.product_id))


def test_s0_9_contexts_assets_resources_and_signals_are_got_and_listed(site: Site, tmp_path: Any) -> None:
    acme = site.acme
    context = site.run(acme.contexts.create(ContextDraft(title="Voice", text="Kind.")))
    signal = site.run(acme.signals.create(SignalDraft(title="Trend")))
    asset = site.run(acme.assets(tmp_path).register(name="a.png", mime="image/png", size=9))
    resource = site.run(acme.resources(tmp_path).register(name="r.pdf", mime="application/pdf", size=9))
    for prefix, id_ in (
        ("CONTEXT#", context.context_id),
        ("SIGNAL#", signal.signal_id),
        ("ASSET#", asset.id),
        ("RESOURCE#", resource.id),
    ):
        assert site.keys(prefix) == [prefix + id_]
    site.sent()
    assert site.run(acme.contexts.get(context.context_id)) == context
    assert site.run(acme.signals.get(signal.signal_id)) == signal
    assert site.sent() == ["GetItem", "GetItem"]
    assert [each.title for each in site.run(acme.contexts.list())] == ["Voice"]
    assert [each.title for each in site.run(acme.signals.list())] == ["Trend"]
    assert [each.name for each in site.run(acme.assets(tmp_path).list())] == ["a.png"]
    assert site.sent() == ["Query"] * 3
    assert [each.name for each in site.run(acme.resources(tmp_path).list())] == ["r.pdf"]
    assert site.run(site.zeta.signals.list()).items == []


def test_s0_13_the_items_of_a_type_are_one_query_of_the_index_of_types(site: Site) -> None:
    site.page("/a", title="A")
    site.run(site.acme.products.create(ProductDraft(title="P")))
    site.sent()
    assert {each.title for each in site.run(site.acme.contents.list())} == {"A", "Home", "Contact"}
    assert [each.title for each in site.run(site.acme.products.list())] == ["P"]
    queries = [each for each in site.journal.requests() if isinstance(each, Query)]
    assert [each.index for each in queries] == ["GSI_Type", "GSI_Type"]


def test_s0_14_the_inbox_follows_the_status(site: Site) -> None:
    page = site.page("/a", status="review")
    site.page("/b", status="draft")
    assert [each.node_id for each in site.run(site.acme.contents.inbox("review"))] == [page.node_id]
    site.run(site.acme.contents.update(page.node_id, ContentPatch(status="published")))
    assert site.run(site.acme.contents.inbox("review")).items == []
    signal = site.run(site.acme.signals.create(SignalDraft(title="S")))
    site.sent()
    assert [each.signal_id for each in site.run(site.acme.signals.inbox("new"))] == [signal.signal_id]
    (query,) = site.journal.requests()
    assert isinstance(query, Query)
    assert query.index == "GSI_Status"


def test_s0_15_no_code_of_the_system_knows_how_to_scan() -> None:
    files = list(Path(systems_cms.__file__).parent.rglob("*.py"))
    assert len(files) > 20
    for file in files:
        assert not re.search(r"\bScan\b|\.scan\(|ExecuteStatement", file.read_text()), file


def test_s0_15_lists_are_queries(site: Site) -> None:
    page = site.page("/a")
    site.run(site.acme.contents.list())
    site.run(site.acme.versions.list(page.node_id))
    site.run(site.acme.routes.list())
    site.run(site.acme.routes.redirects())
    site.run(site.tenants.list())
    assert set(site.sent()) <= {"Query", "GetItem", "TransactWriteItems"}


def test_s0_16_blocks_are_in_no_list_and_in_no_index(site: Site) -> None:
    site.page("/a", blocks=[{"text": "needle"}])
    site.sent()
    shown = [
        *site.run(site.acme.contents.list()),
        *site.run(site.acme.contents.inbox("published")),
    ]
    assert shown
    assert "needle" not in repr(shown)
    for record in site.journal.records:
        assert isinstance(record.request, Query)
        assert record.request.projection
        assert "needle" not in repr(record.reply)
    for index in cms.indexes.values():
        assert not {"blocks", "seo", "settings", "email", "author_email", "text"} & set(index.projection)


def test_c0_2_a_list_of_large_pages_costs_no_more_than_their_metadata(site: Site) -> None:
    for number in range(50):
        site.page(f"/p{number}", title=f"Page {number}", blocks=LARGE)
    page = site.run(site.acme.contents.list(limit=1))
    site.run(site.acme.contents.update(page.items[0].node_id, ContentPatch(title="Changed")))
    site.journal.clear()
    listed = site.run(site.acme.contents.list(limit=50))
    assert len(listed) == 50
    metadata = 50 * 400  # bytes, generously
    assert site.journal.rcu <= math.ceil(metadata / 4096) / 2
    # No item is read from the table. DynamoDB Local ends pages of an index by the size of whole items.
    assert set(site.sent()) == {"Query"}


def test_an_update_costs_the_sum_of_its_items(site: Site) -> None:
    page = site.page("/a", blocks=LARGE)
    site.journal.clear()
    site.run(site.acme.contents.update(page.node_id, ContentPatch(title="New"), version=1))
    read, write = site.journal.records
    latest, snapshot = (
        next(item for item in site.raw() if item["SK"]["S"] == f"CONTENT#{page.node_id}#{end}")
        for end in ("LATEST", "v000001")
    )
    (event,) = [item for item in site.raw() if item["_type"]["S"] == "_outbox" and "New" in repr(item)]
    assert isinstance(write.request, TransactWriteItems)
    assert len(write.request.actions) == 3
    table = 2 * sum(math.ceil(item_size(item) / 1024) for item in (latest, snapshot, event))
    # DynamoDB: in a transaction the writes of indexes cost twice as well; each index has one small row.
    assert (read.rcu, write.wcu) == (math.ceil(item_size(snapshot) / 4096), table + 4)
