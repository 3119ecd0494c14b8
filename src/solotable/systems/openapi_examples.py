"""Examples of bodies in an app's OpenAPI document, by the names of their schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI


def add_examples(
    app: FastAPI,
    examples: Mapping[str, Any],
    more: Callable[[dict[str, Any]], None] = lambda document: None,
) -> None:
    """Add examples to an app's document; a page of a list has its row's. `more` changes the document too."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        document = make()
        for name, schema in document["components"]["schemas"].items():
            example = _example(name, examples)
            if example is not None:
                schema["examples"] = [example]
        more(document)
        return document

    # FastAPI documents this as the way to change the document.
    app.openapi = openapi  # type: ignore[method-assign]


def _example(name: str, examples: Mapping[str, Any]) -> Any:
    plain = name.removesuffix("-Input").removesuffix("-Output")
    if plain.startswith("Page_"):
        row = examples.get(plain.removeprefix("Page_").removesuffix("_"))
        return None if row is None else {"items": [row], "next_cursor": None}
    return examples.get(plain)
