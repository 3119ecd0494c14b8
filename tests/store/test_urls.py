"""Stores by their URLs: a file, memory, and a table of an endpoint, blocking and awaited."""

from __future__ import annotations

import asyncio
import uuid
from pathlib import Path

import pytest

from solotable import connect, connect_async
from solotable._connect import ensure
from solotable.engines.dynamodb import DynamoEngine
from solotable.errors import DeclarationError, EngineError, TableNotFound
from solotable.urls import Url

from .models import Section, Survey, library, surveyor


def test_a_file_keeps_what_was_put(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'surveys.db'}"
    with surveyor.open(url) as base:
        base.tenant("acme").put(Survey(survey_id="s", title="t"))

    async def again() -> None:
        async with surveyor.open_async(url) as opened:
            db = opened.tenant("acme")
            found = await db.require(Survey, survey_id="s")
            assert (found.title, found.version) == ("t", 1)
            await db.put(found)

    asyncio.run(again())
    with connect(url, surveyor, library) as base:
        assert base.tenant("acme").require(Survey, survey_id="s").version == 2


def test_memory_is_forgotten() -> None:
    with surveyor.open("sqlite://") as base:
        base.tenant("acme").put(Survey(survey_id="s", title="t"))
    with surveyor.open("sqlite://") as base:
        assert base.tenant("acme").get(Survey, survey_id="s") is None


def test_a_table_of_an_endpoint(wire_engine: DynamoEngine) -> None:
    name = f"url-{uuid.uuid4().hex}"
    url = f"{wire_engine.endpoint_url}/{name}"
    with surveyor.open(url) as base, pytest.raises(TableNotFound):
        base.tenant("acme").get(Survey, survey_id="s")
    ensure(wire_engine, surveyor, name)
    with connect(url, surveyor) as base:
        base.tenant("acme").put(Section(survey_id="s", section_id="x", name="n", order=1))

    async def read() -> list[str]:
        async with connect_async(url, surveyor) as opened:
            return [row.name async for row in opened.tenant("acme").all(Section.of_survey("s"))]

    assert asyncio.run(read()) == ["n"]


@pytest.mark.parametrize(
    "url",
    ["", "shop.db", "postgres://x", "sqlite://host/file.db", "http:///T", "http://h:1/a/b", "sqlite3:///x"],
)
def test_an_invalid_url_is_named(url: str) -> None:
    with pytest.raises(DeclarationError) as refused:
        Url.parse(url)
    assert repr(url) in str(refused.value)


def test_one_name_is_for_one_table() -> None:
    with pytest.raises(DeclarationError, match="names one table"):
        connect("http://127.0.0.1:1/T", surveyor, library)
    with pytest.raises(DeclarationError, match="at least one table"):
        connect("sqlite://")


def test_an_awaited_file_that_was_closed_says_so(tmp_path: Path) -> None:
    async def late() -> None:
        store = surveyor.open_async(f"sqlite:///{tmp_path / 'surveys.db'}")
        await store.close()
        with pytest.raises(EngineError, match="was closed; open it again"):
            await store.tenant("acme").get(Survey, survey_id="s")

    asyncio.run(late())
