"""The OpenAPI document of the community, and requests that Schemathesis makes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from schemathesis.generation import GenerationMode

from tests.systems.fuzzing import check_description, check_examples, fuzz, fuzzed
from tests.systems.http import Operation

from .api import DOCUMENT, OPERATIONS, Api, running

FUZZED = fuzzed(DOCUMENT)
#: Nothing about the others can be unfit: no body, no parameters but an id that fits.
UNFIT = [each for each in FUZZED if each.body or each.query]
#: Schemas of anything, which have no example.
FREE = {"dict", "list"}


@pytest.fixture(scope="module")
def api(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    """A community for arbitrary requests."""
    with running(tmp_path_factory.mktemp("fuzzed")) as made:
        made.app.state.recovery.enable_backups()
        yield made


@pytest.fixture(scope="module")
def known(api: Api) -> dict[str, str]:
    return api.cast().ids


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
        assert set(content["example"]) == {"error", "meta"}
        assert set(content["example"]["error"]) == {"code", "message", "details"}
    assert "Problem" not in DOCUMENT["components"]["schemas"]


def ask(api: Api, known: dict[str, str], operation: Any, mode: GenerationMode) -> None:
    roles = operation.definition.raw["x-roles"]
    # The user of the requests must keep their account and their session.
    is_final = operation.method.upper() == "DELETE" or operation.path in ("/auth/logout", "/api/user")
    role = {"operator": "operator", "owner": "owner"}.get(roles[0] if roles else "", "creator")
    fuzz(
        api,
        operation,
        mode,
        role="leaving" if is_final and role == "creator" else role,
        known=None if is_final else known,
        examples=2,
        errors_as="application/json",
    )


@pytest.mark.parametrize("operation", FUZZED, ids=lambda each: each.label)
def test_requests_that_fit_the_document_never_end_in_a_500(
    api: Api, known: dict[str, str], operation: Any
) -> None:
    ask(api, known, operation, GenerationMode.POSITIVE)


@pytest.mark.parametrize("operation", UNFIT, ids=lambda each: each.label)
def test_requests_that_do_not_fit_the_document_never_end_in_a_500(
    api: Api, known: dict[str, str], operation: Any
) -> None:
    ask(api, known, operation, GenerationMode.NEGATIVE)
