"""The OpenAPI document: complete, with examples that are true; and requests made of it never end in a 500."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis.generation import GenerationMode

from tests.systems.fuzzing import check_description, check_examples, fuzz, fuzzed
from tests.systems.http import Operation

from .api import DOCUMENT, OPERATIONS, Api, running

FUZZED = fuzzed(DOCUMENT)
UNFIT = [each for each in FUZZED if each.body or each.query or each.path_parameters]


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A limiter that is asked all kinds of things."""
    with running(tmp_path_factory.mktemp("fuzzed")) as made:
        yield made


@pytest.mark.parametrize("operation", OPERATIONS, ids=str)
def test_every_operation_is_described_with_examples_and_security(operation: Operation) -> None:
    check_description(DOCUMENT, operation)
    assert bool(operation.document["security"]) != operation.public


@pytest.mark.parametrize(
    "name", [n for n, each in DOCUMENT["components"]["schemas"].items() if "examples" in each]
)
def test_the_examples_fit_their_schemas(name: str) -> None:
    check_examples(DOCUMENT, name)


def ask(api: Api, operation: Any, mode: GenerationMode) -> None:
    # A namespace that is deleted would answer nothing to all that come after.
    protected = operation.path.startswith("/namespaces/{name}")
    fuzz(api, operation, mode, role="GLOBAL_OPERATOR", known=None if protected else api.ids["acme"])


def test_every_operation_is_asked() -> None:
    assert len(FUZZED) == len(OPERATIONS)


@pytest.mark.parametrize("operation", FUZZED, ids=lambda each: each.label)
def test_requests_that_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", UNFIT, ids=lambda each: each.label)
def test_requests_that_do_not_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.NEGATIVE)
