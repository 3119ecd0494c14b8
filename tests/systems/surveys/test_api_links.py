"""Links to reports open one report without a credential, until they end; deleted surveys are hidden."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from solotable.systems.surveys.report.links import MAX_DAYS, ReportLinks
from solotable.systems.surveys.report.pdf import find_browser

from .api import Api, mark, running

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)
SECRET, OTHER = b"s" * 32, b"o" * 32


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    with running(tmp_path_factory.mktemp("linked")) as made:
        yield made


def test_a_link_opens_its_report_without_a_credential(api: Api) -> None:
    ids = api.ids["acme"]
    made = api.ask("POST", f"/surveys/{ids['survey_id']}/report/links", "OWNER", json={"days": 2})
    assert made.status_code == 201
    answer = api.ask("GET", made.json()["path"])
    assert answer.status_code == 200
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert mark("acme") in answer.text
    assert mark("zeta") not in answer.text
    ends = datetime.fromisoformat(made.json()["expires"]) - datetime.now(UTC)
    assert timedelta(days=1) < ends <= timedelta(days=2)


def test_caches_search_engines_and_other_sites_do_not_learn_a_link(api: Api) -> None:
    answer = api.ask("GET", f"/reports/{api.ids['acme']['token']}")
    assert answer.headers["cache-control"] == "private, no-store"
    assert answer.headers["referrer-policy"] == "no-referrer"
    assert "noindex" in answer.headers["x-robots-tag"]
    assert "default-src 'none'" in answer.headers["content-security-policy"]


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine: the PDF is not tested")
def test_the_page_of_a_link_offers_its_pdf(api: Api) -> None:
    path = f"/reports/{api.ids['acme']['token']}"
    assert f'href="{path}/report.pdf"' in api.ask("GET", path).text
    printed = api.ask("GET", f"{path}/report.pdf")
    assert printed.content.startswith(b"%PDF-")
    assert printed.headers["cache-control"] == "private, no-store"
    assert api.ask("GET", "/reports/eyJ0." + "A" * 43 + "/report.pdf").status_code == 404


@pytest.mark.parametrize("days", [0, MAX_DAYS + 1, "x"])
def test_a_link_is_for_a_month_at_most(api: Api, days: object) -> None:
    path = f"/surveys/{api.ids['acme']['survey_id']}/report/links"
    assert api.ask("POST", path, "OWNER", json={"days": days}).status_code == 422


def test_a_link_is_the_decision_of_the_owner(api: Api) -> None:
    path = f"/surveys/{api.ids['acme']['survey_id']}/report/links"
    assert api.ask("POST", path, "EDITOR", json={}).status_code == 403
    assert api.ask("POST", "/surveys/none/report/links", "TENANT_ADMIN", json={}).status_code == 404


def test_a_link_that_was_changed_or_signed_elsewhere_is_not_found(api: Api) -> None:
    token = api.ids["acme"]["token"]
    payload, _, signature = token.partition(".")
    tenant, survey_id, ends = json.loads(base64.urlsafe_b64decode(payload + "=="))
    assert (tenant, survey_id) == ("acme", api.ids["acme"]["survey_id"])
    changed = json.dumps(["zeta", api.ids["zeta"]["survey_id"], ends]).encode()
    moved = base64.urlsafe_b64encode(changed).decode().rstrip("=")
    foreign, _ = ReportLinks([OTHER]).sign("acme", survey_id, now=datetime.now(UTC))
    for wrong in (f"{moved}.{signature}", f"{payload}.{'A' * 43}", foreign):
        assert api.ask("GET", f"/reports/{wrong}").status_code == 404
    for wrong in (payload, "x", f"{payload}.", f".{signature}", token + "="):
        assert api.ask("GET", f"/reports/{wrong}").status_code == 422


def test_a_link_ends_with_its_survey(api: Api) -> None:
    survey = api.ask("POST", "/surveys", "OWNER", json={"title": "Short"}).json()["survey_id"]
    path = api.ask("POST", f"/surveys/{survey}/report/links", "OWNER", json={}).json()["path"]
    assert api.ask("GET", path).status_code == 200
    assert api.ask("DELETE", f"/surveys/{survey}", "OWNER").status_code == 204
    assert api.ask("GET", path).status_code == 404


def test_a_deleted_survey_is_hidden_from_administrators_too_and_comes_back(api: Api) -> None:
    survey = api.ask("POST", "/surveys", "OWNER", json={"title": "Short"}).json()["survey_id"]
    section = api.ask("POST", f"/surveys/{survey}/sections", "OWNER", json={"name": "Roof"}).json()
    part = f"/surveys/{survey}/sections/{section['section_id']}"
    element = {"section_id": section["section_id"], "name": "Covering"}
    assert api.ask("DELETE", f"/surveys/{survey}", "OWNER").status_code == 204
    for role in ("OWNER", "TENANT_ADMIN", "GLOBAL_ADMIN"):
        assert api.ask("GET", part, role).status_code == 404
        assert api.ask("PATCH", part, role, json={"notes": "late"}).status_code == 404
        assert api.ask("POST", f"/surveys/{survey}/elements", role, json=element).status_code == 404
    assert api.ask("POST", f"/surveys/{survey}/restore", "TENANT_ADMIN").status_code == 200
    assert api.ask("GET", part, "OWNER").json()["notes"] == ""


def test_users_have_ids_as_their_provider_gives_them(api: Api) -> None:
    draft = {"user_id": "auth0|5f7c#1", "name": "Zoe"}
    assert api.ask("POST", "/members", "TENANT_ADMIN", json=draft).status_code == 201
    path = "/members/auth0%7C5f7c%231"
    assert api.ask("PATCH", path, "TENANT_ADMIN", json={"role": "admin"}).json()["role"] == "admin"
    assert api.ask("DELETE", path, "TENANT_ADMIN").status_code == 204


def test_a_token_opens_until_its_end_and_not_a_second_longer() -> None:
    links = ReportLinks([SECRET])
    token, expires = links.sign("acme", "s1", now=NOW, days=1)
    assert expires == NOW + timedelta(days=1)
    found = links.read(token, now=expires - timedelta(seconds=1))
    assert found is not None
    assert (found.tenant, found.survey_id, found.expires) == ("acme", "s1", expires)
    assert links.read(token, now=expires) is None


def test_secrets_are_rotated_and_are_not_short() -> None:
    old, _ = ReportLinks([OTHER]).sign("acme", "s1", now=NOW)
    both = ReportLinks([SECRET, OTHER])
    assert both.read(old, now=NOW) is not None
    new, _ = both.sign("acme", "s1", now=NOW)
    assert ReportLinks([SECRET]).read(new, now=NOW) is not None
    assert ReportLinks([SECRET]).read(old, now=NOW) is None
    assert ReportLinks().read(new, now=NOW) is None
    with pytest.raises(ValueError, match="at least 16 bytes"):
        ReportLinks([b"short"])
    with pytest.raises(ValueError, match="1 to 30 days"):
        both.sign("acme", "s1", now=NOW, days=31)
