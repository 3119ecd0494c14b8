"""Templates: their grammar, their refusals, and the ranges that are made of them."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from solotable._entities.keys.bounds import below, ceiling
from solotable._entities.keys.templates import Template, TemplateField
from solotable.errors import DataError, DeclarationError

FIELDS: dict[str, Any] = {
    "tenant_id": str,
    "survey_id": str,
    "section_id": str,
    "order": int,
    "day": date,
    "reference": str | None,
    "score": float,
}


def template(text: str) -> Template:
    return Template.compile(text, FIELDS, where="Section.by_order")


def refusal(text: str) -> str:
    with pytest.raises(DeclarationError) as refused:
        template(text)
    return str(refused.value)


SECTION = template("SURVEY#{survey_id}#SECTION#{order:06d}")


def test_a_template_formats_and_parses() -> None:
    values = {"survey_id": "s#1", "order": 7}
    assert SECTION.format(values) == "SURVEY#s%231#SECTION#000007"
    assert SECTION.parse("SURVEY#s%231#SECTION#000007") == values


def test_a_template_shows_what_it_is_made_of() -> None:
    first, survey, middle, order = SECTION.parts
    assert (first, middle) == ("SURVEY#", "#SECTION#")
    assert isinstance(survey, TemplateField)
    assert isinstance(order, TemplateField)
    assert (survey.field, survey.spec, survey.codec.kind) == ("survey_id", "", "text")
    assert (order.field, order.spec, order.codec.width) == ("order", "06d", 6)
    assert SECTION.text == "SURVEY#{survey_id}#SECTION#{order:06d}"
    assert SECTION.fields == ("survey_id", "order")
    assert SECTION.optional == frozenset()
    assert template("REF#{reference}").optional == {"reference"}


def test_compiling_twice_gives_equal_templates() -> None:
    assert template("A#{survey_id}") == template("A#{survey_id}")
    assert hash(template("A#{survey_id}")) == hash(template("A#{survey_id}"))
    assert template("A#{survey_id}") != template("B#{survey_id}")


def test_text_without_fields_is_a_key() -> None:
    profile = template("PROFILE")
    assert profile.format({}) == "PROFILE"
    assert profile.parse("PROFILE") == {}
    assert profile.parse("PROFILE#") is None
    assert profile.prefix({}) == "PROFILE"


def test_every_field_is_ended_by_the_separator_so_that_ranges_can_be_cut_there() -> None:
    for text in ("{day}{order:03d}", "{day}x{survey_id}"):
        with pytest.raises(DeclarationError, match="put a # right after it"):
            template(text)


def test_a_none_leaves_the_whole_key_out() -> None:
    assert template("REF#{reference}#{order:06d}").format({"reference": None, "order": 1}) is None
    assert template("REF#{reference}#{order:06d}").format({"reference": None}) is None


def test_a_missing_field_is_named_with_its_template() -> None:
    with pytest.raises(DataError) as refused:
        SECTION.format({"survey_id": "s"})
    assert str(refused.value) == (
        "Section.by_order: order is missing, but 'SURVEY#{survey_id}#SECTION#{order:06d}' needs it; "
        "pass a value"
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SURVEY#s",
        "survey#s#SECTION#000007",
        "SURVEY#s#SECTION#7",
        "SURVEY#s#SECTION#0000070",
        "SURVEY#s#SECTION#000007\n",
        "SURVEY#s#SECTION#000007#",
        "SURVEY#a#b#SECTION#000007",
        "SURVEY#a b#SECTION#000007",
        "SURVEY#a$#SECTION#000007",
        "SURVEY#%41#SECTION#000007",
        "xSURVEY#s#SECTION#000007",
    ],
)
def test_a_key_of_another_form_does_not_parse(text: str) -> None:
    assert SECTION.parse(text) is None


@pytest.mark.parametrize(
    "text, reason",
    [
        ("", "the template is empty"),
        ("A#{}", "{} in 'A#{}' is not a field"),
        ("A#{order:}", "is not a field"),
        ("A#{order!r}", "is not a field"),
        ("A#{day.year}", "is not a field"),
        ("A#{{survey_id}}", "not doubled ones"),
        ("A#{survey_id", "has a { outside of a {field}"),
        ("A#survey_id}", "has a } outside of a {field}"),
        ("A B#{survey_id}", "has ' ' between its fields"),
        ("A!{survey_id}", "has '!' between its fields"),
        ('A"{survey_id}', "has '\"' between its fields"),
        ("A${survey_id}", "has '$' between its fields"),
        ("A%{survey_id}", "has '%' between its fields"),
        ("A\x00{survey_id}", r"has '\x00' between its fields"),
        ("A\ud800{survey_id}", r"has '\ud800' between its fields"),
        ("A#{survey_id}{order:06d}", "marks the end of {survey_id}"),
        ("A#{survey_id}-{order:06d}", "marks the end of {survey_id}"),
        ("A#{survey_id}x", "put a # right after it"),
        ("A#{survey_id}#{survey_id}", "has {survey_id} twice"),
        ("A#{surveyid}", "did you mean survey_id?"),
        ("A#{qqq}", "the fields are tenant_id, survey_id"),
        ("A#{order}", "write {order:06d}"),
        ("A#{score}", "use a Decimal"),
    ],
)
def test_a_template_that_cannot_work_is_refused_with_a_way_out(text: str, reason: str) -> None:
    message = refusal(text)
    assert message.startswith("Section.by_order: ")
    assert reason in message


def test_an_unknown_field_among_none_is_refused() -> None:
    with pytest.raises(DeclarationError, match="the fields are none"):
        Template.compile("A#{b}", {}, where="A.key")


def test_a_prefix_goes_through_the_text_up_to_the_first_open_field() -> None:
    assert SECTION.prefix({}) == "SURVEY#"
    assert SECTION.prefix({"survey_id": "s"}) == "SURVEY#s#SECTION#"
    assert SECTION.prefix({"survey_id": "s", "order": 7}) == "SURVEY#s#SECTION#000007"
    assert template("A#{survey_id}#END").prefix({"survey_id": "s"}) == "A#s#END"


def test_a_prefix_lets_fields_of_other_templates_be() -> None:
    assert SECTION.prefix({"survey_id": "s", "tenant_id": "t"}) == "SURVEY#s#SECTION#"


def test_a_later_field_without_an_earlier_one_is_refused_by_both_names() -> None:
    with pytest.raises(DataError) as refused:
        SECTION.prefix({"order": 7})
    assert "order is given without survey_id" in str(refused.value)


def test_nothing_can_be_asked_by_none() -> None:
    with pytest.raises(DataError, match="survey_id is None"):
        SECTION.prefix({"survey_id": None})
    with pytest.raises(DataError, match="order is None"):
        SECTION.encode("order", None)


def test_the_next_field_is_the_first_open_one() -> None:
    assert SECTION.next_field({}) == "survey_id"
    assert SECTION.next_field({"order": 7}) == "survey_id"
    assert SECTION.next_field({"survey_id": "s"}) == "order"
    assert SECTION.next_field({"survey_id": "s", "order": 7}) is None


def test_one_field_encodes_as_in_the_key() -> None:
    assert SECTION.encode("order", 7) == "000007"
    assert SECTION.encode("survey_id", "a b") == "a%20b"
    with pytest.raises(DataError, match="tenant_id is not part of"):
        SECTION.encode("tenant_id", "t")


def test_a_value_that_does_not_fit_is_named_by_its_entity() -> None:
    with pytest.raises(DataError, match=r"Section\.order = 1000000 does not fit \{order:06d\}, which holds "):
        SECTION.format({"survey_id": "s", "order": 1_000_000})


def test_a_ceiling_is_above_the_children_and_below_the_next_id() -> None:
    keys = ["SURVEY#1", "SURVEY#1#SECTION#9", ceiling("SURVEY#1"), "SURVEY#1%23", "SURVEY#10"]
    assert keys == sorted(keys)
    assert ceiling("SURVEY#1") == "SURVEY#1$"


@pytest.mark.parametrize(
    "text, longest, lower",
    [
        ("b", 1, "a"),
        ("b", 2, "a\x7f"),
        ("b", 3, "a\u07ff"),
        ("b", 4, "a\uffff"),
        ("b", 5, "a\U0010ffff"),
        ("b", 6, "a\U0010ffff\x7f"),
        ("\x00", 4, ""),
        ("a\x00", 4, "a"),
        ("a\x00\x00", 4, "a\x00"),
        ("\ue000", 3, "\ud7ff"),
        ("\ue000", 4, "\ud7ff\x7f"),
        ("\x80", 2, "\x7f\x7f"),
        ("\u0800", 3, "\u07ff\x7f"),
        ("\U00010000", 4, "\uffff\x7f"),
        ("abc", 2, "ab"),
        ("ab\U0001f600", 5, "ab\uffff"),
        ("ab\u00e9", 3, "ab\x7f"),
        ("ab\u00e9", 2, "ab"),
    ],
)
def test_below_gives_the_greatest_smaller_string_that_fits(text: str, longest: int, lower: str) -> None:
    assert below(text, longest) == lower


def test_below_fills_a_sort_key_by_default() -> None:
    assert len(below("SECTION#000007").encode()) == 1024


def test_nothing_is_below_the_empty_string() -> None:
    with pytest.raises(DataError):
        below("")
