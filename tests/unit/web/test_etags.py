"""Entity tags are versions: another version is a 412, and other tags never match."""

from __future__ import annotations

import pytest
from fastapi import HTTPException, Request

from solotable import ANY
from solotable.web import etag, not_modified
from solotable.web.http.etags import parse_if_match, require_if_match

from . import app as shop


def test_a_version_survives_the_round_trip() -> None:
    for version in (0, 1, 10**17):
        assert parse_if_match(etag(version)) == version
    assert parse_if_match(" * ") is ANY


@pytest.mark.parametrize(
    "text", ['W/"1"', '"abc"', '""', '"1.0"', '"-1"', '"' + "9" * 30 + '"', '"١"'.encode().decode("latin-1")]
)
def test_a_tag_that_is_not_a_version_never_matches(text: str) -> None:
    with pytest.raises(HTTPException) as refused:
        parse_if_match(text)
    assert refused.value.status_code == 412


@pytest.mark.parametrize("text", ["", "1", '"1', '1"', '"1", "2"', "w/1", '"a"b"', "**"])
def test_texts_that_are_not_tags_are_rejected(text: str) -> None:
    with pytest.raises(HTTPException) as refused:
        parse_if_match(text)
    assert refused.value.status_code == 400


def test_a_change_of_another_version_is_412_and_changes_nothing() -> None:
    with shop.client(shop.make(), key=shop.EDITOR_KEY) as http:
        made = http.post("/things", json={"thing_id": "1", "name": "a"})
        tag = made.headers["etag"]
        assert tag == '"1"'
        sent = {"thing_id": "1", "name": "b"}
        assert http.put("/things/1", json=sent, headers={"if-match": tag}).json()["version"] == 2
        late = http.put("/things/1", json=sent | {"name": "c"}, headers={"if-match": tag})
        assert (late.status_code, late.json()["current_version"]) == (412, 2)
        assert http.get("/things/1").json()["name"] == "b"
        assert http.put("/things/1", json=sent, headers={"if-match": "*"}).status_code == 200
        assert http.put("/things/1", json=sent).status_code == 200
        assert http.put("/things/2", json=sent, headers={"if-match": tag}).status_code == 404
        twice = [(b"if-match", b'"3"'), (b"if-match", b'"4"')]
        assert http.put("/things/1", json=sent, headers=twice).status_code == 400


async def _refuses() -> int:
    try:
        await require_if_match(None)
    except HTTPException as refused:
        return refused.status_code
    return 0


def test_a_required_tag_that_is_missing_is_428() -> None:
    import asyncio

    assert asyncio.run(_refuses()) == 428


@pytest.mark.parametrize(
    ("given", "fresh"),
    [
        ('"7"', True),
        ('W/"7"', True),
        ('"1", "7"', True),
        ("*", True),
        ('"8"', False),
        ("", False),
        ("7", False),
    ],
)
def test_a_known_tag_is_not_modified(given: str, fresh: bool) -> None:
    request = Request({"type": "http", "headers": [(b"if-none-match", given.encode())]})
    assert not_modified(request, etag(7)) is fresh
    assert not not_modified(Request({"type": "http", "headers": []}), etag(7))
