"""The jobs as a Lambda function: by a schedule, by stream events, after an error; and its template."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from solotable import connect
from solotable.cli.limiter.template import STREAM_ACTIONS, TABLE_ACTIONS, build_template
from solotable.errors import NotConfigured, TransportError
from solotable.observe import Observation
from solotable.systems.limiter import Bucket, Limit, Limiter, limiter
from solotable.systems.limiter.usage import lambda_handler

SCHEDULED = {"source": "aws.events", "detail-type": "Scheduled Event", "detail": {}}


@pytest.fixture
def url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    found = f"sqlite:///{tmp_path / 'l.db'}"
    monkeypatch.setenv("SOLOTABLE_URL", found)
    with connect(found, limiter) as db:
        ours = Limiter(db)
        ours.set_limits([Limit("rpm", 100, 100, 86_400)])
        for _ in range(3):
            with ours.acquire("ann", "gpt-4", {"rpm": 2}):
                pass
    return found


def stream_event(url: str) -> dict[str, Any]:
    """Return the changes of buckets as Lambda gets them."""
    with connect(url, limiter) as db:
        changes = list(db.changes(Bucket, since="earliest"))
    return {
        "Records": [
            {"eventSource": "aws:dynamodb", "dynamodb": {"SequenceNumber": change.sequence}}
            for change in changes
        ]
    }


def used(url: str) -> tuple[float, int]:
    with connect(url, limiter) as db:
        ours = Limiter(db)
        (row,) = ours.usage(entity="ann", resource="gpt-4", window="month")
        return row.as_dict()["tokens"]["rpm"], len(list(ours.audit()))


def test_a_schedule_and_a_stream_event_count_once(url: str) -> None:
    first = lambda_handler.handler(SCHEDULED)
    assert (first["batchItemFailures"], first["counted"] > 0, first["delivered"]) == ([], True, 1)
    event = stream_event(url)
    assert event["Records"]
    for _ in range(2):
        assert lambda_handler.handler(event, None)["batchItemFailures"] == []
    assert used(url) == (6, 1)


def test_a_batch_that_failed_is_sent_again_whole(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: Any, **named: Any) -> None:
        raise TransportError("no route to the table")

    event = stream_event(url)
    first = event["Records"][0]["dynamodb"]["SequenceNumber"]
    with monkeypatch.context() as patched:
        patched.setattr(lambda_handler, "aggregate", broken)
        assert lambda_handler.handler(event) == {"batchItemFailures": [{"itemIdentifier": first}]}
        with pytest.raises(TransportError):
            lambda_handler.handler(SCHEDULED)
    lambda_handler.handler(event)
    assert used(url) == (6, 1)
    monkeypatch.delenv("SOLOTABLE_URL")
    with pytest.raises(NotConfigured, match="SOLOTABLE_URL"):
        lambda_handler.handler(SCHEDULED)


def test_the_policy_of_the_template_allows_what_the_jobs_send(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Observation] = []

    def watched(found: str, *tables: Any) -> Any:
        return connect(found, *tables, observer=seen.append)

    monkeypatch.setattr(lambda_handler, "connect", watched)
    lambda_handler.handler(SCHEDULED)
    parts = {"TransactWriteItems", "TransactGetItems"}
    sent = {f"dynamodb:{each.operation}" for each in seen if each.operation not in parts}
    assert sent
    assert sent <= {*TABLE_ACTIONS, *STREAM_ACTIONS}


def test_the_template_has_the_declared_table_and_no_wildcard() -> None:
    template = build_template("Limits", 5)
    table = template["Resources"]["Table"]["Properties"]
    assert table["TableName"] == "Limits"
    assert table["TimeToLiveSpecification"] == {"AttributeName": "expires", "Enabled": True}
    assert table["StreamSpecification"] == {"StreamViewType": "NEW_AND_OLD_IMAGES"}
    assert template["Resources"]["Schedule"]["Properties"]["ScheduleExpression"] == "rate(5 minutes)"
    (policy,) = template["Resources"]["JobsRole"]["Properties"]["Policies"]
    for statement in policy["PolicyDocument"]["Statement"]:
        assert not [action for action in statement["Action"] if "*" in action]
        assert statement["Resource"] != "*"
