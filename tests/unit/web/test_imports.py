"""The exports of solotable.web, and the lifespan of an app's database."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable import web
from solotable._connect import connect_async
from solotable._store import AsyncDatabase
from solotable.errors import DeclarationError

from . import app as shop


@pytest.mark.parametrize("missing", ["fastapi", "jwt", "cryptography", "idna"])
def test_a_missing_package_is_named_with_its_extra(missing: str) -> None:
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try:\n    import solotable.web\n"
        "except ModuleNotFoundError as refused:\n    print(refused)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)  # noqa: S603  # our own Python
    assert done.stdout.strip().endswith("pip install 'solotable[web]'")


def test_every_exported_name_exists_and_is_sorted() -> None:
    assert all(hasattr(web, name) for name in web.__all__)
    assert web.__all__ == sorted(web.__all__, key=lambda name: (not name.isupper(), name[0].islower(), name))


def test_the_database_lives_as_long_as_the_app() -> None:
    steps = []

    @asynccontextmanager
    async def during(app: FastAPI) -> AsyncIterator[None]:
        steps.append(repr(app.state.database))
        yield
        steps.append("over")

    app = FastAPI(lifespan=web.lifespan("sqlite://", shop.shop, during=during))
    for _ in range(2):
        with TestClient(app):
            assert repr(app.state.database) == "AsyncDatabase(Shop)"
        assert not hasattr(app.state, "database")
    assert steps == ["AsyncDatabase(Shop)", "over"] * 2


def test_a_database_that_was_open_stays_open() -> None:
    database = connect_async("sqlite://", shop.shop)
    app = FastAPI(lifespan=web.lifespan(database))
    for _ in range(2):
        with TestClient(app) as http:
            assert http.portal is not None
            assert http.portal.call(_count, database) == 0


async def _count(database: AsyncDatabase) -> int:
    return await database.tenant("acme").count(shop.Thing.every())


def test_a_url_that_is_none_fails_at_the_start() -> None:
    app = FastAPI(lifespan=web.lifespan("nonsense", shop.shop))
    with pytest.raises(DeclarationError), TestClient(app):
        pass


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=101", "limit=x", "limit=-1", "cursor=", "cursor=" + "x" * 17_000]
)
def test_page_parameters_have_bounds(query: str) -> None:
    with shop.client(shop.make(), key=shop.EDITOR_KEY) as http:
        assert http.get(f"/things?{query}").status_code == 422


@pytest.mark.parametrize("cursor", ["x", "é", "../..", "A" * 200, "null", "%00"])
def test_made_up_cursors_are_rejected(cursor: str) -> None:
    with shop.client(shop.make(), key=shop.EDITOR_KEY) as http:
        answer = http.get("/things", params={"cursor": cursor})
        assert answer.status_code == 400
        assert answer.json()["type"].endswith(":cursor-rejected")


def test_an_app_that_was_not_started_says_what_is_missing(caplog: pytest.LogCaptureFixture) -> None:
    http = TestClient(shop.make(), headers={"x-api-key": shop.EDITOR_KEY})
    assert http.get("/things").status_code == 500
    assert "the lifespan only in a `with` block" in caplog.text
