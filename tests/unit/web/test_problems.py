"""Every error has a problem type: the right status, and no internals in the body."""

from __future__ import annotations

from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient
from pydantic import BaseModel

from solotable import errors
from solotable.web import ProblemType, install
from solotable.web.http.problems import PROBLEM_TYPES, problem_type_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SECRET = "internal-detail-4711"

#: One of each error, and its status; add a new error here and to PROBLEM_TYPES.
CASES: list[tuple[errors.SolotableError, int]] = [
    (errors.SolotableError(SECRET), 500),
    (errors.DeclarationError(SECRET), 500),
    (errors.DataError(SECRET), 422),
    (errors.ItemTooLarge("Thing has 500 KB.", size=500_000, largest=[(SECRET, 1)]), 422),
    (errors.DamagedBackup(SECRET, file=SECRET), 500),
    (errors.DamagedExport(SECRET, file=SECRET), 500),
    (errors.StoredDataError(SECRET), 500),
    (errors.NewerSchemaVersion(SECRET, schema_version=3, known=2), 500),
    (errors.UnknownEntity(SECRET, tag=SECRET, item={}), 500),
    (errors.SubjectForgotten(SECRET, tenant=SECRET, subject=SECRET, forgotten_at=NOW), 409),
    (errors.NotFound(SECRET), 404),
    (errors.NotUnique(SECRET, field="email", value=SECRET, holder={"id": SECRET}), 409),
    (errors.FeedTrimmed(SECRET, consumer=SECRET, since=NOW), 500),
    (errors.LeaseHeld(SECRET, name=SECRET, owner=SECRET, until=NOW), 409),
    (errors.LeaseLost(SECRET, name=SECRET, token=1), 409),
    (errors.MigrationError(SECRET), 500),
    (errors.MappingRejected(SECRET, problems=[SECRET]), 500),
    (errors.MigrationConflict(SECRET), 409),
    (errors.MigrationNotReady(SECRET, reasons=[SECRET]), 409),
    (errors.SwitchTimedOut(SECRET), 503),
    (errors.WritesPaused(SECRET, seconds=30.0), 503),
    (errors.SyncUnavailable(SECRET), 503),
    (errors.TenantViolation(SECRET), 403),
    (errors.CursorRejected(SECRET), 400),
    (errors.BatchIncomplete(SECRET, leftovers=[SECRET]), 503),
    (errors.EngineError(SECRET), 500),
    (errors.NotOurFile(SECRET), 500),
    (errors.ReadOnly(SECRET), 503),
    (errors.StorageFull(SECRET), 507),
    (errors.FileLocked(SECRET, holder=4711), 503),
    (errors.FileReplaced(SECRET), 500),
    (errors.Corrupt(SECRET), 500),
    (errors.RecoveryError(SECRET), 500),
    (errors.HeatUnavailable(SECRET), 500),
    (errors.NotConfigured(SECRET), 500),
    (errors.TransportError(SECRET), 503),
    (errors.OutcomeUnknown(SECRET), 503),
    (errors.ServiceError("ValidationException", SECRET), 500),
    (errors.ConditionFailed(SECRET, item={"PK": {"S": SECRET}}), 409),
    (errors.AlreadyExists(SECRET, item={"PK": {"S": SECRET}}), 409),
    (errors.TooManyConflicts(SECRET, item=None, attempts=20), 409),
    (errors.VersionConflict(SECRET, item=None, mine=SECRET, theirs=SECRET), 409),
    (errors.TransactionCancelled([{"Code": "ConditionalCheckFailed"}]), 409),
    (errors.TransactionFailed(SECRET, reasons=[{"Code": "ConditionalCheckFailed"}], failures=[]), 409),
    (errors.TableNotFound(SECRET), 500),
    (errors.Throttled("ThrottlingException", SECRET), 429),
]


class Body(BaseModel):
    """A request body."""

    name: str
    card: int


def every_error() -> set[type[Exception]]:
    found = {value for value in vars(errors).values() if isinstance(value, type)}
    return {each for each in found if issubclass(each, errors.SolotableError)}


def ask(error: Exception, headers: dict[str, str] | None = None, **settings: Any) -> Any:
    app = FastAPI()
    install(app, **settings)

    @app.get("/fails")
    async def fails() -> None:
        raise error

    with TestClient(app) as http:
        return http.get("/fails", headers=headers)


def test_every_error_has_a_problem_type_and_a_case() -> None:
    assert set(PROBLEM_TYPES) == every_error()
    assert {type(error) for error, _ in CASES} == every_error()


@pytest.mark.parametrize(("error", "status"), CASES, ids=lambda each: type(each).__name__)
def test_an_error_is_a_problem(error: errors.SolotableError, status: int) -> None:
    answer = ask(error)
    body = answer.json()
    assert answer.status_code == body["status"] == status
    assert answer.headers["content-type"] == "application/problem+json"
    assert set(body) >= {"type", "title", "status", "detail", "instance", "request_id"}
    assert body["type"] == "urn:problem:solotable:" + problem_type_of(error).slug
    assert body["instance"] == "/fails"
    assert body["request_id"] == answer.headers["x-request-id"]
    assert SECRET not in answer.text
    assert "Traceback" not in answer.text


def test_temporary_errors_have_a_retry_after() -> None:
    for error in (errors.Throttled("ThrottlingException", "x"), errors.TransportError("x")):
        assert ask(error).headers["retry-after"] == "1"
    # The write may have been done, so the client must read first.
    assert "retry-after" not in ask(errors.OutcomeUnknown("x")).headers


def test_a_version_conflict_is_412_for_a_request_with_if_match() -> None:
    conflict = errors.VersionConflict("x", item=None, mine=None, theirs=None)
    assert ask(conflict).status_code == 409
    assert ask(conflict, {"if-match": '"3"'}).status_code == 412
    # Only version conflicts: a taken name is a 409 with If-Match too.
    assert ask(errors.AlreadyExists("x"), {"if-match": '"3"'}).status_code == 409


def _failed(error: errors.SolotableError) -> errors.TransactionFailed:
    reasons = [{"Code": "ConditionalCheckFailed"}]
    return errors.TransactionFailed("x", reasons=reasons, failures=[SimpleNamespace(error=error)])


def test_a_transaction_fails_as_its_first_failure_does() -> None:
    taken = errors.NotUnique("x", field="email", value="v", holder=None)
    answer = ask(_failed(taken))
    assert (answer.status_code, answer.json()["field"]) == (409, "email")
    assert ask(_failed(errors.NotFound("x"))).status_code == 404
    conflict = errors.VersionConflict("x", item=None, mine=None, theirs=None)
    assert ask(_failed(conflict), {"if-match": '"1"'}).status_code == 412


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("ConditionalCheckFailed", 409),
        ("TransactionConflict", 409),
        ("ProvisionedThroughputExceeded", 429),
        ("ThrottlingError", 429),
        ("ValidationError", 500),
    ],
)
def test_a_cancelled_transaction_has_the_status_of_its_reasons(code: str, status: int) -> None:
    assert ask(errors.TransactionCancelled([{"Code": "None"}, {"Code": code}])).status_code == status


def test_a_service_error_that_will_pass_is_503() -> None:
    assert ask(errors.ServiceError("InternalServerError", "x", status=500)).status_code == 503


def test_an_unexpected_error_is_500_without_internals(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(RuntimeError(SECRET))
    assert answer.status_code == 500
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert SECRET not in answer.text
    # The log has it, under the request id of the response.
    assert SECRET in caplog.text
    assert answer.json()["request_id"] in caplog.text


def test_http_errors_are_problems() -> None:
    answer = ask(HTTPException(418, "No coffee.", headers={"x-tea": "yes"}))
    assert (answer.status_code, answer.json()["detail"]) == (418, "No coffee.")
    assert answer.headers["x-tea"] == "yes"
    assert ask(HTTPException(403, {"a": SECRET})).json()["detail"] == "Forbidden."
    assert ask(HTTPException(599, "x")).json()["title"] == "Error"
    assert ask(HTTPException(304)).content == b""


def test_a_path_that_is_not_there_and_a_method_that_is_not_allowed_are_problems() -> None:
    app = FastAPI()
    install(app)

    @app.get("/there")
    async def there() -> None: ...

    with TestClient(app) as http:
        for answer, status in ((http.get("/n\u00f6 pe"), 404), (http.delete("/there"), 405)):
            assert answer.status_code == answer.json()["status"] == status
        assert http.get("/n\u00f6 pe").json()["instance"] == "/n%C3%B6%20pe"


def test_invalid_input_is_located_and_not_repeated() -> None:
    app = FastAPI()
    install(app)

    @app.post("/bodies")
    async def post(body: Body) -> None: ...

    @app.get("/inside")
    async def inside() -> None:
        Body.model_validate({"name": "x", "card": SECRET})

    with TestClient(app) as http:
        for answer in (http.post("/bodies", json={"name": "x", "card": SECRET}), http.get("/inside")):
            assert answer.status_code == 422
            assert answer.headers["content-type"] == "application/problem+json"
            assert answer.json()["errors"][0]["where"][-1] == "card"
            assert SECRET not in answer.text
        for broken in (b"{", b"\xff", b"[" * 50_000, b'{"name": "\\ud800", "card": 1e999}'):
            answer = http.post("/bodies", content=broken, headers={"content-type": "application/json"})
            assert answer.status_code in (400, 422)
            assert answer.json()["status"] == answer.status_code
        answer = http.post("/bodies", content=b'{"name": ', headers={"content-type": "application/json"})
        assert answer.json()["detail"] == "body: not valid JSON: Expecting value (character 9)"
        assert [each["where"] for each in answer.json()["errors"]] == [["body"]]


def test_errors_of_an_app_can_be_kinds_too() -> None:
    class Closed(Exception):
        """An error of an app."""

    kind = ProblemType(status=423, slug="closed", title="Closed", detail="The shop is closed.")
    answer = ask(Closed(SECRET), problems={Closed: kind})
    assert (answer.status_code, answer.json()["detail"]) == (423, "The shop is closed.")
    gone = ProblemType(status=410, slug="gone", title="Gone", detail="Gone.")
    assert ask(errors.NotFound("x"), problems={errors.NotFound: gone}).status_code == 410


def test_texts_that_json_cannot_hold_do_no_harm() -> None:
    assert ask(errors.DataError("x", public_message="lone \ud800 half")).status_code == 422
    assert len(ask(errors.DataError("x", public_message="x" * 100_000)).json()["detail"]) == 500


def test_bad_data_names_the_field_and_never_the_value() -> None:
    shown = ask(errors.DataError(f"Thing.name = {SECRET!r} is wrong.", public_message="Thing.name is wrong."))
    assert shown.json()["detail"] == "Thing.name is wrong."
    assert ask(errors.DataError(SECRET)).json()["detail"] == "The data cannot be stored."
    assert (
        ask(_failed(errors.DataError(SECRET, public_message="Thing.name."))).json()["detail"] == "Thing.name."
    )


def test_stored_data_that_does_not_fit_is_a_500(caplog: pytest.LogCaptureFixture) -> None:
    answer = ask(errors.StoredDataError(f"The stored Thing does not fit: {SECRET}", public_message=SECRET))
    assert (answer.status_code, answer.json()["type"]) == (500, "urn:problem:solotable:internal")
    assert SECRET not in answer.text
    assert SECRET in caplog.text
    assert answer.json()["request_id"] in caplog.text


def test_types_are_the_same_on_every_python() -> None:
    # RFC 9110's names; Python 3.11 and 3.12 have those before it.
    for status, slug in ((413, "content-too-large"), (422, "unprocessable-content")):
        assert ask(HTTPException(status, "x")).json()["type"] == f"urn:problem:solotable:{slug}"


def test_the_instance_is_the_path_as_it_was_asked_for() -> None:
    app = FastAPI()
    install(app)
    with TestClient(app) as http:
        for asked in ("/a%23b", "/a%3Fb", "/a%5Cb"):
            assert http.get(asked).json()["instance"] == asked
