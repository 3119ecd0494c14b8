"""Ranges of keys that are not escaped: where the delimiter sorts among the values decides."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from solotable import Entity, Index, Key, KeyFormat, Table
from solotable._entities.keys.bounds import after_prefix
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.ranges import SortRange, Verb
from solotable._entities.keys.templates import Template
from solotable._entities.lint import lint
from solotable.errors import DataError, DeclarationError

FIELDS: dict[str, Any] = {
    "raw": bytes,
    "word": Literal["a", "ab", "a!"],
    "plain": Literal["a", "ab"],
    "n": int,
    "text": str,
}


def bounds(text: str, delimiter: str, verb: Verb, /, **part: Any) -> list[str]:
    key_format = KeyFormat(delimiter, escape=False)
    template = Template.compile(text, FIELDS, where="Any.key", key_format=key_format)
    ((name, value),) = part.items()
    (term,) = TemplateLayout("SK", template, "sort").within({}, SortRange(verb, name, (value,)))
    return [str(each["S"]) for each in term.values]


def test_hexadecimal_digits_are_in_order_only_before_a_low_delimiter() -> None:
    assert bounds("{raw}#x{n:02d}", "#", "after", raw=b"\x01") == ["01#y"]
    with pytest.raises(DataError, match="not escaped"):
        bounds("{raw}|x{n:02d}", "|", "after", raw=b"\x01")


def test_choices_are_in_order_only_if_none_continues_below_the_delimiter() -> None:
    # "ab" sorts after all keys of "a", so the bound is behind the delimiter.
    assert bounds("{plain}#x{n:02d}", "#", "after", plain="a") == ["a#y"]
    with pytest.raises(DataError, match="not escaped"):
        bounds("{word}#x{n:02d}", "#", "after", word="a")
    with pytest.raises(DataError, match="not escaped"):
        bounds("{plain}|x{n:02d}", "|", "after", plain="a")


def test_the_last_part_has_every_range() -> None:
    assert bounds("A|{text}", "|", "after", text="x") == ["A|x\x00", "A|" + "\U0010ffff" * 255 + "\u07ff"]
    assert bounds("A|{text}", "|", "until", text="x") == ["A|", "A|x"]


def test_the_least_text_after_a_prefix() -> None:
    assert after_prefix("a\ud7ff") == "a\ue000"
    assert after_prefix("\U0010ffff") is None


@pytest.mark.parametrize(
    ("text", "key_format"),
    [
        ("{text}{n:d}", KeyFormat(escape=False)),
        ("{text}_{n:d}", KeyFormat(escape=False)),
        ("{n:d}-{text}", KeyFormat("-", escape=False)),
        ("{n:d}1{text}", KeyFormat(escape=False)),
        ("$a#{text}", KeyFormat()),
        ("{n:04d}_{text}", KeyFormat()),
    ],
)
def test_a_template_with_an_unknown_end_is_rejected(text: str, key_format: KeyFormat) -> None:
    with pytest.raises(DeclarationError):
        Template.compile(text, FIELDS, where="Any.key", key_format=key_format)


def test_a_format_that_cannot_keep_the_order_is_rejected() -> None:
    with pytest.raises(DeclarationError, match="add escape=False"):
        KeyFormat("|")
    with pytest.raises(DeclarationError, match="without letters"):
        KeyFormat("x", escape=False)


def test_the_linter_compares_keys_of_other_formats() -> None:
    table = Table("Formats", key_format=KeyFormat("|", escape=False), indexes=[Index("GSI1")])

    class One(Entity, table=table):
        key = Key("A|{a}", "{n:d}")
        by_a = Key("{a}", "A|{a}", index="GSI1")
        a: str
        n: int

    class Same(Entity, table=table):
        key = Key("A|{b}", "7")
        b: str

    class Apart(Entity, table=table):
        key = Key("A|{b}", "PROFILE")
        b: str

    class Anything(Entity, table=table, tag="Any"):
        key = Key("{b}", "x")
        b: str

    found = [(finding.code, finding.entity) for finding in lint(table)]
    assert found.count(("ST101", "Same")) == 1
    assert ("ST101", "Apart") not in found
    assert ("ST106", "One") in found
    assert ("ST105", "Anything") in found
    assert [finding for finding in lint(table) if "PK=A|x, SK=7" in finding.message]
