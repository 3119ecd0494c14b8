"""The OpenAPI document: complete, with examples that are true; and requests made of it never end in a 500.

Schemathesis makes the requests, those that fit the document and those that do not. They go to the running
app as a global administrator's, so that nothing is refused before it is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

import httpx2
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, reject, seed, settings
from hypothesis import strategies as st
from schemathesis.core.result import Ok
from schemathesis.generation import GenerationMode

from solotable.systems.cms.app import create_app

from .api import OPERATIONS, Api, Operation, headers, running

DOCUMENT = create_app("sqlite://").openapi()
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
FUZZED: list[Any] = [each.ok() for each in SCHEMA.get_all_operations() if isinstance(each, Ok)]
#: Every text is a path, so nothing fails to fit the site itself.
UNFIT = [
    each for each in FUZZED if (each.body or each.query or each.path_parameters) and each.path != "/{path}"
]
CREDENTIALS = {"authorization", "x-api-key", "x-tenant-id", "host", "cookie", "content-length"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A CMS that is asked all kinds of things."""
    with running(tmp_path_factory.mktemp("fuzzed")) as made:
        yield made


def schemas_in(content: dict[str, Any]) -> Iterator[dict[str, Any]]:
    schema = content["schema"]
    yield from schema.get("anyOf", [schema])


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_is_described_with_examples_and_security(operation: Operation) -> None:
    document = operation.document
    assert document["description"]
    assert document["tags"]
    assert "security" in document
    assert bool(document["security"]) != operation.public or operation.path == "/comments"
    successes = [body for status, body in document["responses"].items() if status.startswith("2")]
    assert successes
    bodies = [document["requestBody"]] if "requestBody" in document else []
    for body in [*bodies, *successes]:
        if (content := body.get("content", {}).get("application/json")) is not None:
            assert "example" in content or all(examples_of(each) for each in schemas_in(content)), operation
    for name in operation.parameters:
        if f"{{{name}" in operation.path and name != "path":
            assert examples_of(operation.parameters[name]["schema"]), (operation, name)
    problems = {status for status in document["responses"] if status[0] in "45"}
    assert {"404", "422", "500"} <= problems
    assert operation.public or {"401", "403"} <= problems


def examples_of(schema: dict[str, Any]) -> list[Any]:
    name = schema.get("$ref", "").rpartition("/")[2]
    found = DOCUMENT["components"]["schemas"][name] if name else schema
    examples: list[Any] = found.get("examples", [])
    return examples


@pytest.mark.parametrize(
    "name", [n for n, each in DOCUMENT["components"]["schemas"].items() if "examples" in each]
)
def test_the_examples_fit_their_schemas(name: str) -> None:
    schema = {"$ref": f"#/components/schemas/{name}", "components": DOCUMENT["components"]}
    for example in DOCUMENT["components"]["schemas"][name]["examples"]:
        jsonschema_rs.Draft202012Validator(schema).validate(example)


def send(api: Api, case: Any, known: dict[str, str] | None) -> httpx2.Response:
    """Send a generated request; with `known` it is about things that are there."""
    if known is not None:
        case.path_parameters = {
            name: known.get(name, value) for name, value in (case.path_parameters or {}).items()
        }
        case.query = {name: known.get(name, value) for name, value in (case.query or {}).items()}
    kwargs = case.as_transport_kwargs(base_url="http://acme.example")
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
    try:
        answer: httpx2.Response = api.client.request(
            **kwargs, headers={**safe, "origin": "http://acme.example", **headers("GLOBAL_ADMIN", "acme")}
        )
    except httpx2.InvalidURL:  # longer than the client itself sends
        reject()
    return answer


def fuzz(api: Api, operation: Any, mode: GenerationMode, examples: int) -> None:
    # What a tenant is would be changed for all that come after.
    protected = operation.path == "/tenants/{tenant}" and operation.method == "put"

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
        answer = send(api, case, api.ids["acme"] if about and not protected else None)
        assert answer.status_code < 500, answer.text
        # The document says which answers there are; 405 and redirects of slashes are the protocol's own.
        assert str(answer.status_code) in case.operation.definition.raw[
            "responses"
        ] or answer.status_code in (
            404,
            405,
            307,
            415,
            428,
        ), answer.text
        if answer.status_code >= 400:
            assert answer.headers["content-type"] == "application/problem+json"

    asked()


def test_every_operation_is_asked() -> None:
    assert len(FUZZED) == len(OPERATIONS)


@pytest.mark.parametrize("operation", FUZZED, ids=lambda each: each.label)
def test_requests_that_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    fuzz(api, operation, GenerationMode.POSITIVE, 12)


@pytest.mark.parametrize(
    "operation",
    UNFIT,
    ids=lambda each: each.label,
)
def test_requests_that_do_not_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    fuzz(api, operation, GenerationMode.NEGATIVE, 12)
