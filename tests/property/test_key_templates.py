"""Over arbitrary unicode, keys are injective, sort as their values do, and have exact ranges."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Literal
from uuid import UUID

from hypothesis import assume, given
from hypothesis import strategies as st

from solotable._entities.keys.bounds import below, ceiling
from solotable._entities.keys.parts.codecs import escape, unescape
from solotable._entities.keys.templates import Template

#: Any character, with those at the edges of escaping, of UTF-8's lengths and of the surrogate gap often.
CHARACTERS = st.sampled_from(
    "\x00\x1f !\"#$%&'-/0129AFf~\x7f\x80\u07ff\u0800\ud7ff\ue000\uffff\U00010000\U0010ffff"
)
TEXTS = st.text(st.one_of(CHARACTERS, st.characters(codec="utf-8")), max_size=8)
#: Short, so that two of them often differ in just such a character.
EDGES = st.text(CHARACTERS, max_size=2)
ZONES = st.integers(-1439, 1439).map(lambda minutes: timezone(timedelta(minutes=minutes)))
MOMENTS = st.datetimes(datetime(2, 1, 1), datetime(9998, 12, 31), timezones=ZONES)

#: A field's type, its format and its values; all of them sort in Python as they must in a key.
KINDS: dict[str, tuple[Any, str, st.SearchStrategy[Any]]] = {
    "text": (str, "", TEXTS),
    "choice": (Literal["a", "a b", "a#b", "a%", "b"], "", st.sampled_from(["a", "a b", "a#b", "a%", "b"])),
    "unsigned": (int, "04d", st.integers(0, 9999)),
    "signed": (int, "+04d", st.integers(-999, 9999)),
    "price": (Decimal, "07.2f", st.decimals(0, "9999.99", places=2)),
    "balance": (Decimal, "+07.2f", st.decimals("-999.99", "9999.99", places=2)),
    "whole": (Decimal, "+03.0f", st.decimals(-99, 999, places=0)),
    "moment": (datetime, "", MOMENTS),
    "second": (datetime, "s", MOMENTS.map(lambda moment: moment.replace(microsecond=0))),
    "day": (date, "", st.dates()),
    "uuid": (UUID, "", st.uuids()),
    "hex": (bytes, "", st.binary(max_size=6)),
}


def in_bytes(text: str) -> bytes:
    return text.encode()


@st.composite
def templates(draw: st.DrawFn) -> tuple[Template, list[st.SearchStrategy[Any]]]:
    """A template of one to four fields, with the values of each."""
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    text = draw(st.sampled_from(["", "#", "A#", "TENANT#", "a-"]))
    annotations: dict[str, Any] = {}
    for place, kind in enumerate(kinds):
        annotation, spec, _ = KINDS[kind]
        annotations[f"f{place}"] = annotation
        text += f"{{f{place}:{spec}}}" if spec else f"{{f{place}}}"
        if place < len(kinds) - 1:
            text += draw(st.sampled_from(["#", "##", "#B#"]))
    text += draw(st.sampled_from(["", "#", "#END"]))
    return Template.compile(text, annotations, where="Any.key"), [KINDS[kind][2] for kind in kinds]


@st.composite
def two_keys(draw: st.DrawFn) -> tuple[Template, tuple[Any, ...], tuple[Any, ...]]:
    """A template and two tuples of values that often agree in some of them."""
    template, strategies = draw(templates())
    left = tuple(draw(strategy) for strategy in strategies)
    right = tuple(
        value if draw(st.booleans()) else draw(strategy)
        for value, strategy in zip(left, strategies, strict=True)
    )
    return template, left, right


def key(template: Template, values: tuple[Any, ...]) -> str:
    text = template.format(dict(zip(template.fields, values, strict=True)))
    assert text is not None
    return text


@given(TEXTS)
def test_escaped_text_reads_back_and_holds_no_delimiter(text: str) -> None:
    assert unescape(escape(text)) == text
    assert all(character > "$" for character in escape(text))


@given(TEXTS, EDGES, EDGES)
def test_escaping_keeps_the_order_of_bytes(shared: str, left: str, right: str) -> None:
    left, right = shared + left, shared + right
    before, after = in_bytes(left) < in_bytes(right), in_bytes(escape(left)) < in_bytes(escape(right))
    assert before == after
    assert (left == right) == (escape(left) == escape(right))


@given(TEXTS)
def test_text_reads_back_only_if_escaping_gives_it(text: str) -> None:
    try:
        meant = unescape(text)
    except ValueError:
        return
    assert escape(meant) == text


@given(two_keys())
def test_a_key_parses_to_its_values(drawn: tuple[Template, tuple[Any, ...], tuple[Any, ...]]) -> None:
    template, values, _ = drawn
    assert template.parse(key(template, values)) == dict(zip(template.fields, values, strict=True))


@given(templates(), TEXTS)
def test_whatever_parses_formats_to_the_same_text(drawn: tuple[Template, Any], text: str) -> None:
    template, _ = drawn
    values = template.parse(text)
    assert values is None or template.format(values) == text


@given(two_keys())
def test_keys_are_equal_and_sort_as_their_values(
    drawn: tuple[Template, tuple[Any, ...], tuple[Any, ...]],
) -> None:
    template, left, right = drawn
    first, second = key(template, left), key(template, right)
    assert (first == second) == (left == right)
    assert (in_bytes(first) < in_bytes(second)) == (left < right)


@given(st.sampled_from(sorted(KINDS)), st.data())
def test_each_kind_alone_sorts_as_its_values(kind: str, data: st.DataObject) -> None:
    annotation, spec, strategy = KINDS[kind]
    slot = f"{{f:{spec}}}" if spec else "{f}"
    template = Template.compile(slot, {"f": annotation}, where="Any.key")
    values = data.draw(st.lists(strategy, max_size=8))
    by_key = sorted(values, key=lambda value: in_bytes(key(template, (value,))))
    assert by_key == sorted(values)


@given(two_keys(), st.integers(0, 4))
def test_a_prefix_starts_exactly_the_keys_that_share_its_values(
    drawn: tuple[Template, tuple[Any, ...], tuple[Any, ...]], count: int
) -> None:
    template, left, right = drawn
    assume(count < len(left))
    prefix = template.prefix(dict(zip(template.fields[:count], left[:count], strict=True)))
    assert key(template, left).startswith(prefix)
    assert key(template, right).startswith(prefix) == (left[:count] == right[:count])


FAMILY = [
    Template.compile(text, {"a": str, "b": str, "n": int, "d": date}, where="Any.key")
    for text in [
        "SURVEY",
        "SURVEY#{a}",
        "SURVEY#{a}#SECTION#{b}",
        "SURVEY#{a}#SECTION#{n:+04d}",
        "SURVEY##{a}",
        "SURVEY-{a}#{b}",
        "SURVEYOR#{a}",
        "{a}",
        "{a}#{b}",
        "{a}#",
        "{d}#{a}",
        "{d}#x{a}#{b}",
        "{n:+04d}#{d}",
    ]
]
NAMES = st.one_of(st.sampled_from(["", "1", "10", "1#", "1$", "1%", "1 ", "SURVEY"]), TEXTS)
VALUES = st.fixed_dictionaries(
    {"a": NAMES, "b": NAMES, "n": st.integers(-2, 2), "d": st.sampled_from([date(2026, 11, 15), date.max])}
)


@given(st.sampled_from(FAMILY), st.sampled_from(FAMILY), VALUES, VALUES, st.booleans())
def test_a_ceiling_bounds_exactly_a_key_and_its_children(
    template: Template, other: Template, values: dict[str, Any], others: dict[str, Any], shared: bool
) -> None:
    low = template.format(values)
    found = other.format({**others, "a": values["a"]} if shared else others)
    assert low is not None
    assert found is not None
    inside = in_bytes(low) <= in_bytes(found) <= in_bytes(ceiling(low))
    assert inside == (found == low or found.startswith(low + "#"))


SURVEY = Template.compile("SURVEY#{a}", {"a": str}, where="Survey.key")
SECTION = Template.compile("SURVEY#{a}#SECTION#{b}", {"a": str, "b": str}, where="Section.key")


@given(NAMES, NAMES, NAMES)
def test_the_range_of_one_id_never_holds_a_child_of_another(mine: str, theirs: str, child: str) -> None:
    low, found = SURVEY.format({"a": mine}), SECTION.format({"a": theirs, "b": child})
    assert low is not None
    assert found is not None
    assert (in_bytes(low) <= in_bytes(found) <= in_bytes(ceiling(low))) == (mine == theirs)


@given(TEXTS.filter(bool), TEXTS, st.integers(1, 12), st.integers(0, 8))
def test_nothing_that_fits_lies_between_a_text_and_the_one_below_it(
    text: str, ending: str, longest: int, kept: int
) -> None:
    lower = below(text, longest)
    assert len(in_bytes(lower)) <= longest
    assert in_bytes(lower) < in_bytes(text)
    for start in (lower, text):
        other = start[:kept] + ending
        if len(in_bytes(other)) <= longest and in_bytes(other) < in_bytes(text):
            assert in_bytes(other) <= in_bytes(lower)
