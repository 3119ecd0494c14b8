"""Key templates: `SURVEY#{survey_id}#SECTION#{order:06d}` formats and parses keys, with exact ranges.

Different values never give the same key, and keys sort like their values. `Template.compile` rejects a
template that could break this.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from itertools import pairwise
from typing import Any

from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

from .key import KeyFormat
from .parts.choose_codec import NATIVE, choose_codec
from .parts.codecs import FoldedTextCodec, NumberCodec, PartCodec, RawTextCodec
from .parts.time_buckets import SIZES, BucketCodec, bucket_codec

_SLOT = re.compile(r"\{([^{}]*)\}")
#: Characters up to `$` would sort between `X` and `X#...`, or next to their upper bound. `%` starts an
#: escape.
_RESERVED = frozenset(' !"$%{}')

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
    key_format: KeyFormat
    #: The fields whose values the key does not contain exactly: folded texts and time buckets.
    inexact: frozenset[str]
    _steps: tuple[_Step, ...] = field(repr=False, compare=False)
    _tail: str = field(repr=False, compare=False)
    _regex: re.Pattern[str] = field(repr=False, compare=False)
    _codecs: Mapping[str, PartCodec] = field(repr=False, compare=False)

    @classmethod
    def compile(
        cls,
        text: str,
        annotations: Mapping[str, Any],
        *,
        where: str,
        key_format: KeyFormat = NATIVE,
        tenant: str | None = None,
    ) -> Template:
        """Compile a template over fields of these types, or raise DeclarationError.

        `tenant` is the field whose values a format must not fold.

        >>> key = Template.compile("SECTION#{order:06d}", {"order": int}, where="Section.by_order")
        >>> key.format({"order": 7}), key.parse("SECTION#000007"), key.parse("SECTION#7")
        ('SECTION#000007', {'order': 7}, None)
        """
        parts = _split(text, annotations, where, key_format, tenant)
        _check_ends(parts, text, where, key_format)
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
            key_format=key_format,
            inexact=frozenset(name for name, codec in codecs.items() if _is_inexact(codec)),
            _steps=tuple(steps),
            _tail=literal,
            _regex=re.compile("".join(_regex_of(part, key_format) for part in parts), re.DOTALL),
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

    def codec(self, field: str) -> PartCodec:
        """Return the codec of a field, or raise DataError if the template does not have the field."""
        codec = self._codecs.get(field)
        if codec is None:
            raise DataError(
                f"{self.where}: {field} is not part of {self.text!r}; it has {_listed(self.fields)}"
            )
        return codec

    @property
    def first_literal(self) -> str:
        """The text before the first field."""
        return self.parts[0] if isinstance(self.parts[0], str) else ""

    def text_after(self, field: str) -> str:
        """Return the literal between a field and the next one, or the end."""
        at = next(n for n, part in enumerate(self.parts) if not isinstance(part, str) and part.field == field)
        following = self.parts[at + 1] if at + 1 < len(self.parts) else ""
        return following if isinstance(following, str) else ""

    def is_last(self, field: str) -> bool:
        """Return whether the key ends with a field."""
        last = self.parts[-1]
        return isinstance(last, TemplateField) and last.field == field

    def encode(self, field: str, value: Any) -> str:
        """Return the text of one field's value in the key."""
        codec = self.codec(field)
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


def field_names(text: str) -> list[str]:
    """Return the names in the braces of a template."""
    return [slot.partition(":")[0] for slot in _SLOT.findall(text)]


def _split(
    text: str, annotations: Mapping[str, Any], where: str, key_format: KeyFormat, tenant: str | None
) -> tuple[str | TemplateField, ...]:
    if not text:
        raise DeclarationError(
            f"{where}: the template is empty; write text and {{fields}}, such as ORDER#{{id}}"
        )
    parts: list[str | TemplateField] = []
    seen: set[str] = set()
    at = 0
    for found in _SLOT.finditer(text):
        if found.start() > at:
            parts.append(_literal(text[at : found.start()], text, where, key_format))
        part = _part(found[1], annotations, text, where, key_format)
        if part.field == tenant and isinstance(part.codec, RawTextCodec | FoldedTextCodec):
            part = replace(part, codec=replace(part.codec, folds=False))
        if part.field in seen:
            raise DeclarationError(f"{where}: {text!r} has {{{part.field}}} twice; remove one")
        seen.add(part.field)
        parts.append(part)
        at = found.end()
    if at < len(text):
        parts.append(_literal(text[at:], text, where, key_format))
    return tuple(parts)


def _literal(literal: str, text: str, where: str, key_format: KeyFormat) -> str:
    for character in literal:
        if character in "{}":
            raise DeclarationError(
                f"{where}: {text!r} has a {character} outside of a {{field}}; "
                "the text of a key cannot contain braces, also not doubled ones"
            )
        if not character.isprintable() or (key_format.escape and character in _RESERVED):
            raise DeclarationError(
                f'{where}: {text!r} has {character!r} between its fields; spaces, ! " $ % and control '
                "characters would break the order of keys, so use # or a letter, or the format of another "
                "program: KeyFormat(escape=False)"
            )
    return key_format.fold(literal)


def _part(
    slot: str, annotations: Mapping[str, Any], text: str, where: str, key_format: KeyFormat
) -> TemplateField:
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
    codec = choose_codec(annotation, spec, where=where, field=name, key_format=key_format)
    return TemplateField(field=name, spec=spec, codec=codec)


def _check_ends(parts: tuple[str | TemplateField, ...], text: str, where: str, key_format: KeyFormat) -> None:
    """Reject a field without a delimiter after it, unless its end is known all the same."""
    delimiter = key_format.delimiter
    for part, following in pairwise(parts):
        if isinstance(part, str):
            continue
        is_delimiter = isinstance(following, str) and following.startswith(delimiter)
        if is_delimiter and (part.codec.kind != "number" or "-" not in delimiter):
            continue
        if not key_format.escape and _has_known_end(part.codec, following):
            continue
        raise DeclarationError(
            f"{where}: nothing in {text!r} marks the end of {{{part.field}}}, so two items could share "
            f"a key; put a {delimiter} right after it"
        )


def _has_known_end(codec: PartCodec, following: str | TemplateField) -> bool:
    """Return whether a value ends where the next part starts, without a delimiter between them."""
    if codec.width is not None:
        return True
    if not isinstance(following, str):
        return False
    if codec.kind == "number":
        return following[0] not in "-0123456789"
    if codec.kind == "hex":
        return not following[0].isalnum()
    return codec.choices is not None and not any(following[0] in text for text in codec.choices)


def _is_inexact(codec: PartCodec) -> bool:
    return isinstance(codec, FoldedTextCodec | BucketCodec) or (
        isinstance(codec, RawTextCodec) and codec.fold is not None
    )


def _regex_of(part: str | TemplateField, key_format: KeyFormat) -> str:
    if isinstance(part, str):
        return re.escape(part)
    if part.codec.width is not None:
        return f"(.{{{part.codec.width}}})"
    if isinstance(part.codec, NumberCodec):
        return "(-?[0-9]+)"
    if part.codec.choices is not None:
        return f"({'|'.join(map(re.escape, sorted(part.codec.choices, key=len, reverse=True)))})"
    return f"((?:(?!{re.escape(key_format.delimiter)}).)*)"


def _listed(names: Mapping[str, Any] | tuple[str, ...]) -> str:
    return ", ".join(names) or "none"
