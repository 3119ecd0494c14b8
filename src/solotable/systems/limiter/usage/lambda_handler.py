"""The jobs of the limiter as an AWS Lambda function: count usage, and deliver the audit trail.

    Handler: solotable.systems.limiter.usage.lambda_handler.handler
    Environment: SOLOTABLE_URL=aws://Limiter

Invoke it by a schedule, or by the table's stream with ReportBatchItemFailures. Either event is a signal to
run: the jobs read the stream from their own checkpoints. So an event that is delivered twice, late or to two
functions at once counts nothing twice, and what an event does not have is counted all the same.
"""

from __future__ import annotations

import logging
import os
from typing import Any

from solotable import Database, connect
from solotable.errors import FeedTrimmed, NotConfigured, SolotableError
from solotable.jobs.deliver import deliver
from solotable.systems.limiter.admin.audit import audit_sink
from solotable.systems.limiter.table import limiter

from .job import aggregate

log = logging.getLogger("solotable.limiter")


def handler(event: dict[str, Any], context: object = None) -> dict[str, Any]:
    """Run the jobs; for an event of a stream, report which records to send again after an error.

    An error of a scheduled run is raised, so that Lambda counts it and your alarm sees it.
    """
    records = event.get("Records") or []
    try:
        counted, delivered = _run()
    except SolotableError:
        if not records:
            raise
        log.exception("usage and the audit trail were not updated; the batch is sent again")
        # Lambda: everything from the first failed record on is sent again.
        return {"batchItemFailures": [{"itemIdentifier": records[0]["dynamodb"]["SequenceNumber"]}]}
    return {"batchItemFailures": [], "counted": counted, "delivered": delivered}


def _run() -> tuple[int, int]:
    url = os.environ.get("SOLOTABLE_URL")
    if not url:
        raise NotConfigured("SOLOTABLE_URL is not set; set it to the table's URL, such as aws://Limiter.")
    with connect(url, limiter) as db:
        return _count(db), _deliver(db)


def _count(db: Database) -> int:
    try:
        return aggregate(db).records
    except FeedTrimmed:
        # Without this, every later run would fail too.
        log.exception("the stream dropped changes before they were counted; continuing with the rest")
        return aggregate(db, recover=True).records


def _deliver(db: Database) -> int:
    try:
        return deliver(db, [audit_sink()]).events
    except FeedTrimmed:
        log.exception("the stream dropped events before they were delivered; delivering from the outbox")
        return deliver(db, [audit_sink()], recover=True).events
