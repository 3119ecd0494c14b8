"""The OpenAPI document has credentials, the tenant header, and every problem."""

from __future__ import annotations

from typing import Any

import pytest

from solotable.web.http import problems

from . import app as shop


@pytest.fixture(scope="module")
def document() -> dict[str, Any]:
    return shop.make().openapi()


def test_operations_that_need_a_credential_say_so(document: dict[str, Any]) -> None:
    assert set(document["components"]["securitySchemes"]) == {"Token", "ApiKey"}
    pair: list[dict[str, list[str]]] = [{"Token": []}, {"ApiKey": []}]
    for path, method in (("/things", "post"), ("/things", "get"), ("/me", "get")):
        assert document["paths"][path][method]["security"] == pair
    for path in ("/public/{thing_id}", "/visitor"):
        assert "security" not in document["paths"][path]["get"]


def test_the_header_that_chooses_a_tenant_is_described_where_it_counts(document: dict[str, Any]) -> None:
    def names(path: str, method: str) -> list[str]:
        return [each["name"] for each in document["paths"][path][method].get("parameters", ())]

    assert names("/things", "get") == ["limit", "cursor", "x-tenant-id"]
    assert names("/things/{thing_id}", "put") == ["thing_id", "if-match", "x-tenant-id"]
    assert names("/me", "get") == []
    assert names("/public/{thing_id}", "get") == ["thing_id"]


def test_every_operation_describes_its_problems_with_an_example(document: dict[str, Any]) -> None:
    for path in document["paths"].values():
        for method, operation in path.items():
            statuses = set(operation["responses"])
            assert {"400", "404", "422", "429", "500", "503"} <= statuses
            assert ({"401", "403"} <= statuses) == ("security" in operation)
            assert ({"409", "412", "413"} <= statuses) == (method != "get")
            for status in statuses - {"200", "201"}:
                reference = operation["responses"][status]["$ref"].rsplit("/", 1)[1]
                described = document["components"]["responses"][reference]
                (media,) = described["content"]
                assert media == problems.MEDIA_TYPE
                assert described["content"][media]["example"]["status"] == int(status)


def test_no_reference_leads_nowhere(document: dict[str, Any]) -> None:
    def references(node: Any) -> list[str]:
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [each for value in node.values() for each in references(value)]
        return [each for value in node for each in references(value)] if isinstance(node, list) else []

    for reference in references(document):
        found: Any = document
        for part in reference.removeprefix("#/").split("/"):
            found = found[part]
    assert "HTTPValidationError" not in str(document)


def test_every_status_of_a_kind_is_described(document: dict[str, Any]) -> None:
    described = set(document["components"]["responses"])
    assert {f"Problem{kind.status}" for kind in problems.PROBLEM_TYPES.values()} <= described


def test_a_page_of_things_is_described(document: dict[str, Any]) -> None:
    schema = document["components"]["schemas"]["Page_Thing_"]
    assert set(schema["properties"]) == {"items", "next_cursor"}


def test_the_document_is_made_once() -> None:
    app = shop.make()
    assert app.openapi() is app.openapi()
