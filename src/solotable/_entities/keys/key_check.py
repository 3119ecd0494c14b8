"""Compile a fast check that the stored primary key of an item is the one that its attributes derive.

Every item that is read runs through it, so it compares texts and encodes nothing. It may answer no for a
correct key, whose exact check is slower. Parts such as timestamps, shards and time buckets are not compared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from solotable._entities.codecs.field_codecs import Attribute
from solotable._values import Item

from .access_path import AccessPath
from .layout import KeyLayout, TemplateLayout
from .parts.codecs import ChoiceCodec, DigitsCodec, TextCodec

KeyCheck = Callable[[Item], bool]

#: Texts that a key contains as they are.
_is_plain = re.compile(r"[^\x00-%]*").fullmatch


def compile_key_check(primary: AccessPath, attributes: Mapping[str, Attribute]) -> KeyCheck | None:
    """Return the check of an entity's primary key; None if it has no template that can be compared."""
    layouts = (primary.partition, primary.sort)
    terms = [term for layout in layouts for term in _terms(layout, attributes)]
    if not terms:
        return None
    # One expression takes a quarter of the time of a loop over the parts. It is made of declared names.
    check: KeyCheck = eval(f"lambda item: {' and '.join(terms)}", {"plain": _is_plain})  # noqa: S307
    return check


def _terms(layout: KeyLayout | None, attributes: Mapping[str, Attribute]) -> list[str]:
    """Return the comparisons of a template; none for one with a part that is not compared as text."""
    if not isinstance(layout, TemplateLayout) or layout.sharding is not None or layout.bucket is not None:
        return []
    texts: list[str] = []
    terms: list[str] = []
    for part in layout.template.parts:
        if isinstance(part, str):
            texts.append(repr(part))
            continue
        attribute, codec = attributes[part.field], part.codec
        value = f"item[{attribute.wire!r}][{attribute.kind!r}]"
        if not attribute.stored:
            return []
        if attribute.kind == "S" and type(codec) in (TextCodec, ChoiceCodec):
            texts.append(f"v{len(terms)}")
            terms.append(f"((v{len(terms)} := {value}).isalnum() or plain(v{len(terms)}) is not None)")
        elif attribute.kind == "N" and type(codec) is DigitsCodec and not codec.signed:
            texts.append(f"{value}.zfill({codec.digits})")
        else:
            return []
    return [*terms, f"item[{layout.attribute!r}]['S'] == {' + '.join(texts)}"]
