"""In any key format, over arbitrary unicode, keys are injective, parse exactly, and ranges are exact."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Annotated, Any, Literal
from uuid import UUID

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from solotable import Epoch, Iso, KeyFormat
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.ranges import SortRange, Verb
from solotable._entities.keys.templates import Template
from solotable._expressions.ast import KeyTerm
from solotable.errors import DataError, DeclarationError

VERBS: list[Verb | None] = ["since", "after", "until", "before", "between", None]
DELIMITERS = ["#", "|", "::", "-", "_", "/", "$", " ", "--#"]
FORMATS = st.one_of(
    st.builds(
        KeyFormat,
        st.sampled_from(DELIMITERS),
        escape=st.just(False),
        case=st.sampled_from([None, "lower", "upper"]),
    ),
    st.builds(KeyFormat, case=st.sampled_from([None, "lower", "upper"])),
)
CHARACTERS = st.sampled_from("\x00 !#$%-/09:AZ_az|\x7f\u00df\u0130\u07ff\ud7ff\ue000\uffff\U0010ffff")
TEXTS = st.one_of(
    st.text(CHARACTERS, max_size=3),
    st.text(st.characters(codec="utf-8"), max_size=4),
    st.text("ab", max_size=2),
)
WORDS = ["a", "ab", "a b", "a!", "B"]
MOMENTS = st.datetimes(datetime(2001, 9, 10), datetime(2200, 1, 1), timezones=st.just(UTC))
SECONDS = MOMENTS.map(lambda moment: moment.replace(microsecond=0))
MILLISECONDS = MOMENTS.map(lambda moment: moment.replace(microsecond=moment.microsecond // 1000 * 1000))

#: A field's type, its format, its values, and the values of range bounds.
KINDS: dict[str, tuple[Any, str, st.SearchStrategy[Any], st.SearchStrategy[Any]]] = {
    "text": (str, "", TEXTS, TEXTS),
    "choice": (Literal["a", "ab", "a b", "a!", "B"], "", st.sampled_from(WORDS), st.sampled_from(WORDS)),
    "number": (int, "d", st.integers(-100, 100), st.integers(-100, 100)),
    "padded": (int, "+04d", st.integers(-99, 99), st.integers(-99, 99)),
    "second": (datetime, "s", SECONDS, MOMENTS),
    "iso": (Annotated[datetime, Iso("ms", offset="+0000")], "", MILLISECONDS, MOMENTS),
    "epoch": (Annotated[datetime, Epoch("ms")], "", MILLISECONDS, MOMENTS),
    "day": (date, "", st.dates(), st.dates()),
    "uuid": (UUID, "", st.uuids(), st.uuids()),
    "hex": (bytes, "", st.binary(max_size=3), st.binary(max_size=3)),
}


@st.composite
def templates(draw: st.DrawFn) -> tuple[Template, list[str]]:
    """A template of one to three fields that the format accepts, with the kind of each."""
    key_format = draw(FORMATS)
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=3))
    between = [key_format.delimiter, key_format.delimiter + "B" + key_format.delimiter, "_x", "", "%"]
    text = draw(st.sampled_from(["", "A" + key_format.delimiter, "$a_"]))
    annotations: dict[str, Any] = {}
    for place, kind in enumerate(kinds):
        annotation, spec, _, _ = KINDS[kind]
        annotations[f"f{place}"] = annotation
        text += f"{{f{place}:{spec}}}" if spec else f"{{f{place}}}"
        if place < len(kinds) - 1:
            text += draw(st.sampled_from(between))
    text += draw(st.sampled_from(["", key_format.delimiter, key_format.delimiter + "END"]))
    try:
        return Template.compile(text, annotations, where="Any.key", key_format=key_format), kinds
    except DeclarationError:
        assume(condition=False)
        raise


def folded(template: Template, value: Any) -> Any:
    return template.key_format.fold(value) if isinstance(value, str) else value


def ordered(template: Template, value: Any) -> Any:
    """A value that compares like the texts in the key."""
    text = folded(template, value)
    return text.encode() if isinstance(text, str) else value


@st.composite
def keys(draw: st.DrawFn) -> tuple[Template, list[str], list[tuple[Any, ...]], list[str]]:
    """A template with tuples of values that often agree, and the key of each."""
    template, kinds = draw(templates())
    found: list[tuple[Any, ...]] = []
    texts: list[str] = []
    for _ in range(draw(st.integers(2, 5))):
        values = tuple(draw(KINDS[kind][2]) for kind in kinds)
        if found:
            values = tuple(
                old if draw(st.booleans()) else new for old, new in zip(found[-1], values, strict=True)
            )
        try:
            text = template.format(dict(zip(template.fields, values, strict=True)))
        except DataError:  # the value contains the delimiter
            continue
        assert text is not None
        found.append(values)
        texts.append(text)
    assume(found)
    return template, kinds, found, texts


@given(keys())
def test_keys_are_equal_only_if_their_values_are(
    drawn: tuple[Template, list[str], list[tuple[Any, ...]], list[str]],
) -> None:
    template, _, found, texts = drawn
    for one, mine in zip(found, texts, strict=True):
        for other, theirs in zip(found, texts, strict=True):
            same = [folded(template, each) for each in one] == [folded(template, each) for each in other]
            assert (mine == theirs) == same


@given(keys())
def test_a_key_parses_to_its_values_where_it_contains_them(
    drawn: tuple[Template, list[str], list[tuple[Any, ...]], list[str]],
) -> None:
    template, _, found, texts = drawn
    for values, text in zip(found, texts, strict=True):
        parsed = template.parse(text)
        assert parsed is not None
        assert template.format(parsed) == text
        for name, value in zip(template.fields, values, strict=True):
            expected = folded(template, value) if name in template.inexact else value
            assert parsed[name] == expected


def meets(term: KeyTerm, text: str) -> bool:
    mine = text.encode()
    bounds = [str(value["S"]).encode() for value in term.values]
    match term.operator:
        case "begins_with":
            return mine.startswith(bounds[0])
        case "=":
            return bool(bounds) and mine == bounds[0]
        case ">=":
            return mine >= bounds[0]
        case "<=":
            return mine <= bounds[0]
        case _:
            return bounds[0] <= mine <= bounds[1]


def is_within(verb: Verb | None, value: Any, low: Any, high: Any) -> bool:
    match verb:
        case "since":
            return bool(value >= low)
        case "after":
            return bool(value > low)
        case "until":
            return bool(value <= low)
        case "before":
            return bool(value < low)
        case "between":
            return bool(low <= value <= high)
        case _:
            return True


@settings(max_examples=400)
@given(keys(), st.integers(0, 2), st.data())
def test_a_range_reads_exactly_its_keys(
    drawn: tuple[Template, list[str], list[tuple[Any, ...]], list[str]], count: int, data: st.DataObject
) -> None:
    template, kinds, found, texts = drawn
    count = min(count, len(kinds) - 1)
    layout = TemplateLayout("SK", template, "sort")
    name, kind = template.fields[count], kinds[count]
    given_values = dict(zip(template.fields[:count], found[0][:count], strict=True))
    verb = data.draw(st.sampled_from(VERBS))
    stored = st.sampled_from([values[count] for values in found])
    near = stored
    if isinstance(found[0][count], datetime):
        near = st.builds(lambda at, by: at + timedelta(microseconds=by), stored, st.integers(-1500, 1500))
    bounds = tuple(
        data.draw(st.one_of(stored, near, KINDS[kind][3])) for _ in range(2 if verb == "between" else 1)
    )
    try:
        terms = layout.within(given_values, None if verb is None else SortRange(verb, name, bounds))
    except DataError:  # a range that is not exact, or a bound with the delimiter
        return
    low, high = ordered(template, bounds[0]), ordered(template, bounds[-1])
    for values, text in zip(found, texts, strict=True):
        inside = is_within(verb, ordered(template, values[count]), low, high)
        same = [folded(template, each) for each in values[:count]] == [
            folded(template, each) for each in found[0][:count]
        ]
        assert all(meets(term, text) for term in terms) == (same and inside), (template, terms, text)
