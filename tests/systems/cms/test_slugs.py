"""Slugs: the fast path for normal ones, and no page can have the path of another route."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from solotable.errors import DataError
from solotable.systems.cms.app import create_app
from solotable.systems.cms.formats import slugs
from solotable.systems.cms.formats.slugs import MAX_LENGTH, normalise_slug
from solotable.systems.cms.routes.site.pages import PagePath, PageRoute
from tests.systems.http import routes_of

NOTHING = re.compile("(?!)")


@given(st.text(alphabet="abzAZ09-/_. \u00fc\u2170\uff0f", max_size=30).map("/".__add__))
def test_the_fast_path_gives_the_normal_form(path: str) -> None:
    def cleaned(quick: re.Pattern[str]) -> str:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(slugs, "_NORMAL", quick)
            try:
                return normalise_slug(path)
            except DataError as refused:
                return str(refused)

    assert cleaned(slugs._NORMAL) == cleaned(NOTHING)


def test_a_clean_path_may_be_too_long() -> None:
    assert normalise_slug("/" + "a" * (MAX_LENGTH - 1))
    with pytest.raises(DataError, match="at most 300 characters"):
        normalise_slug("/" + "a" * MAX_LENGTH)


def test_pages_are_asked_first_and_take_no_path_of_another_route() -> None:
    app = create_app("sqlite://")
    first, *others = routes_of(app)
    assert isinstance(first, PageRoute)
    assert app.router.routes[0] is first
    read = [route.path for route in others if "GET" in (route.methods or ())]
    paths = [*read, app.docs_url, app.redoc_url, app.openapi_url]
    assert len(paths) > 20
    for path in paths:
        assert re.fullmatch(PagePath.regex, str(path).lstrip("/")) is None, path
