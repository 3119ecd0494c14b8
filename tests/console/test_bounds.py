"""No page reads a whole table: what it reads does not grow, and at Amazon a Scan asks first."""

from __future__ import annotations

from pathlib import Path

import pytest
from starlette.testclient import TestClient

from solotable import connect
from solotable._connect import open_engine
from solotable._protocol.wire import call
from solotable.console import ConsoleSettings, create_app, open_console
from solotable.console.data.census import SAMPLE_ITEMS
from solotable.console.data.item_pages import MOST_READ
from solotable.urls import Url

from .forms import read_form
from .models import Setting, Survey, surveyor
from .site import HOME, PRICES, Site, SiteMaker

TABLE = "/t/SurveyorData"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A table with many more items than a page reads; its rare entity is far from the others."""
    path = tmp_path_factory.mktemp("large") / "large.db"
    with connect(f"sqlite:///{path}?durability=relaxed", surveyor) as database:
        store = database.admin()
        with store.batch(overwrite=True) as batch:
            for number in range(6 * MOST_READ):
                batch.put(
                    Survey(tenant_id=f"t{number % 60}", survey_id=f"{number:06d}", title="x", version=1)
                )
        database.put(Setting(name="only", value="one"))
    return path


@pytest.mark.parametrize(
    "path",
    [
        "/",
        f"{TABLE}/Survey",
        f"{TABLE}/Survey?tenant=t7",
        f"{TABLE}/Survey?attribute=title&comparison=is&value=nothing",
        f"{TABLE}/Section",
        f"{TABLE}/-/unclaimed",
        f"{TABLE}/-/pk",
        f"{TABLE}/-/pk/TENANT%23t7",
        f"{TABLE}/Survey/TENANT%23t7/SURVEY%23000007",
        f"{TABLE}/-/patterns/Survey.with_status?a.tenant=t7&a.status=draft&run=1",
        f"{TABLE}/-/schema",
        f"{TABLE}/-/requests",
        f"{TABLE}/-/heat",
        "/?guessed",
        f"{TABLE}?guessed",
        f"{TABLE}/-/unclaimed?guessed",
    ],
)
def test_a_page_reads_a_bounded_number_of_items(large: Path, path: str) -> None:
    site = Site(large, models="guessed" not in path)
    try:
        site.get(path)
        read = sum(each.scanned for each in site.console.log.newest())
        assert read <= MOST_READ + SAMPLE_ITEMS
        assert len(site.console.log.newest()) <= 32
    finally:
        site.close()


def test_a_rare_kind_of_item_is_guessed_among_many(large: Path) -> None:
    site = Site(large, models=False)
    try:
        items = [
            {"PK": {"S": f"TENANT#{number}"}, "SK": {"S": "USER"}, "name": {"S": "x"}}
            for number in range(4_000)
        ]
        items.append({"PK": {"S": "SETTING#1"}, "SK": {"S": "VALUE"}, "value": {"S": "y"}})
        table = site.console.catalog.table("SurveyorData")
        site.console.catalog.sampled(table, items)
        inferred = site.console.catalog.inferred["SurveyorData"]
        assert sum(len(each.items) for each in inferred.entities) == 500
        assert len(inferred.entities) == 2
    finally:
        site.close()


def test_a_wide_item_is_edited_as_json(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    wide = {f"a{number}": {"S": "x"} for number in range(9_000)}
    key = {"PK": {"S": "WIDE"}, "SK": {"S": "1"}}
    call(site.engine, "PutItem", {"TableName": "SurveyorData", "Item": key | wide})
    page = site.get(f"{TABLE}/-/item/WIDE/1")
    # A form would have 27,000 fields.
    assert "9,002 attributes: JSON only" in page.text
    fields = read_form(page.text)
    assert fields["mode"] == "json"
    fields["json"] = fields["json"].replace('"a7": {"S": "x"}', '"a7": {"S": "y"}')
    assert "Saved" in site.post(f"{TABLE}/-/item/WIDE/1", **fields).text
    assert site.json(f"{TABLE}/-/item/WIDE/1.json")["item"] == key | wide | {"a7": {"S": "y"}}


def test_counts_of_a_large_table_are_estimates_and_say_so(large: Path) -> None:
    site = Site(large)
    try:
        counts = site.json(f"{TABLE}/Survey.json")["counts"]
        assert counts["exact"] is False
        surveys = next(each["items"] for each in counts["facets"] if each["name"] == "Survey")
        assert 0.9 < surveys / (6 * MOST_READ) < 1.1
        assert "about, from" in site.get(f"{TABLE}/Survey").text
    finally:
        site.close()


def test_pages_follow_each_other_without_a_gap_or_a_repeat(large: Path) -> None:
    site = Site(large)
    try:
        found: list[str] = []
        after = ""
        while True:
            data = site.json(f"{TABLE}/Survey.json?tenant=t7{after}")
            found += [row["key"][1] for row in data["rows"]]
            if data["cost"]["after"] is None:
                break
            after = f"&after={data['cost']['after']}"
        assert len(found) == len(set(found)) == 100
        assert found == sorted(found)
    finally:
        site.close()


def test_at_amazon_a_scan_asks_first_and_says_its_cost(filled: Path, tmp_path: Path) -> None:
    # The URL says Amazon; the engine is a copy of the file.
    (tmp_path / "copy.db").write_bytes(filled.read_bytes())
    engine = open_engine(Url.parse(f"sqlite:///{tmp_path}/copy.db"))
    url = Url.parse("aws://SurveyorData?region=us-east-1")
    console = open_console(engine, url, [surveyor], ConsoleSettings(prices=PRICES))
    try:
        with TestClient(create_app(console), base_url=HOME) as client:
            for path in (
                "/",
                f"{TABLE}/Survey",
                f"{TABLE}/-/unclaimed",
                f"{TABLE}/-/pk",
                f"{TABLE}/-/schema",
            ):
                assert client.get(path).status_code == 200, path
            assert [each.operation for each in console.log.newest()] == []
            page = client.get(f"{TABLE}/Survey").text
            assert "Amazon charges for it: at most 1 RCU" in page
            assert "each page reads at most 1 MB: 128 RCU, $0.000016" in page
            # A Query needs no consent.
            assert client.get(f"{TABLE}/Setting.json").json()["cost"]["operation"] == "Query"
            assert {each.operation for each in console.log.newest()} == {"Query"}
            form = {"token": console.gate.token, "back": f"{TABLE}/Survey"}
            agreed = client.post(f"{TABLE}/-/consent", data=form)
            assert "Scan" in agreed.text
            assert "Scan" in {each.operation for each in console.log.newest()}
    finally:
        engine.close()


def test_large_items_fit_the_form(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    assert site.console.database is not None
    store = site.console.database.tenant("acme")
    store.put(Survey(survey_id="large", title="é\n" * 100_000))
    path = f"{TABLE}/Survey/TENANT%23acme/SURVEY%23large"
    fields = read_form(site.get(path).text)
    assert site.client.post(path, data={**fields, "view": "json"}).status_code == 200
    assert "Nothing changed" in site.client.post(path, data=fields).text
