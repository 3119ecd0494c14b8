"""Key templates: `SURVEY#{survey_id}#SECTION#{order:06d}` formats and parses keys, with exact ranges.

Different values never give the same key, and keys sort like their values. `Template.compile` rejects a
template that could break this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from itertools import pairwise
from typing import Any

from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import LONGEST_SORT_KEY
from solotable.errors import DataError, DeclarationError

from .parts.choose_codec import choose_codec
from .parts.codecs import PartCodec
from .parts.time_buckets import SIZES, bucket_codec

_SLOT = re.compile(r"\{([^{}]*)\}")
#: Characters up to `$` would sort between `X` and `X#...`, or next to their upper bound. `%` starts an
#: escape.
_RESERVED = frozenset(' !"$%{}')
#: The greatest character of each length in UTF-8 bytes.
_GREATEST = {1: "\x7f", 2: "\u07ff", 3: "\uffff", 4: "\U0010ffff"}

_Step = tuple[str, str, Callable[[Any], str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TemplateField:
    """A field in a template."""

    field: str
    spec: str
    codec: PartCodec


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The text of a key with fields in it; created by `Template.compile`."""

    text: str
    where: str
    parts: tuple[str | TemplateField, ...]
    fields: tuple[str, ...]
    #: The fields that may be None; an item with None in one of them has no such key.
    optional: frozenset[str]
    _steps: tuple[_Step, ...] = field(repr=False, compare=False)
    _tail: str = field(repr=False, compare=False)
    _regex: re.Pattern[str] = field(repr=False, compare=False)
    _codecs: Mapping[str, PartCodec] = field(repr=False, compare=False)

    @classmethod
    def compile(cls, text: str, annotations: Mapping[str, Any], *, where: str) -> Template:
        """Compile a template over fields of these types, or raise DeclarationError.

        >>> key = Template.compile("SECTION#{order:06d}", {"order": int}, where="Section.by_order")
        >>> key.format({"order": 7}), key.parse("SECTION#000007"), key.parse("SECTION#7")
        ('SECTION#000007', {'order': 7}, None)
        """
        parts = _split(text, annotations, where)
        _check_ends(parts, text, where)
        codecs = {part.field: part.codec for part in parts if isinstance(part, TemplateField)}
        steps: list[_Step] = []
        literal = ""
        for part in parts:
            if isinstance(part, TemplateField):
                steps.append((literal, part.field, part.codec.encode))
                literal = ""
            else:
                literal = part
        return cls(
            text=text,
            where=where,
            parts=parts,
            fields=tuple(codecs),
            optional=frozenset(name for name, codec in codecs.items() if codec.optional),
            _steps=tuple(steps),
            _tail=literal,
            _regex=re.compile("".join(map(_regex_of, parts))),
            _codecs=codecs,
        )

    def format(self, values: Mapping[str, Any]) -> str | None:
        """Return the key of these values; None when a part is None."""
        text = ""
        for literal, name, encode in self._steps:
            try:
                value = values[name]
            except KeyError:
                raise DataError(
                    f"{self.where}: {name} is missing, but {self.text!r} needs it; pass a value"
                ) from None
            if value is None:
                return None
            text += literal + encode(value)
        return text + self._tail

    def parse(self, text: str) -> dict[str, Any] | None:
        """Return the values of a key; None when the text does not match."""
        found = self._regex.fullmatch(text)
        if found is None:
            return None
        try:
            return {
                name: codec.decode(part)
                for (name, codec), part in zip(self._codecs.items(), found.groups(), strict=True)
            }
        except ValueError:
            return None

    def prefix(self, values: Mapping[str, Any]) -> str:
        """Return the text up to the first missing field.

        `values` may contain fields of other templates.
        """
        missing = self.next_field(values)
        text = ""
        for literal, name, _ in self._steps:
            text += literal
            if name == missing:
                self._check_none_after(missing, values)
                return text
            text += self.encode(name, values[name])
        return text + self._tail

    def next_field(self, values: Mapping[str, Any]) -> str | None:
        """Return the first field without a value; None when all have one."""
        return next((name for name in self.fields if name not in values), None)

    def encode(self, field: str, value: Any) -> str:
        """Return the text of one field's value in the key."""
        codec = self._codecs.get(field)
        if codec is None:
            raise DataError(
                f"{self.where}: {field} is not part of {self.text!r}; it has {_listed(self.fields)}"
            )
        if value is None:
            raise DataError(f"{self.where}: {field} is None, but {self.text!r} needs it; pass a value")
        return codec.encode(value)

    def _check_none_after(self, missing: str, values: Mapping[str, Any]) -> None:
        for name in self.fields[self.fields.index(missing) + 1 :]:
            if name in values:
                raise DataError(
                    f"{self.where}: {name} is given without {missing}, which comes before it in "
                    f"{self.text!r}; pass {missing} too, or use {name} in a filter"
                )


def ceiling(text: str) -> str:
    """Return the inclusive upper bound of `text` and every key that starts with `text#`."""
    return text + "$"


def below(text: str, longest_bytes: int = LONGEST_SORT_KEY) -> str:
    """Return the greatest string of at most `longest_bytes` UTF-8 bytes that sorts before `text`.

    >>> below("b", 3), below("a\\x00", 3)
    ('a߿', 'a')
    """
    if not text:
        raise DataError("no string sorts before the empty string; pass a bound that is not empty")
    fitting = _fitting(text, longest_bytes)
    if len(fitting) < len(text):
        return _filled(fitting, longest_bytes)
    if text[-1] == "\x00":
        return text[:-1]
    code = ord(text[-1]) - 1
    # UTF-8 has no surrogates: U+E000 comes right after U+D7FF.
    return _filled(text[:-1] + chr(0xD7FF if code == 0xDFFF else code), longest_bytes)


def above(text: str, longest_bytes: int = LONGEST_SORT_KEY) -> str | None:
    """Return the least string of at most `longest_bytes` UTF-8 bytes after `text`; None if none exists.

    >>> above("a", 3), above("abc", 3)
    ('a\\x00', 'abd')
    """
    if len(text.encode()) < longest_bytes:
        return text + "\x00"
    while text:
        start, code = text[:-1], ord(text[-1]) + 1
        if text[-1] != _GREATEST[4]:
            # A greater character may take more bytes, so check that the text still fits.
            found = start + chr(0xE000 if code == 0xD800 else code)
            if len(found.encode()) <= longest_bytes:
                return found
        text = start
    return None


def _fitting(text: str, longest_bytes: int) -> str:
    """Cut the text after the last whole character that fits."""
    return text.encode()[:longest_bytes].decode(errors="ignore")


def _filled(text: str, longest_bytes: int) -> str:
    space = longest_bytes - len(text.encode())
    return text + _GREATEST[4] * (space // 4) + _GREATEST.get(space % 4, "")


def _split(text: str, annotations: Mapping[str, Any], where: str) -> tuple[str | TemplateField, ...]:
    if not text:
        raise DeclarationError(
            f"{where}: the template is empty; write text and {{fields}}, such as ORDER#{{id}}"
        )
    parts: list[str | TemplateField] = []
    seen: set[str] = set()
    at = 0
    for found in _SLOT.finditer(text):
        if found.start() > at:
            parts.append(_literal(text[at : found.start()], text, where))
        part = _part(found[1], annotations, text, where)
        if part.field in seen:
            raise DeclarationError(f"{where}: {text!r} has {{{part.field}}} twice; remove one")
        seen.add(part.field)
        parts.append(part)
        at = found.end()
    if at < len(text):
        parts.append(_literal(text[at:], text, where))
    return tuple(parts)


def _literal(literal: str, text: str, where: str) -> str:
    for character in literal:
        if character in "{}":
            raise DeclarationError(
                f"{where}: {text!r} has a {character} outside of a {{field}}; "
                "the text of a key cannot contain braces, also not doubled ones"
            )
        if character in _RESERVED or not character.isprintable():
            raise DeclarationError(
                f'{where}: {text!r} has {character!r} between its fields; spaces, ! " $ % and control '
                "characters would break the order of keys, so use # or a letter"
            )
    return literal


def _part(slot: str, annotations: Mapping[str, Any], text: str, where: str) -> TemplateField:
    name, colon, spec = slot.partition(":")
    if not name.isidentifier() or (colon and not spec):
        raise DeclarationError(
            f"{where}: {{{slot}}} in {text!r} is not a field; write {{field}} or {{field:06d}}"
        )
    if name not in annotations:
        import difflib

        close = difflib.get_close_matches(name, annotations, n=1)
        advice = f"did you mean {close[0]}?" if close else f"the fields are {_listed(annotations)}"
        raise DeclarationError(f"{where}: {{{name}}} in {text!r} is not a field; {advice}")
    annotation = annotations[name]
    if spec in SIZES:
        return TemplateField(
            field=name, spec=spec, codec=bucket_codec(annotation, spec, where=where, field=name)
        )
    return TemplateField(field=name, spec=spec, codec=choose_codec(annotation, spec, where=where, field=name))


def _check_ends(parts: tuple[str | TemplateField, ...], text: str, where: str) -> None:
    """Reject a field without a `#` after it: its end would be unknown."""
    for part, following in pairwise(parts):
        if isinstance(part, str):
            continue
        if isinstance(following, TemplateField) or not following.startswith("#"):
            raise DeclarationError(
                f"{where}: nothing in {text!r} marks the end of {{{part.field}}}, so two items could share "
                "a key; put a # right after it"
            )


def _regex_of(part: str | TemplateField) -> str:
    if isinstance(part, str):
        return re.escape(part)
    return "([^#]*)" if part.codec.width is None else f"([^#]{{{part.codec.width}}})"


def _listed(names: Mapping[str, Any] | tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
