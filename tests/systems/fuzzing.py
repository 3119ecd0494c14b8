"""Requests that Schemathesis makes of an OpenAPI document, sent to a running app; and what it must have."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema_rs
import schemathesis
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from .http import Api, Operation

CREDENTIALS = {"authorization", "x-api-key", "x-tenant-id", "host", "cookie", "content-length"}
#: Of the protocol, or of a header that a route needs.
UNDOCUMENTED = (404, 405, 307, 415, 428)
#: A longer address is refused by the client itself, once its characters are escaped.
_LONGEST = 5_000


def fuzzed(document: dict[str, Any]) -> list[Any]:
    """Return the operations of a document as Schemathesis has them."""
    schema = schemathesis.openapi.from_dict(document)
    return [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]


def fuzz(
    api: Api,
    operation: Any,
    mode: GenerationMode,
    *,
    role: str,
    known: Mapping[str, str] | None,
    base_url: str = "http://acme.example",
    examples: int = 6,
    errors_as: str = "application/problem+json",
) -> None:
    """Send requests that fit the document, or do not; with `known` half of them are about what is there."""

    @seed(20261115)
    @settings(
        max_examples=examples,
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate],
    )
    @given(case=operation.as_strategy(generation_mode=mode), about=st.booleans())
    def asked(case: Any, about: bool) -> None:
        answer = _sent(api, case, known if about else None, role, base_url)
        assert answer.status_code < 500, answer.text
        documented = case.operation.definition.raw["responses"]
        assert str(answer.status_code) in documented or answer.status_code in UNDOCUMENTED, answer.text
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == errors_as

    asked()


def _sent(api: Api, case: Any, known: Mapping[str, str] | None, role: str, base_url: str) -> httpx2.Response:
    if known is not None:
        case.path_parameters = {
            name: known.get(name, value) for name, value in (case.path_parameters or {}).items()
        }
        case.query = {name: known.get(name, value) for name, value in (case.query or {}).items()}
    kwargs = case.as_transport_kwargs(base_url=base_url)
    kwargs.pop("cookies", None)
    given_headers = {
        name: value for name, value in kwargs.pop("headers").items() if name.lower() not in CREDENTIALS
    }
    # As a client on the wire would send it: headers are Latin-1, and no line ends in the middle.
    safe = {
        name: quote(str(value), safe=" \"'*/,;=:?%()<>@[]{}|!#$&+~^`-._\\")
        for name, value in given_headers.items()
        if name.isascii()
    }
    data = kwargs.pop("data", None)
    if isinstance(data, bytes):
        kwargs["content"] = data
    if len(kwargs["url"]) + len(str(kwargs.get("params", ""))) > _LONGEST:
        reject()
    return api.client.request(**kwargs, headers={**safe, **api.headers_of(role, "acme")})


def check_description(document: Mapping[str, Any], operation: Operation) -> None:
    """Fail unless an operation is described, with examples of its bodies and parameters and its problems."""
    described = operation.document
    assert described["description"]
    assert described["tags"]
    assert "security" in described
    successes = [body for status, body in described["responses"].items() if status[0] in "23"]
    assert successes
    bodies = [described["requestBody"]] if "requestBody" in described else []
    for body in [*bodies, *successes]:
        if (content := body.get("content", {}).get("application/json")) is not None:
            assert "example" in content or all(
                examples_of(document, each) for each in _schemas_in(content)
            ), operation
    for name in operation.parameters:
        if f"{{{name}" in operation.path and name != "path":
            assert examples_of(document, operation.parameters[name]["schema"]), (operation, name)
    problems = {status for status in described["responses"] if status[0] in "45"}
    assert {"404", "422", "500"} <= problems
    assert operation.public or {"401", "403"} <= problems


def _schemas_in(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schema = content["schema"]
    yield from (each for each in schema.get("anyOf", [schema]) if each.get("type") != "null")


def examples_of(document: Mapping[str, Any], schema: Mapping[str, Any]) -> list[Any]:
    """Return the examples of a schema; those of a page are of its rows, where it has none itself."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found = document["components"]["schemas"][name] if name else schema
    if "examples" not in found and name.startswith("Page_"):
        return examples_of(document, found["properties"]["items"]["items"])
    examples: list[Any] = found.get("examples", [])
    return examples


def check_examples(document: Mapping[str, Any], name: str) -> None:
    """Fail unless the examples of a schema fit it."""
    schema = {"$ref": f"#/components/schemas/{name}", "components": document["components"]}
    for example in document["components"]["schemas"][name]["examples"]:
        jsonschema_rs.Draft202012Validator(schema).validate(example)
