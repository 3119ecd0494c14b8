"""Texts that people type: control characters are removed, lines and tabs stay (C4.14)."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

from solotable.systems.texts import clean_line, clean_value

# The cleaning comes last here: Pydantic runs it first, and checks the length of its result without Python. So
# limits apply to the cleaned text, and errors count its characters.
#: S4.41
Title = Annotated[str, Field(min_length=1, max_length=200), BeforeValidator(clean_line)]
Address = Annotated[str, Field(max_length=500), BeforeValidator(clean_value)]
ClientName = Annotated[str, Field(max_length=100), BeforeValidator(clean_line)]
Name = Annotated[str, Field(min_length=1, max_length=100), BeforeValidator(clean_line)]
Notes = Annotated[str, Field(max_length=5000), BeforeValidator(clean_value)]
ShortText = Annotated[str, Field(max_length=200), BeforeValidator(clean_line)]
PhraseText = Annotated[str, Field(max_length=5000), BeforeValidator(clean_value)]
