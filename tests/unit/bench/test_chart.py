"""The chart is well-formed, stays inside its frame and hides nothing."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import pytest

from bench import chart

SVG = "{http://www.w3.org/2000/svg}"
NAMES = ["solotable", "solotable relaxed", "Dynoxide", "a < b & c", "moto"]
FIGURES: dict[str, dict[str, Any]] = {
    "GetItem": {"solotable": {"rate": 12345.6}, "Dynoxide": {"rate": 3000.0}, "moto": {"rate": 2.5}},
    "PutItem": {
        "solotable": {"rate": 500.0},
        "solotable relaxed": {"rate": 900.0},
        "Dynoxide": {"rate": 1000.0},
        "a < b & c": {"none": "it has no such operation"},
        "moto": {"void": "3 of 9 replies were errors"},
    },
    "Query of 50": {},
}


@pytest.fixture
def picture() -> ElementTree.Element:
    text = chart.svg(FIGURES, NAMES, title="A & B", below="<below>", notes="solotable 1 & others")
    return ElementTree.fromstring(text)  # noqa: S314 - our own text


def test_it_is_a_picture_800_wide_with_a_title_and_a_description(picture: ElementTree.Element) -> None:
    assert picture.tag == f"{SVG}svg"
    assert picture.get("width") == "800"
    assert picture.findtext(f"{SVG}title") == "A & B"
    assert "GetItem: solotable 12,346, solotable relaxed missing" in str(picture.findtext(f"{SVG}desc"))


def test_everything_lies_inside_the_frame(picture: ElementTree.Element) -> None:
    height = float(picture.get("height", "0"))
    for shape in picture.iter(f"{SVG}rect"):
        right = float(shape.get("x", "0")) + float(shape.get("width", "0"))
        assert 0 <= float(shape.get("x", "0")) < right <= chart.WIDTH
        assert float(shape.get("y", "0")) + float(shape.get("height", "0")) <= height
    for text in picture.iter(f"{SVG}text"):
        assert 0 < float(text.get("x", "0")) < chart.WIDTH
        assert 0 < float(text.get("y", "0")) < height


def test_the_longest_bar_of_a_panel_is_its_fastest_contender(picture: ElementTree.Element) -> None:
    bars = [(shape.get("class"), float(shape.get("width", "0"))) for shape in picture.iter(f"{SVG}rect")]
    put = bars[4:]  # the ground, then three bars of GetItem
    assert [kind for kind, _ in put] == ["bar-ours", "bar-other", "bar"]
    assert put[2][1] == pytest.approx(2 * put[0][1])


def test_a_ratio_is_to_the_fastest_peer_and_never_to_ourselves(picture: ElementTree.Element) -> None:
    said = {text.text: text.get("class") for text in picture.iter(f"{SVG}text") if "×" in str(text.text)}
    assert said == {"4.1× Dynoxide": "times", "0.5× Dynoxide": "small"}


def test_what_has_no_figure_is_said(picture: ElementTree.Element) -> None:
    words = [text.text for text in picture.iter(f"{SVG}text")]
    assert words.count("none") == 1
    assert words.count("void") == 1
    assert words.count("missing") == 2 + len(NAMES)
