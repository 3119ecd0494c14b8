"""Examples of bodies in an app's OpenAPI document, by the names of their schemas."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fastapi import FastAPI

_REQUEST_ID = "01JD0QK7V3M8Z6X2T9R4C5B1AE"


def add_examples(
    app: FastAPI,
    examples: Mapping[str, Any],
    more: Callable[[dict[str, Any]], None] = lambda document: None,
) -> None:
    """Add examples to an app's document; pages and envelopes have those of what they hold.

    `more` changes the document too.
    """
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


def with_example(example: Any, status: int = 200) -> dict[str, Any]:
    """Return the arguments for a route whose body has no named schema: a list, or free JSON."""
    return {"responses": {status: {"content": {"application/json": {"example": example}}}}}


def _example(name: str, examples: Mapping[str, Any]) -> Any:
    plain = name.removesuffix("-Input").removesuffix("-Output")
    if plain.startswith("Envelope_"):
        data = _example(plain.removeprefix("Envelope_").removesuffix("_"), examples)
        return None if data is None else {"data": data, "request_id": _REQUEST_ID}
    if plain.startswith("Page_"):
        row = examples.get(plain.removeprefix("Page_").removesuffix("_"))
        return None if row is None else {"items": [row], "next_cursor": None}
    return examples.get(plain)
