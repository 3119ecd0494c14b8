"""Editing damages nothing: all ten types round-trip, two people lose nothing, the model decides."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solotable._protocol.wire import call
from solotable._values import canonical_item
from solotable.console.editing.draft import check_item, dump_item, merge, read_draft, rows_of
from solotable.pages.forms import Form

from .forms import number_of, read_form
from .site import Site, SiteMaker

ROOF = "/t/SurveyorData/Section/TENANT%23acme/SURVEY%23s-1042%23SECTION%23roof"
ALL_TEN: dict[str, Any] = {
    "S": {"S": "  leading, trailing and\nlines\n"},
    "CR": {"S": "\r\nDOS\rMac\x00NUL\x1b[31m\ufeff"},
    "empty": {"S": ""},
    "N": {"N": "148.20000000000000000000000000000000001"},
    "tiny": {"N": "1E-130"},
    "B": {"B": "AAECA//+"},
    "emptyB": {"B": ""},
    "BOOL": {"BOOL": False},
    "NULL": {"NULL": True},
    "M": {"M": {"a": {"L": [{"N": "-99999999999999999999999999999999999999"}, {"S": "\r"}]}, "b": {"M": {}}}},
    "L": {"L": [{"B": "/w=="}, {"SS": ["x", "y"]}, {"NULL": True}]},
    "SS": {"SS": ["", "a, b", '"quoted"', "é\n"]},
    "NS": {"NS": ["-1", "0", "3.14159265358979323846264338327950288"]},
    "BS": {"BS": ["AA==", "AQI="]},
    "<b>&amp;": {"S": "<script>alert(1)</script>"},
}


def put(site: Site, item: dict[str, Any]) -> None:
    call(site.engine, "PutItem", {"TableName": "SurveyorData", "Item": item})


def stored(site: Site, partition: str, sort: str) -> dict[str, Any] | None:
    key = {"PK": {"S": partition}, "SK": {"S": sort}}
    found: dict[str, Any] | None = call(
        site.engine, "GetItem", {"TableName": "SurveyorData", "Key": key, "ConsistentRead": True}
    ).get("Item")
    return found


def path_of(partition: str, sort: str) -> str:
    return f"/t/SurveyorData/-/item/{quote(partition, safe='')}/{quote(sort, safe='')}"


@pytest.mark.parametrize("mode", ["form", "json"])
def test_all_ten_types_keep_their_bytes_when_another_attribute_is_edited(
    make_site: SiteMaker, mode: str
) -> None:
    site = make_site(write=True)
    item = canonical_item({"PK": {"S": "RAW"}, "SK": {"S": "a/b?c#d.json"}, **ALL_TEN})
    put(site, item)
    path = path_of("RAW", "a/b?c#d.json").replace("a%2Fb%3Fc%23d.json", "~a%2Fb%3Fc%23d.json~")
    fields = read_form(site.get(path + ("?tab=json" if mode == "json" else "")).text)
    assert fields["mode"] == mode
    if mode == "json":
        fields["json"] = fields["json"].replace(item["tiny"]["N"], "2E-130")
    else:
        fields[f"v.{number_of(fields, 'tiny')}"] = "2E-130"
    # As a browser: a form sends line ends as CRLF.
    answer = site.client.post(
        path, data={name: value.replace("\n", "\r\n") for name, value in fields.items()}
    )
    assert answer.status_code == 200, answer.text
    assert "Saved" in answer.text
    found = stored(site, "RAW", "a/b?c#d.json")
    assert found is not None
    assert found.pop("tiny") == canonical_item({"n": {"N": "2E-130"}})["n"]
    assert found == {name: value for name, value in item.items() if name != "tiny"}


def test_an_unchanged_save_writes_nothing(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    before = stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof")
    fields = read_form(site.get(ROOF).text)
    log = site.console.log.newest()[0].id
    answer = site.client.post(ROOF, data=fields)
    assert "Nothing changed" in answer.text
    assert not any(each.is_write for each in site.console.log.newest() if each.id > log)
    assert stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof") == before


values = st.recursive(
    st.one_of(
        st.builds(lambda text: {"S": text}, st.text(max_size=20)),
        st.builds(lambda number: {"N": str(number)}, st.integers(-(10**37), 10**37)),
        st.builds(lambda flag: {"BOOL": flag}, st.booleans()),
        st.just({"NULL": True}),
        st.just({"B": "AAEC"}),
        st.builds(lambda texts: {"SS": sorted(texts)}, st.sets(st.text(max_size=5), min_size=1, max_size=3)),
    ),
    lambda inner: st.one_of(
        st.builds(lambda members: {"L": members}, st.lists(inner, max_size=3)),
        st.builds(lambda members: {"M": members}, st.dictionaries(st.text(min_size=1, max_size=5), inner)),
    ),
    max_leaves=5,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.dictionaries(st.text(min_size=1, max_size=8), values, max_size=4))
def test_any_item_survives_a_form(item: dict[str, Any]) -> None:
    item = check_item({**item, "PK": {"S": "p"}})
    fields: dict[str, tuple[str, ...]] = {"read": (dump_item(item),), "mode": ("form",)}
    for number, row in enumerate(rows_of(item, ["PK"])):
        if not row.locked:
            fields |= {f"n.{number}": (row.name,), f"t.{number}": (row.kind,), f"v.{number}": (row.text,)}
            fields |= {f"x.{number}": ("1",)} if row.escaped else {}
            # What a textarea cannot carry is written as JSON.
            assert "\r" not in row.text
    draft = read_draft(Form(fields), ["PK"])
    assert draft.errors == ()
    assert draft.item == item
    assert draft.changed == []


def test_a_save_through_the_model_moves_the_index_key_and_counts_the_version(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(ROOF).text)
    fields[f"v.{number_of(fields, 'order')}"] = "12"
    answer = site.client.post(ROOF, data=fields)
    assert "Saved as version 3" in answer.text
    found = stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof")
    assert found is not None
    assert found["GSI1SK"] == {"S": "SECTION#000012"}
    assert found["version"] == {"N": "3"}
    assert stored(site, "TENANT#acme", "HISTORY#s-1042#roof#v000002") is not None


def test_the_model_rejects_a_value_and_the_form_keeps_it(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(ROOF).text)
    fields[f"v.{number_of(fields, 'condition')}"] = "Ruined"
    answer = site.client.post(ROOF, data=fields)
    assert answer.status_code == 422
    assert "Ruined" in answer.text
    assert "condition" in answer.text
    found = stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof")
    assert found is not None
    assert found["condition"] == {"S": "Poor"}


def test_locked_attributes_cannot_be_changed_in_json(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(f"{ROOF}?tab=json").text)
    fields["json"] = fields["json"].replace("SECTION#000001", "SECTION#000009")
    answer = site.client.post(ROOF, data=fields)
    assert answer.status_code == 422
    assert "GSI1SK is locked" in answer.text


def test_invalid_json_says_line_and_column_and_keeps_the_text(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(f"{ROOF}?tab=json").text)
    fields["json"] = '{\n  "PK": {"S": }\n}'
    answer = site.client.post(ROOF, data=fields)
    assert answer.status_code == 422
    assert "Line 2, column 15" in answer.text
    assert "&#34;PK&#34;: {&#34;S&#34;: }" in answer.text


@pytest.mark.parametrize("text", ["1E999999", "1_0", "１２", "NaN", "1" * 39])
def test_a_number_that_dynamodb_rejects_is_an_error_of_its_row(make_site: SiteMaker, text: str) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(f"{ROOF}?raw=1").text)
    fields[f"v.{number_of(fields, 'area')}"] = text
    answer = site.client.post(ROOF, data=fields)
    assert answer.status_code == 422
    assert f'id="e-{number_of(fields, "area")}"' in answer.text


def test_switching_the_view_keeps_edits_and_rows_can_be_added_and_removed(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(f"{ROOF}?raw=1").text)
    fields[f"v.{number_of(fields, 'notes')}"] = "A draft"
    as_json = site.client.post(ROOF, data={**fields, "view": "json"}).text
    assert "A draft" in read_form(as_json)["json"]
    removed = site.client.post(ROOF, data={**fields, "remove": number_of(fields, "area")}).text
    assert "area" not in read_form(removed).values()
    added = read_form(site.client.post(ROOF, data={**fields, "add": "1"}).text)
    assert "" in [value for name, value in added.items() if name.startswith("n.")]


def test_two_people_edit_one_item_and_nothing_is_lost(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    mine, theirs = read_form(site.get(ROOF).text), read_form(site.get(ROOF).text)
    theirs[f"v.{number_of(theirs, 'condition')}"] = "Good"
    theirs[f"v.{number_of(theirs, 'name')}"] = "The roof"
    assert "Saved as version 3" in site.client.post(ROOF, data=theirs).text
    mine[f"v.{number_of(mine, 'condition')}"] = "Fair"
    mine[f"v.{number_of(mine, 'notes')}"] = "Three tiles slipped"
    conflict = site.client.post(ROOF, data=mine)
    assert conflict.status_code == 409
    assert "version 3 was written while you edited" in conflict.text
    draft = read_form(conflict.text)
    clash = number_of(draft, "condition")
    assert draft[f"mine.{clash}"] == '{"S":"Fair"}'
    # Without a choice, nothing is saved.
    undecided = site.client.post(ROOF, data=draft)
    assert undecided.status_code == 422
    assert "Choose mine or theirs" in undecided.text
    saved = site.client.post(ROOF, data={**draft, f"choice.{clash}": "theirs"})
    assert "Saved as version 4" in saved.text
    found = stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof")
    assert found is not None
    assert [found[name]["S"] for name in ("condition", "name", "notes")] == [
        "Good",
        "The roof",
        "Three tiles slipped",
    ]


@pytest.mark.parametrize("entity", ["Setting/SETTING/NAME%23language", "-/item/RAW/1"])
def test_items_without_a_version_are_guarded_too(make_site: SiteMaker, entity: str) -> None:
    site = make_site(write=True)
    put(site, {"PK": {"S": "RAW"}, "SK": {"S": "1"}, "value": {"S": "en"}, "other": {"N": "1"}})
    path = f"/t/SurveyorData/{entity}"
    mine, theirs = read_form(site.get(path).text), read_form(site.get(path).text)
    theirs[f"v.{number_of(theirs, 'value')}"] = "de"
    assert "Saved" in site.client.post(path, data=theirs).text
    mine[f"v.{number_of(mine, 'value')}"] = "fr"
    conflict = site.client.post(path, data=mine)
    assert conflict.status_code == 409
    settled = site.client.post(path, data={**read_form(conflict.text), "settle": "mine"})
    assert "Saved" in settled.text
    assert read_form(site.get(path).text)[f"v.{number_of(mine, 'value')}"] == "fr"


def test_a_merge_keeps_the_changes_of_both() -> None:
    read = {"a": {"S": "1"}, "b": {"S": "1"}, "c": {"S": "1"}, "d": {"S": "1"}, "k": {"S": "k"}}
    mine = {"a": {"S": "2"}, "b": {"S": "1"}, "c": {"S": "2"}, "e": {"S": "new"}, "k": {"S": "k"}}
    theirs = {"a": {"S": "1"}, "b": {"S": "3"}, "c": {"S": "3"}, "d": {"S": "1"}, "k": {"S": "k"}}
    merged = merge(read, mine, theirs, ["k"])
    assert {row.name for row in merged.rows if row.clash} == {"c"}
    assert {name: merged.item.get(name) for name in "abde"} == {
        "a": {"S": "2"},
        "b": {"S": "3"},
        "d": None,
        "e": {"S": "new"},
    }


def test_deleting_asks_first_and_refuses_a_changed_item(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    page = site.get(f"{ROOF}?delete=1").text
    assert "Delete TENANT#acme · SURVEY#s-1042#SECTION#roof?" in page
    fields = read_form(page)
    changed = {**fields, f"v.{number_of(fields, 'notes')}": "Changed"}
    assert "Saved" in site.client.post(ROOF, data=changed).text
    form = {name: fields[name] for name in ("token", "read", "raw")}
    assert site.client.post(ROOF, data={**form, "delete": "1"}).status_code == 409
    again = read_form(site.get(f"{ROOF}?delete=1").text)
    form = {name: again[name] for name in ("token", "read", "raw")}
    assert "Deleted." in site.client.post(ROOF, data={**form, "delete": "1"}).text
    assert stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#roof") is None


def test_without_write_nothing_can_be_saved_or_sent_again(make_site: SiteMaker) -> None:
    site = make_site()
    fields = read_form(site.get(ROOF).text)
    fields[f"v.{number_of(fields, 'notes')}"] = "Changed"
    answer = site.client.post(ROOF, data=fields)
    assert answer.status_code == 403
    assert "--write" in answer.text
    assert "Delete" not in site.get(ROOF).text


def test_an_item_that_its_model_cannot_read_is_edited_raw(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    key = {"PK": {"S": "TENANT#acme"}, "SK": {"S": "SURVEY#s-9"}}
    put(site, {**key, "_type": {"S": "Survey"}, "tenant_id": {"S": "acme"}, "survey_id": {"S": "s-9"}})
    path = "/t/SurveyorData/Survey/TENANT%23acme/SURVEY%23s-9"
    page = site.get(path).text
    assert "The model cannot read this item" in page
    fields = read_form(page)
    more = read_form(site.client.post(path, data={**fields, "add": "1"}).text)
    number = number_of(more, "")
    more |= {f"n.{number}": "title", f"v.{number}": "Mended"}
    assert "Saved" in site.client.post(path, data=more).text
    assert stored(site, "TENANT#acme", "SURVEY#s-9") == {
        **key,
        "_type": {"S": "Survey"},
        "tenant_id": {"S": "acme"},
        "survey_id": {"S": "s-9"},
        "title": {"S": "Mended"},
    }
