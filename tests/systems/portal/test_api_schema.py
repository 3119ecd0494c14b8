"""The OpenAPI document of the portal, and requests that Schemathesis makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis.generation import GenerationMode

from tests.systems.fuzzing import check_description, check_examples, fuzz, fuzzed
from tests.systems.http import Operation

from .api import DOCUMENT, OPERATIONS, Api, running

FUZZED = fuzzed(DOCUMENT)
#: Nothing about these can be unfit: no body, no parameters but an id that fits.
UNFIT = [each for each in FUZZED if each.body or each.query]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A portal for arbitrary requests."""
    with running(tmp_path_factory.mktemp("fuzzed")) as made:
        yield made


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_is_described_with_examples_and_security(operation: Operation) -> None:
    check_description(DOCUMENT, operation)


@pytest.mark.parametrize(
    "name", [n for n, each in DOCUMENT["components"]["schemas"].items() if "examples" in each]
)
def test_the_examples_fit_their_schemas(name: str) -> None:
    check_examples(DOCUMENT, name)


def test_errors_are_documented_as_envelopes() -> None:
    for name, response in DOCUMENT["components"]["responses"].items():
        [(media_type, content)] = response["content"].items()
        assert media_type == "application/json", name
        assert set(content["example"]) == {"error", "request_id"}
    assert "Problem" not in DOCUMENT["components"]["schemas"]


def ask(api: Api, operation: Any, mode: GenerationMode) -> None:
    # The user of the requests must stay an enabled Admin.
    protected = operation.path.startswith("/v1/admin/users/{user_id}")
    fuzz(
        api,
        operation,
        mode,
        role="Admin",
        known=None if protected else api.ids["acme"],
        examples=3,
        errors_as="application/json",
    )


@pytest.mark.parametrize("operation", FUZZED, ids=lambda each: each.label)
def test_requests_that_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", UNFIT, ids=lambda each: each.label)
def test_requests_that_do_not_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.NEGATIVE)
