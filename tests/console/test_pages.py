"""Every page answers HTML and JSON, with and without models, and says what it read."""

from __future__ import annotations

import json
import re
from typing import Any
from urllib.parse import quote

import pytest

from solotable import connect
from solotable._protocol.wire import call
from solotable.console.paths import decode_segment, encode_segment
from solotable.migrations.workflow.control import ControlRecord, encode_record

from .models import Survey, surveyor
from .site import SiteMaker

TABLE = "/t/SurveyorData"
ROOF = f"{TABLE}/Section/TENANT%23acme/SURVEY%23s-1042%23SECTION%23roof"
PAGES = [
    "/",
    "/-/jump?q=Sec",
    "/-/shortcuts",
    "/-/migrations",
    TABLE,
    f"{TABLE}/Survey",
    f"{TABLE}/Section?tenant=acme",
    f"{TABLE}/Section?tenant=acme&attribute=condition&comparison=is&value=Poor,Fair",
    f"{TABLE}/Internal",
    f"{TABLE}/-/unclaimed",
    f"{TABLE}/-/pk",
    f"{TABLE}/-/pk/TENANT%23acme",
    f"{TABLE}/-/pk/TENANT%23acme?sk=SURVEY%23s-1042&item=SURVEY%23s-1042%23SECTION%23roof",
    f"{TABLE}/-/pk/nothing",
    ROOF,
    f"{ROOF}?tab=json",
    f"{ROOF}?raw=1",
    f"{ROOF}/history",
    f"{ROOF}/history?from=1&to=2&only=changes",
    f"{TABLE}/Survey/TENANT%23acme/SURVEY%23s-1042/history",
    f"{TABLE}/-/item/TENANT%23acme/SURVEYCFG%231",
    f"{TABLE}/-/patterns",
    f"{TABLE}/-/patterns/Survey.owned?a.tenant=acme&a.owner=ana@acme.example&run=1",
    f"{TABLE}/-/patterns/Survey.with_status?tenant=acme&a.status=draft&explain=1&tab=cli",
    f"{TABLE}/-/heat?by=read",
    f"{TABLE}/-/sync",
    f"{TABLE}/-/backups",
    f"{TABLE}/-/backups/TENANT%23acme/SURVEY%23s-1042",
    f"{TABLE}/-/new",
    f"{TABLE}/-/new?entity=Section&tenant=acme",
    f"{TABLE}/-/schema?tab=terraform",
    f"{TABLE}/-/schema?tab=workbench",
    f"{TABLE}/-/requests",
    f"{TABLE}/-/requests/1",
]


@pytest.mark.parametrize("models", [True, False], ids=["models", "guessed"])
def test_every_page_answers_html_and_json(make_site: SiteMaker, models: bool) -> None:
    site = make_site(models=models)
    of_models = ("/patterns/", "/history", "tenant=", "/Internal")
    for path in PAGES:
        if not models and any(each in path for each in of_models):
            continue
        page = site.get(path)
        assert page.headers["content-type"].startswith("text/html")
        assert len(re.findall(r"<h1[ >]", page.text)) == 1
        assert "style=" not in page.text
        assert len(page.text) < 60_000
        found = re.search(r'href="([^"]+)">This page as JSON', page.text)
        assert found is not None
        data = site.get(found[1].replace("&amp;", "&")).json()
        assert isinstance(data, dict)
        json.dumps(data)


def test_facets_query_where_a_key_serves_and_say_what_they_read(make_site: SiteMaker) -> None:
    site = make_site()
    cost = site.json(f"{TABLE}/Section.json?tenant=acme")["cost"]
    assert (cost["operation"], cost["shown"]) == ("Query", 16)
    assert cost["read"] < 24
    settings = site.json(f"{TABLE}/Setting.json")["cost"]
    assert (settings["operation"], settings["read"], settings["shown"]) == ("Query", 1, 1)
    everything = site.json(f"{TABLE}/Section.json")["cost"]
    assert (everything["operation"], everything["shown"]) == ("Scan", 16)


def test_facets_show_counts_templates_and_unclaimed_items_with_the_reason(make_site: SiteMaker) -> None:
    site = make_site()
    data = site.json(f"{TABLE}/-/unclaimed.json")
    counts = {each["name"]: each["items"] for each in data["counts"]["facets"]}
    assert counts == {"Survey": 5, "Section": 16, "Setting": 1, "Internal": 1, "Unclaimed": 1}
    (row,) = data["rows"]
    assert row["key"] == ["TENANT#acme", "SURVEYCFG#1"]
    assert "SURVEYCFG" in row["why"]
    assert "Every item by the entity that claims it" in site.get(f"{TABLE}/Survey").text


def test_tenants_separate_the_rows(make_site: SiteMaker) -> None:
    site = make_site()
    assert [row["key"][0] for row in site.json(f"{TABLE}/Survey.json?tenant=globex")["rows"]] == [
        "TENANT#globex"
    ]
    assert '<option value="globex">tenant globex</option>' in site.get(f"{TABLE}/Survey").text


def test_without_models_entities_are_guessed_and_a_model_is_suggested(make_site: SiteMaker) -> None:
    site = make_site(models=False)
    data = site.json(f"{TABLE}.json")
    assert data["guessed"] is True
    names = {each["name"]: each["items"] for each in data["counts"]["facets"]}
    assert names["Section"] == 16
    assert names["Survey"] == 5
    schema = site.json(f"{TABLE}/-/schema.json")
    assert "class Section(Entity" in schema["models"]
    compile(schema["models"], "models.py", "exec")


def test_a_collection_groups_runs_and_names_every_index(make_site: SiteMaker) -> None:
    site = make_site()
    path = f"{TABLE}/-/pk/TENANT%23acme.json?sk=SURVEY%23s-1042&item=SURVEY%23s-1042%23SECTION%23roof"
    data = site.json(path)
    groups = [row["group"] for row in data["rows"] if "group" in row]
    assert groups == ["SURVEY#s-1042#SECTION#"]
    by_order, by_status = data["selected"]["indexes"]
    assert by_order["keys"] == [["GSI1PK", "TENANT#acme#SURVEY#s-1042"], ["GSI1SK", "SECTION#000001"]]
    assert "order = 1" in by_order["why"]
    assert by_status["why"] == "Section declares no key on GSI2."


def test_a_pattern_shows_its_request_in_four_forms_and_its_waste(make_site: SiteMaker) -> None:
    site = make_site()
    path = f"{TABLE}/-/patterns/Survey.owned.json?a.tenant=acme&a.owner=ana@acme.example&run=1"
    data = site.json(path)
    result = data["result"]
    assert (result["returned"], result["read"], result["wasteful"]) == (2, 20, True)
    assert result["rcu"] == 1.0
    assert result["dollars_per_million"] == pytest.approx(0.125)
    request = data["request"]
    assert request["operation"] == "Query"
    # The JSON is the request itself: it gives the same items.
    again = call(site.engine, "Query", dict(request["json"]))
    assert again["Count"] == 2
    assert request["cli"].startswith("aws dynamodb query \\\n  --table-name SurveyorData")
    assert "client.query(" in request["boto3"]
    scope: dict[str, Any] = {"Survey": Survey}
    with connect(site.console.url.text, surveyor) as scope["database"]:
        exec(request["call"], scope)  # noqa: S102  # what the page says must run
    assert [each.survey_id for each in scope["page"].items] == ["s-1042", "s-1044"]


def test_a_pattern_without_its_arguments_is_not_run(make_site: SiteMaker) -> None:
    site = make_site()
    log = len(site.console.log.newest())
    page = site.get(f"{TABLE}/-/patterns/Survey.owned?run=1").text
    assert "Write a value." in page
    assert 'aria-invalid="true"' in page
    explained = site.json(f"{TABLE}/-/patterns/Survey.owned.json?a.tenant=acme&a.owner=a&explain=1")
    assert explained["explained"]["rcu"] > 0
    assert not [each for each in site.console.log.newest()[: -log or None] if each.operation == "Query"]


def test_a_restore_is_a_new_version_and_refuses_a_version_that_was_not_seen(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    data = site.json(f"{ROOF}/history.json")
    assert [each["version"] for each in data["versions"]] == [2, 1]
    assert data["versions"][0]["changed"] == ["condition", "notes"]
    assert "version 3" in site.post(f"{ROOF}/history", version="1", over="2").text
    assert site.json(f"{ROOF}.json")["item"]["condition"] == {"S": "Fair"}
    refused = site.post(f"{ROOF}/history", version="1", over="2")
    assert refused.status_code == 409
    assert "Not restored" in refused.text


def test_a_restore_needs_write(make_site: SiteMaker) -> None:
    assert make_site().post(f"{ROOF}/history", version="1", over="2").status_code == 403


def test_requests_are_listed_with_their_cost_and_sent_again(make_site: SiteMaker) -> None:
    site = make_site()
    site.get(f"{TABLE}/Setting")
    row = next(each for each in site.json(f"{TABLE}/-/requests.json")["rows"] if each["operation"] == "Query")
    assert (row["rcu"], row["items"], row["page"]) == (0.5, 1, f"{TABLE}/Setting")
    replayed = site.post(f"{TABLE}/-/requests/{row['id']}/replay.json")
    assert replayed.json()["reply"]["Items"][0]["value"] == {"S": "en"}


def test_a_write_is_sent_again_only_with_write(make_site: SiteMaker) -> None:
    site = make_site()
    assert site.console.database is not None
    site.console.database.tenant("acme").put(Survey(survey_id="new", title="New"))
    row = site.json(f"{TABLE}/-/requests.json")["rows"][0]
    assert row["operation"] == "PutItem"
    refused = site.post(f"{TABLE}/-/requests/{row['id']}/replay")
    assert refused.status_code == 403
    assert "--write" in refused.text


def test_migrations_show_their_state_progress_and_dead_letters(make_site: SiteMaker) -> None:
    site = make_site()
    assert site.json("/-/migrations.json")["migrations"] == []
    call(
        site.engine,
        "CreateTable",
        {
            "TableName": "solotable-migrations",
            "AttributeDefinitions": [{"AttributeName": each, "AttributeType": "S"} for each in ("PK", "SK")],
            "KeySchema": [
                {"AttributeName": "PK", "KeyType": "HASH"},
                {"AttributeName": "SK", "KeyType": "RANGE"},
            ],
            "BillingMode": "PAY_PER_REQUEST",
        },
    )
    record = ControlRecord(name="0003", state="Copying", totals={"Surveys": 10}, generation=1, created_at=1.0)
    partition = {"PK": {"S": "MIGRATION#0003"}}
    items = [
        encode_record(record),
        partition
        | {
            "SK": {"S": "SEGMENT#Surveys#0"},
            "source": {"S": "Surveys"},
            "generation": {"N": "1"},
            "scanned": {"N": "4"},
            "outputs": {"N": "9"},
        },
        partition
        | {
            "SK": {"S": "DEAD#forward#Surveys#1"},
            "source": {"S": "Surveys"},
            "key": {"M": {"id": {"S": "s-1"}}},
            "cause": {"S": "section 3 has no id"},
        },
    ]
    for item in items:
        call(site.engine, "PutItem", {"TableName": "solotable-migrations", "Item": item})
    assert [each["state"] for each in site.json("/-/migrations.json")["migrations"]] == ["Copying"]
    data = site.json("/-/migrations/0003.json")
    assert (data["copied"], data["total"], data["outputs"], data["dead_count"]) == (4, 10, 9, 1)
    assert [each["class"] for each in data["steps"][:3]] == ["done", "now", ""]
    assert "section 3 has no id" in site.get("/-/migrations/0003").text


def test_jump_opens_a_single_hit_and_lists_several(make_site: SiteMaker) -> None:
    site = make_site()
    assert str(site.get("/-/jump?q=TENANT%23acme").url).endswith("/t/SurveyorData/-/pk/TENANT%23acme")
    assert str(site.get("/-/jump?q=Survey.owned").url).endswith("/-/patterns/Survey.owned")
    assert len(site.json("/-/jump.json?q=Se")["hits"]) > 1
    assert site.json("/-/jump.json?q=zzz")["hits"] == []


@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        ("/t/SurveyorDate", 404, "did you mean &#39;SurveyorData&#39;?"),
        (f"{TABLE}/Sectoin", 404, "did you mean &#39;Section&#39;?"),
        (f"{TABLE}/-/patterns/Survey.owed", 404, "did you mean &#39;Survey.owned&#39;?"),
        (f"{TABLE}/Section/TENANT%23acme/nothing", 404, "has no item TENANT#acme · nothing"),
        (f"{TABLE}/Section/one", 404, "the address has 1 parts"),
        ("/nothing/here", 404, "The console has no page"),
        (f"{TABLE}/Section?after=junk", 400, "not a position of a page"),
        (f"{TABLE}/-/consent", 405, "takes a form"),
        ("/t/%ff", 400, "not UTF-8"),
    ],
)
def test_errors_say_what_was_looked_for_and_the_nearest_name(
    make_site: SiteMaker, path: str, status: int, text: str
) -> None:
    found = make_site().client.get(path)
    assert found.status_code == status
    assert text in found.text
    assert "Traceback" not in found.text


@pytest.mark.parametrize(
    "key", ["a/b", "..", ".", "-", "x.json", "~", "~a~", "a#b?c=d&e", "é ü", "%2F", "\n\t", "a\\b", ".json"]
)
def test_any_key_has_an_address(make_site: SiteMaker, key: str) -> None:
    assert decode_segment(encode_segment(key)) == key
    site = make_site()
    item = {"PK": {"S": key}, "SK": {"S": key}, "v": {"S": "found"}}
    call(site.engine, "PutItem", {"TableName": "SurveyorData", "Item": item})
    href = site.json(f"{TABLE}/-/pk/{encode_segment(key)}.json")["rows"][0]["href"]
    assert site.json(f"{href}.json")["item"]["v"] == {"S": "found"}
    assert quote(key, safe="") in href


@pytest.mark.parametrize("kind", ["N", "B"])
def test_a_text_that_is_no_value_of_a_key_is_not_an_error_of_the_console(
    make_site: SiteMaker, kind: str
) -> None:
    """A table of another program: the jump looks at every table, whatever is typed."""
    site = make_site(models=False)
    definition = {
        "TableName": "Other",
        "KeySchema": [{"AttributeName": "id", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "id", "AttributeType": kind}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    call(site.engine, "CreateTable", definition)
    text = {"N": "42", "B": "-_8="}[kind]
    stored = {"N": "42", "B": "+/8="}[kind]
    call(site.engine, "PutItem", {"TableName": "Other", "Item": {"id": {kind: stored}}})
    assert str(site.get("/-/jump?q=TENANT%23acme").url).endswith("/-/pk/TENANT%23acme")
    assert str(site.get(f"/-/jump?q={text}").url).partition("/-/pk/")[2] in (text, "-_8%3D")
    for path in ("/t/Other/-/pk/a", "/t/Other/-/item/a", "/t/Other/-/item/NaN!"):
        assert site.client.get(path).status_code == 400, path


def test_the_theme_is_a_cookie_that_the_server_writes(make_site: SiteMaker) -> None:
    site = make_site()
    assert "data-theme" not in site.get("/").text
    answer = site.post("/-/theme", theme="dark", back=f"{TABLE}/Survey")
    assert str(answer.url).endswith("/t/SurveyorData/Survey")
    assert 'data-theme="dark"' in answer.text
    assert str(site.post("/-/theme", theme="light", back="//evil.example/").url).endswith(":8001/")
