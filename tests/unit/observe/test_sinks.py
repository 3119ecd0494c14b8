"""What each sink writes for an observation (requirement S4.43)."""

from __future__ import annotations

import builtins
import io
import json
import logging
from typing import Any

import pytest

from solotable.observe import (
    Consumed,
    EmfObserver,
    LogObserver,
    Observation,
    OpenTelemetryObserver,
    PrometheusObserver,
    Units,
    combine,
)


def observation(**changes: Any) -> Observation:
    consumed = Consumed(rcu=1.5, requests=1, tables={"Shop": Units(1.5)}, indexes={"Shop/GSI1": Units(1.0)})
    fields: dict[str, Any] = {
        "operation": "Query",
        "tables": ("Shop",),
        "index": "GSI1",
        "entity": "Order",
        "pattern": "Order.open",
        "seconds": 0.0125,
        "consumed": consumed,
        "items": 3,
        "scanned": 5,
    }
    return Observation(**(fields | changes))


def test_emf_has_duration_success_and_failure_per_operation() -> None:
    """S4.43: metrics per operation, in the namespace of the application."""
    stream = io.StringIO()
    sink = EmfObserver(stream, namespace="SurveyorApp/DynamoDB", clock=lambda: 1_700_000_000.5)
    sink(observation())
    sink(observation(error="Throttled", attempt=2, tables=(), entity=None))
    done, failed = (json.loads(line) for line in stream.getvalue().splitlines())
    (directive,) = done["_aws"]["CloudWatchMetrics"]
    assert done["_aws"]["Timestamp"] == 1_700_000_000_500
    assert directive["Namespace"] == "SurveyorApp/DynamoDB"
    assert directive["Dimensions"] == [["Operation"], ["Table", "Operation"]]
    assert {"Name": "Duration", "Unit": "Milliseconds"} in directive["Metrics"]
    assert (done["Operation"], done["Table"], done["Duration"]) == ("Query", "Shop", 12.5)
    assert (done["Success"], done["Failure"], done["ConsumedReadCapacityUnits"]) == (1, 0, 1.5)
    assert (done["Entity"], done["Pattern"], done["Index"]) == ("Order", "Order.open", "GSI1")
    assert (failed["Success"], failed["Failure"], failed["Error"], failed["Attempt"]) == (
        0,
        1,
        "Throttled",
        2,
    )
    # EMF: every target of a metric and a dimension is a member of the root, and a dimension is not empty.
    for line in (done, failed):
        targets = {each["Name"] for each in directive["Metrics"]} | {"Table", "Operation"}
        assert all(line[name] != "" for name in targets)


def test_prometheus_text_has_bounded_labels() -> None:
    sink = PrometheusObserver(most_series=2)
    for name in ("A", "B", "C", "D"):
        sink(observation(tables=(name,)))
    text = sink.render()
    labels = 'table="A",operation="Query",entity="Order",pattern="Order.open",error=""'
    assert f"solotable_requests_total{{{labels}}} 1\n" in text
    assert 'solotable_items_total{table="other",operation="other"} 6\n' in text
    assert 'table="C"' not in text


def test_prometheus_counts_durations_retries_and_units() -> None:
    sink = PrometheusObserver()
    sink(observation())
    sink(observation(seconds=0.5, attempt=2, error="Throttled", consumed=Consumed(requests=1), items=0))
    lines = sink.render().splitlines()
    place = 'table="Shop",operation="Query"'
    assert f'solotable_request_duration_seconds_bucket{{{place},le="0.01"}} 0' in lines
    assert f'solotable_request_duration_seconds_bucket{{{place},le="0.025"}} 1' in lines
    assert f'solotable_request_duration_seconds_bucket{{{place},le="+Inf"}} 2' in lines
    assert f"solotable_request_duration_seconds_sum{{{place}}} 0.5125" in lines
    assert f"solotable_retries_total{{{place}}} 1" in lines
    assert 'solotable_consumed_capacity_units_total{table="Shop",index="",kind="read"} 0.5' in lines
    assert 'solotable_consumed_capacity_units_total{table="Shop",index="GSI1",kind="read"} 1' in lines
    assert (
        f'solotable_requests_total{{{place},entity="Order",pattern="Order.open",error="Throttled"}} 1'
        in lines
    )


def test_labels_are_escaped() -> None:
    sink = PrometheusObserver()
    sink(observation(entity='a"b\\c\nd'))
    assert 'entity="a\\"b\\\\c\\nd"' in sink.render()


def test_a_logger_gets_one_line_per_request(caplog: pytest.LogCaptureFixture) -> None:
    sink = LogObserver(level=logging.INFO, slow_seconds=1)
    with caplog.at_level(logging.INFO):
        sink(observation())
        sink(observation(error="ConditionFailed"))
        sink(observation(error="Throttled", attempt=2))
        sink(observation(seconds=2.0))
    assert [record.levelname for record in caplog.records] == ["INFO", "INFO", "WARNING", "WARNING"]
    assert caplog.messages[0] == (
        "Query Shop index=GSI1 entity=Order pattern=Order.open ms=12.5 items=3 rcu=1.5 wcu=0"
    )
    assert "error=Throttled" in caplog.messages[2]
    assert caplog.messages[2].endswith("attempt=2")


def test_combined_observers_do_not_depend_on_each_other(caplog: pytest.LogCaptureFixture) -> None:
    seen: list[Observation] = []

    def broken(_: Observation) -> None:
        raise RuntimeError("no disk")

    combine(broken, seen.append)(observation())
    assert len(seen) == 1
    assert "One of several observers raised an error." in caplog.text


def test_opentelemetry_records_spans_and_metrics_by_the_conventions() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
    from opentelemetry.trace import SpanKind, StatusCode

    exporter, reader = InMemorySpanExporter(), InMemoryMetricReader()
    tracers, meters = TracerProvider(shutdown_on_exit=False), MeterProvider([reader], shutdown_on_exit=False)
    tracers.add_span_processor(SimpleSpanProcessor(exporter))
    sink = OpenTelemetryObserver(tracer_provider=tracers, meter_provider=meters)
    with tracers.get_tracer("test").start_as_current_span("request") as parent:
        sink(observation())
        sink(observation(operation="PutItem", error="Throttled", attempt=2, index=None, consumed=Consumed()))
    spans: Any = exporter.get_finished_spans()
    query, put, _ = spans
    assert (query.name, query.kind) == ("DynamoDB.Query", SpanKind.CLIENT)
    assert query.parent.span_id == parent.get_span_context().span_id
    assert query.end_time - query.start_time == 12_500_000
    assert dict(query.attributes) == {
        "db.system.name": "aws.dynamodb",
        "db.operation.name": "Query",
        "db.collection.name": "Shop",
        "aws.dynamodb.table_names": ("Shop",),
        "aws.dynamodb.index_name": "GSI1",
        "aws.dynamodb.count": 3,
        "aws.dynamodb.scanned_count": 5,
        "aws.dynamodb.consumed_capacity": (
            '{"TableName": "Shop", "ReadCapacityUnits": 1.5, "WriteCapacityUnits": 0.0}',
        ),
        "solotable.entity": "Order",
        "solotable.pattern": "Order.open",
        "solotable.items": 3,
    }
    assert (put.status.status_code, put.attributes["error.type"]) == (StatusCode.ERROR, "Throttled")
    data: Any = reader.get_metrics_data()
    (scope,) = data.resource_metrics[0].scope_metrics
    metrics = {metric.name: metric for metric in scope.metrics}
    assert metrics["db.client.operation.duration"].unit == "s"
    points = metrics["db.client.operation.duration"].data.data_points
    assert sorted(str(point.attributes["db.operation.name"]) for point in points) == ["PutItem", "Query"]
    assert metrics["solotable.consumed_capacity"].data.data_points[0].value == 1.5


def test_opentelemetry_names_the_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *more: Any) -> Any:
        if name.startswith("opentelemetry"):
            raise ImportError(f"No module named {name!r}", name=name)
        return real(name, *more)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ImportError, match=r"pip install 'solotable\[opentelemetry\]'"):
        OpenTelemetryObserver()
