"""Threats 13 to 16: script in every name and value, forms of other sites, rebinding, and secrets."""

from __future__ import annotations

import re
from typing import Any

import pytest

from solotable._protocol.wire import call
from solotable.console import routes
from solotable.console.paths import encode_segment

from .forms import number_of, read_form
from .site import HOME, SiteMaker

TABLE = "/t/SurveyorData"
ROOF = f"{TABLE}/Section/TENANT%23acme/SURVEY%23s-1042%23SECTION%23roof"
PAYLOADS = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "'-alert(1)-'",
    "</textarea><script>alert(1)</script>",
    "</title><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "<svg/onload=alert(1)>",
    "\u202e<b>\x00",
]
RAW = re.compile(r"<script>alert|<img src=x|<svg/onload|onerror=alert\(1\)>|<b>")


def test_stored_script_is_text_in_every_name_key_value_and_error(make_site: SiteMaker) -> None:
    """Threat 13: no payload leaves its element, in any page or error."""
    site = make_site(write=True)
    pages: list[str] = []
    for number, payload in enumerate(PAYLOADS):
        item: dict[str, Any] = {
            "PK": {"S": payload},
            "SK": {"S": payload},
            payload: {"S": payload},
            "_type": {"S": payload},
            "title": {"S": payload},
            "M": {"M": {payload: {"SS": [payload]}}},
        }
        call(site.engine, "PutItem", {"TableName": "SurveyorData", "Item": item})
        survey = {
            "PK": {"S": "TENANT#acme"},
            "SK": {"S": f"SURVEY#p{number}"},
            "_type": {"S": "Survey"},
            "tenant_id": {"S": "acme"},
            "survey_id": {"S": f"p{number}"},
            "title": {"S": payload},
            "owner": {"S": payload},
            "version": {"N": "1"},
            "status": {"S": "draft"},
        }
        call(site.engine, "PutItem", {"TableName": "SurveyorData", "Item": survey})
        segment = encode_segment(payload)
        pages += [
            f"{TABLE}/-/pk/{segment}",
            f"{TABLE}/-/item/{segment}/{segment}",
            f"{TABLE}/-/item/{segment}/{segment}?tab=json",
            f"{TABLE}/-/item/{segment}/{segment}?delete=1",
            f"{TABLE}/Survey/TENANT%23acme/SURVEY%23p{number}",
            f"/t/{segment}",
            f"{TABLE}/{segment}",
            f"{TABLE}/-/patterns/{segment}",
            f"/-/migrations/{segment}",
            f"/-/jump?q={segment}",
            f"{TABLE}/Survey?tenant={segment}&attribute={segment}&value={segment}&after={segment}",
            f"{TABLE}/-/patterns/Survey.owned?a.tenant=acme&a.owner={segment}&run=1&tab=cli",
        ]
    pages += ["/", TABLE, f"{TABLE}/Survey", f"{TABLE}/-/unclaimed", f"{TABLE}/-/pk", f"{TABLE}/-/requests"]
    pages += [f"{TABLE}/-/pk/TENANT%23acme", f"{TABLE}/-/heat?by=read", f"{TABLE}/-/schema"]
    for guessing in (site, make_site(models=False)):
        for path in pages:
            found = guessing.client.get(path)
            assert RAW.search(found.text) is None, path
            assert "49" not in found.text or "7 * 7" in found.text or "{{" not in path
            assert found.headers["content-type"].startswith("text/html")


def test_every_answer_has_a_strict_policy(make_site: SiteMaker) -> None:
    site = make_site()
    script = re.search(r'src="(/static/[^"]+)"', site.get("/").text)
    assert script is not None
    for path in ("/", "/.json", "/nothing", TABLE, script[1], "/static/x/y"):
        headers = site.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self'" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8001", "127.0.0.1.evil.example", "", "10.0.0.1"]
)
def test_another_host_name_gets_nothing(make_site: SiteMaker, host: str) -> None:
    """Threat 14: a page that points its name at this machine cannot read or write."""
    site = make_site(write=True)
    for path in ("/", f"{TABLE}/Survey.json", "/static/x/console.css"):
        answer = site.client.get(path, headers={"host": host})
        assert answer.status_code == 421
        assert "SurveyorData" not in answer.text
    token = site.console.gate.token
    posted = site.client.post(ROOF, data={"token": token}, headers={"host": host})
    assert posted.status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:8001", "localhost:9", "localhost", "[::1]:8001"])
def test_loopback_names_are_answered(make_site: SiteMaker, host: str) -> None:
    assert make_site().client.get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize(
    ("headers", "token"),
    [
        ({"origin": "http://evil.example"}, True),
        ({"origin": "null"}, True),
        ({"origin": "http://127.0.0.1:9999"}, True),
        ({"sec-fetch-site": "cross-site", "origin": HOME}, True),
        ({"sec-fetch-site": "same-site"}, True),
        ({"origin": HOME}, False),
        ({}, False),
    ],
)
def test_a_form_of_another_origin_or_without_the_token_is_refused(
    make_site: SiteMaker, headers: dict[str, str], token: bool
) -> None:
    """Threat 14: CSRF; the Origin, and the token of this start."""
    site = make_site(write=True)
    fields = read_form(site.get(ROOF).text)
    fields[f"v.{number_of(fields, 'notes')}"] = "Forged"
    if not token:
        fields["token"] = "forged"
    answer = site.client.post(ROOF, data=fields, headers=headers)
    assert answer.status_code == 403
    assert "Forged" not in site.get(ROOF).text


def test_another_content_type_is_refused(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    for kind in ("text/plain", "application/json", "multipart/form-data; boundary=x"):
        answer = site.client.post(ROOF, content=b"{}", headers={"content-type": kind, "origin": HOME})
        assert answer.status_code == 415


def test_another_site_cannot_embed_a_page(make_site: SiteMaker) -> None:
    """At Amazon, a picture on another site could spend read units."""
    site = make_site()
    embedded = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "image"}
    assert site.client.get(f"{TABLE}/Survey", headers=embedded).status_code == 403
    followed = {"sec-fetch-site": "cross-site", "sec-fetch-dest": "document"}
    assert site.client.get(f"{TABLE}/Survey", headers=followed).status_code == 200


def test_the_token_differs_between_starts_and_is_in_no_json(make_site: SiteMaker) -> None:
    one, other = make_site(), make_site()
    assert one.console.gate.token != other.console.gate.token
    for path in ("/.json", f"{TABLE}/Survey.json", f"{ROOF}.json", f"{TABLE}/-/requests.json"):
        assert one.console.gate.token not in one.get(path).text


def test_a_form_of_one_item_cannot_change_another(make_site: SiteMaker) -> None:
    site = make_site(write=True)
    fields = read_form(site.get(ROOF).text)
    walls = ROOF.replace("roof", "walls")
    fields[f"v.{number_of(fields, 'notes')}"] = "Crossed"
    assert site.client.post(walls, data=fields).status_code == 400
    assert "Crossed" not in site.get(walls).text


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS"])
def test_other_methods_are_refused(make_site: SiteMaker, method: str) -> None:
    assert make_site().client.request(method, ROOF).status_code == 405


@pytest.mark.parametrize("pattern", sorted(routes._POST))
def test_every_form_needs_the_own_origin_and_the_token(make_site: SiteMaker, pattern: str) -> None:
    site = make_site(write=True)
    path = "/" + pattern.replace("*", "SurveyorData")
    token = site.console.gate.token
    foreign = site.client.post(path, data={"token": token}, headers={"origin": "http://evil.example"})
    assert (foreign.status_code, "evil.example" in foreign.text) == (403, True)
    assert site.client.post(path, data={"token": "x"}, headers={"origin": HOME}).status_code == 403
