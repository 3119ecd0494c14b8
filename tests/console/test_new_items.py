"""New items: through the model, or raw with all ten types; never over an item that exists."""

from __future__ import annotations

import json
from typing import Any

from solotable._values import canonical_item

from .forms import number_of, read_form
from .models import Section, Survey
from .site import Site, SiteMaker
from .test_editing import ALL_TEN, stored

NEW = "/t/SurveyorData/-/new"


def send(site: Site, path: str, fields: dict[str, str], **more: str) -> Any:
    # As a browser: a form sends line ends as CRLF.
    given = {name: value.replace("\n", "\r\n") for name, value in (fields | more).items()}
    return site.client.post(path, data=given)


def filled_in(fields: dict[str, str], **values: str) -> dict[str, str]:
    return fields | {f"v.{number_of(fields, name)}": text for name, text in values.items()}


def test_an_entity_is_created_through_its_model(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    path = f"{NEW}?entity=Section&tenant=acme"
    assert (
        f'href="{NEW}?tenant=acme&amp;entity=Section"' in site.get("/t/SurveyorData/Section?tenant=acme").text
    )
    fields = read_form(site.get(path).text)
    # Required fields, and those whose default is a value; version and times are the model's.
    names = [fields[f"n.{number}"] for number in range(8)]
    assert names == [
        "tenant_id",
        "survey_id",
        "section_id",
        "name",
        "order",
        "condition",
        "notes",
        "measurements",
    ]
    fields = filled_in(fields, survey_id="s-1042", section_id="porch", name="<b>Porch</b>", order="9")
    added = read_form(send(site, path, fields, add="area").text)
    assert added[f"t.{number_of(added, 'area')}"] == "N"
    digits = "12.345678901234567890123456789012345678"[:39]
    answer = send(site, path, filled_in(added, area=digits))
    assert (answer.status_code, "Created" in answer.text) == (200, True), answer.text
    found = stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#porch")
    assert found is not None
    assert (found["name"], found["order"], found["version"]) == (
        {"S": "<b>Porch</b>"},
        {"N": "9"},
        {"N": "1"},
    )
    assert found["area"] == canonical_item({"n": {"N": digits}})["n"]
    # The index keys follow, and the entity decodes.
    assert found["GSI1SK"] == {"S": "SECTION#000009"}
    assert site.console.store("acme").get(Section, survey_id="s-1042", section_id="porch") is not None
    again = send(site, path, filled_in(added, area="1"))
    assert again.status_code == 409
    assert "Not created" in again.text
    assert stored(site, "TENANT#acme", "SURVEY#s-1042#SECTION#porch") == found


def test_what_the_model_rejects_is_said_at_its_field(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    path = f"{NEW}?entity=Survey&tenant=acme"
    fields = filled_in(read_form(site.get(path).text), survey_id="s-9", title="T", status="gone")
    answer = send(site, path, fields)
    assert answer.status_code == 422
    assert ">it is not one of &#39;draft&#39;, &#39;in_progress&#39;" in answer.text
    as_json = read_form(send(site, path, fields, view="json").text)
    assert as_json["mode"] == "json"
    unknown = send(site, path, as_json, json='{"tenant_id":{"S":"acme"},"GSI2PK":{"S":"x"}}')
    assert (unknown.status_code, "not a field of Survey" in unknown.text) == (422, True)
    right = '{"tenant_id":{"S":"acme"},"survey_id":{"S":"s-9"},"title":{"S":"T"}}'
    assert "Created" in send(site, path, as_json, json=right).text
    assert site.console.store("acme").get(Survey, survey_id="s-9") is not None
    # A form in place of the JSON has the required rows, filled or not.
    back = read_form(send(site, path, as_json, json="{}", view="form").text)
    assert [number_of(back, name) for name in ("tenant_id", "survey_id", "title")]


def test_a_raw_item_has_all_ten_types_byte_for_byte(make_site: SiteMaker) -> None:
    for models in (True, False):
        site = make_site(write=True, models=models)
        item = canonical_item({"PK": {"S": f"RAW/{models}"}, "SK": {"S": "<i>.json"}, **ALL_TEN})
        fields = read_form(site.get(NEW).text)
        assert [fields["n.0"], fields["n.1"]] == ["PK", "SK"]
        for number in range(len(ALL_TEN)):
            fields = read_form(send(site, NEW, fields, add=" ").text)
            assert fields[f"t.{number + 2}"] == "S"
            fields[f"n.{number + 2}"] = f"x{number}"
        as_json = read_form(send(site, NEW, fields, view="json").text)
        as_json["json"] = json.dumps(item)
        rows = read_form(send(site, NEW, as_json, view="form").text)
        answer = send(site, NEW, rows)
        assert (answer.status_code, "Created" in answer.text) == (200, True), answer.text
        assert stored(site, f"RAW/{models}", "<i>.json") == item
        assert send(site, NEW, rows).status_code == 409


def test_a_raw_item_needs_its_key_and_the_console_its_flag(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(f"{NEW}?pk=TENANT%23acme").text)
    assert fields["v.0"] == "TENANT#acme"
    answer = send(site, NEW, fields, **{"t.1": "N", "v.1": "1"})
    assert (answer.status_code, "SK: the key needs a value of type S" in answer.text) == (422, True)
    reader = make_site()
    assert "Read-only" in reader.get(f"{NEW}?entity=Survey").text
    assert "data-new" not in reader.get("/t/SurveyorData/Survey").text
    assert reader.post(NEW, read="{}").status_code == 403
