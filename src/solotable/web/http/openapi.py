"""Problems, credentials and the tenant header in an app's OpenAPI document."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from solotable.web.auth.dependencies import CREDENTIAL, TENANT

from .problems import MEDIA_TYPE

_SCHEMA = {
    "title": "Problem",
    "type": "object",
    "description": "A problem as in RFC 9457.",
    "required": ["type", "title", "status", "detail", "instance", "request_id"],
    "properties": {
        "type": {"type": "string", "description": "The problem type; compare this, not the texts."},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
        "instance": {"type": "string", "description": "The path of the request."},
        "request_id": {"type": "string", "description": "The id of the request in the server's log."},
        "field": {"type": "string", "description": "The field whose value another item has."},
        "current_version": {"type": "integer", "description": "The stored version."},
        "errors": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["where", "why"],
                "properties": {
                    "where": {"type": "array", "items": {"type": "string"}},
                    "why": {"type": "string"},
                },
            },
        },
    },
}
#: Status, the end of its type, title, detail.
_EXAMPLES = {
    400: ("cursor-rejected", "Cursor rejected", "The cursor does not belong to this list, or has expired."),
    401: ("unauthorized", "Unauthorized", "Send a credential: x-api-key, or Authorization: Bearer."),
    403: ("forbidden", "Forbidden", "The credential does not reach that tenant."),
    404: ("not-found", "Not found", "The item does not exist."),
    409: ("already-exists", "Already exists", "The item exists already."),
    412: ("version-conflict", "Version conflict", "Another request changed the item first; read it again."),
    413: ("content-too-large", "Content Too Large", "The body is larger than 1000000 bytes."),
    422: ("invalid", "Invalid data", "body.name: Field required"),
    429: ("throttled", "Too many requests", "Too many requests at once; try again later."),
    500: ("internal", "Internal error", "An unexpected error; the server's log has it under the request id."),
    503: ("unavailable", "Temporarily unavailable", "The database did not answer; try again later."),
    507: ("storage-full", "Storage full", "The storage has no space left for the change."),
}
_ALWAYS = (400, 404, 422, 429, 500, 503)
_SECURED = (401, 403)
_WRITES = (409, 412, 413, 507)
_SCHEMES = {
    "Token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT", "description": "A JSON Web Token."},
    "ApiKey": {"type": "apiKey", "in": "header", "name": "x-api-key", "description": "An API key."},
}
_TENANT_HEADER = {
    "name": "x-tenant-id",
    "in": "header",
    "required": False,
    "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    "description": "The tenant of the request, one that the credential reaches. "
    "Needed when the credential reaches several.",
    "example": "acme",
}
_METHODS = frozenset({"get", "put", "post", "delete", "patch", "head", "options"})


def document_problems(app: FastAPI) -> None:
    """Add the problems of each operation to an app's OpenAPI document."""
    make = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = add_problems(make())
        return app.openapi_schema

    # FastAPI documents this as the way to change the document.
    app.openapi = openapi  # type: ignore[method-assign]


def add_problems(document: dict[str, Any]) -> dict[str, Any]:
    """Add the problems to a document and return it."""
    components = document.setdefault("components", {})
    components.setdefault("schemas", {})["Problem"] = _SCHEMA
    components["responses"] = components.get("responses", {}) | {
        f"Problem{status}": _response(status) for status in _EXAMPLES
    }
    schemes = components.get("securitySchemes", {})
    if any([schemes.pop(marker, None) for marker in (CREDENTIAL, TENANT)]):  # noqa: C419  # pop every marker
        schemes.update(_SCHEMES)
    for path in document.get("paths", {}).values():
        for method, operation in path.items():
            if method in _METHODS:
                _replace_markers(operation)
                _add_responses(method, operation)
    for unused in ("HTTPValidationError", "ValidationError"):
        components["schemas"].pop(unused, None)
    return document


def _replace_markers(operation: dict[str, Any]) -> None:
    """Replace the markers of credential dependencies by security schemes and the tenant header."""
    needs = {name for requirement in operation.get("security", ()) for name in requirement}
    if needs.isdisjoint((CREDENTIAL, TENANT)):
        return
    others = [each for each in operation["security"] if each.keys().isdisjoint((CREDENTIAL, TENANT))]
    operation["security"] = [*others, *({name: []} for name in _SCHEMES)]
    if TENANT in needs:
        operation.setdefault("parameters", []).append(_TENANT_HEADER)


def _add_responses(method: str, operation: dict[str, Any]) -> None:
    statuses = {*_ALWAYS, *(_SECURED if operation.get("security") else ())}
    if method not in ("get", "head", "options"):
        statuses.update(_WRITES)
    responses = operation.setdefault("responses", {})
    for status in sorted(statuses):
        known = responses.get(str(status))
        if known is None or _is_from_fastapi(known):
            responses[str(status)] = {"$ref": f"#/components/responses/Problem{status}"}


def _is_from_fastapi(response: dict[str, Any]) -> bool:
    schema = response.get("content", {}).get("application/json", {}).get("schema", {})
    return bool(schema.get("$ref") == "#/components/schemas/HTTPValidationError")


def _response(status: int) -> dict[str, Any]:
    slug, title, detail = _EXAMPLES[status]
    example = {
        "type": f"urn:problem:solotable:{slug}",
        "title": title,
        "status": status,
        "detail": detail,
        "instance": "/things/t1",
        "request_id": "01JD0QK7V3M8Z6X2T9R4C5B1AE",
    }
    content = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}, "example": example}}
    return {"description": title, "content": content}
