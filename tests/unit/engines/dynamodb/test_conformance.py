"""The conformance cases, each sent as a record that was encoded again: on our server, and on DynamoDB
Local when that is asked for.

Left out are the topics whose refusals name parameters that records do not keep (the legacy ones) or
that only a malformed request can meet.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

import pytest

from solotable.engines import dynamodb
from tests.conformance.dynamodb_local import Server
from tests.conformance.harness import Case, play
from tests.conformance.targets import InProcess
from tests.conformance.test_conformance import CASES, create_tables, drop_every_table
from tests.unit.server.running import running

TOPICS = {
    topic: [(name, case) for name, case in cases]
    for topic, cases in groupby(CASES, lambda pair: pair[0].partition("/")[0])
    if not topic.startswith("legacy")
}
every_topic = pytest.mark.parametrize("topic", TOPICS)


@pytest.fixture(scope="module")
def target() -> Iterator[InProcess]:
    with running() as server, dynamodb.open(endpoint_url=f"http://127.0.0.1:{server.port}") as engine:
        yield InProcess(engine)


@every_topic
def test_records_reach_our_server(target: InProcess, topic: str) -> None:
    assert differences(target, TOPICS[topic]) == {}


@every_topic
def test_records_reach_dynamodb_local(local: Server, topic: str) -> None:
    checked = [(name, case) for name, case in TOPICS[topic] if not case.local]
    with dynamodb.open(endpoint_url=f"http://127.0.0.1:{local.port}") as engine:
        assert local.outdated or differences(InProcess(engine), checked) == {}


def differences(target: InProcess, cases: list[tuple[str, Case]]) -> dict[str, str]:
    """By name, the cases that are answered otherwise than they say."""
    found = {}
    for name, case in cases:
        drop_every_table(target)
        create_tables(target, case)
        try:
            play(target, case)
        except AssertionError as difference:
            found[name] = str(difference)
    return found
