"""The OpenAPI document: complete, with valid examples; requests generated from it never cause a 500."""

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
    """Surveys for generated requests."""
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


def ask(api: Api, operation: Any, mode: GenerationMode) -> None:
    # The tenant itself must stay for later requests, and a PDF of each request takes seconds.
    protected = operation.path.startswith(("/tenants/{tenant}", "/reports/{token}/report.pdf"))
    fuzz(api, operation, mode, role="GLOBAL_ADMIN", known=None if protected else api.ids["acme"])


@pytest.mark.parametrize("operation", FUZZED, ids=lambda each: each.label)
def test_requests_that_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", UNFIT, ids=lambda each: each.label)
def test_requests_that_do_not_fit_the_document_never_end_in_a_500(api: Api, operation: Any) -> None:
    ask(api, operation, GenerationMode.NEGATIVE)
