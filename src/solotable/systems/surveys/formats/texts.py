"""Texts that people type: control characters are removed, lines and tabs stay (C4.14)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from solotable.systems.texts import clean_line, clean_value

#: S4.41
Title = Annotated[str, BeforeValidator(clean_line), Field(min_length=1, max_length=200)]
Address = Annotated[str, BeforeValidator(clean_value), Field(max_length=500)]
ClientName = Annotated[str, BeforeValidator(clean_line), Field(max_length=100)]
Name = Annotated[str, BeforeValidator(clean_line), Field(min_length=1, max_length=100)]
Notes = Annotated[str, BeforeValidator(clean_value), Field(max_length=5000)]
ShortText = Annotated[str, BeforeValidator(clean_line), Field(max_length=200)]
PhraseText = Annotated[str, BeforeValidator(clean_value), Field(max_length=5000)]
