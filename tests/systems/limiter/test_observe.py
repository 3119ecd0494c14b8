"""What an observer is told of each acquire, and the metrics of Prometheus and OpenTelemetry."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from solotable.errors import DataError, SolotableError, TransportError
from solotable.observe import combine
from solotable.systems.limiter import Limit
from solotable.systems.limiter.observe import (
    AcquireObservation,
    LimiterOpenTelemetryObserver,
    LimiterPrometheusObserver,
    metrics_app,
)

from .api import MODEL, headers, mark, running
from .either import either
from .ground import Place

DAY = 86_400
RPM = Limit("rpm", 2, 2, DAY)
TPM = Limit("tpm", 100, 100, DAY)


def outcome(limiter: Any, entity: str = "ann", **amounts: int) -> None:
    try:
        with limiter.acquire(entity, "r", amounts, unknown_limits="ignore"):
            pass
    except SolotableError:
        pass


def test_every_decision_is_observed_once(place: Place, mode: str) -> None:
    seen: list[AcquireObservation] = []
    limiter = either(place, mode, limits=[RPM, TPM], observer=seen.append)
    outcome(limiter, rpm=2, lost=1)
    outcome(limiter, rpm=1)
    outcome(limiter, rpm=1)
    outcome(limiter, rpm=3)
    limiter.set_mode("eve", "deny")
    outcome(limiter, "eve", rpm=1)
    outcome(limiter, "no name!", rpm=1)
    assert [(each.outcome, each.attempts) for each in seen] == [
        ("admitted", 1),
        ("refused", 0),  # by what the acquire before had read
        ("refused", 0),
        ("never_satisfiable", 0),
        ("denied", 0),
        ("error", 0),
    ]
    assert seen[0].ignored == (("r", "lost"),)
    assert seen[1].limits == seen[3].limits == (("r", "rpm"),)
    assert [each.error for each in seen[:2]] == [None, "RateLimitExceeded"]
    assert all(0 <= each.seconds < 3600 for each in seen)
    assert not [each for each in seen if "'ann'" in repr(each) or "'eve'" in repr(each)]


def test_what_is_not_enforced_is_observed_too(place: Place, mode: str) -> None:
    seen: list[AcquireObservation] = []
    soft = Limit("rpm", 1, 1, DAY, soft=True)
    limiter = either(place, mode, observer=seen.append)
    limiter.set_limits([TPM], resource="r", mode="shadow")
    outcome(limiter, tpm=100)
    outcome(limiter, tpm=100)
    limiter.set_limits([soft], resource="r", mode="enforce")
    outcome(limiter, rpm=1)
    outcome(limiter, rpm=1)
    assert [each.outcome for each in seen] == ["admitted", "shadow_refused", "admitted", "admitted"]
    assert (seen[1].limits, seen[1].error) == ((("r", "tpm"),), None)
    assert (seen[2].exceeded, seen[3].exceeded) == ((), (("r", "rpm"),))


def test_an_outage_is_observed_also_while_calls_are_not_sent(
    place: Place, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[AcquireObservation] = []
    limiter = either(place, mode, limits=[RPM], on_unavailable="allow", observer=seen.append)

    def broken(request: object) -> None:
        raise TransportError("no route to the table")

    with monkeypatch.context() as patched:
        patched.setattr(place.watched, "handle", broken)
        for _ in range(8):
            outcome(limiter, rpm=1)
    assert {each.outcome for each in seen} == {"unavailable"}
    assert len(seen) == 8


def test_more_of_a_lease_is_observed_and_other_writers_are_attempts(place: Place, mode: str) -> None:
    seen: list[AcquireObservation] = []
    limiter = either(place, mode, limits=[TPM], observer=seen.append)
    other = either(place, mode, limits=[TPM])
    with limiter.acquire("ann", "r", {"tpm": 1}) as lease:
        outcome(other, tpm=99)
        with pytest.raises(SolotableError):
            lease.consume(tpm=1)
    assert [(each.outcome, each.attempts) for each in seen] == [("admitted", 1), ("refused", 1)]


def test_an_observer_that_fails_changes_nothing(
    place: Place, mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(_: AcquireObservation) -> None:
        raise RuntimeError("no disk")

    limiter = either(place, mode, limits=[RPM], observer=broken)
    outcome(limiter, rpm=1)
    assert limiter.available("ann", "r") == {"rpm": 1}
    assert "The observer of a limiter raised an error." in caplog.text

    async def awaited(_: AcquireObservation) -> None: ...

    for wrong in (awaited, "metrics"):
        with pytest.raises(DataError, match="observer"):
            either(place, mode, observer=wrong)


def observation(**changes: Any) -> AcquireObservation:
    fields: dict[str, Any] = {"resource": "r", "outcome": "admitted", "seconds": 0.003, "attempts": 1}
    return AcquireObservation(**(fields | changes))


def test_prometheus_text_has_bounded_labels() -> None:
    sink = LimiterPrometheusObserver(most_resources=2, most_limits=1)
    for name in ("a", "b", "c", "d"):
        sink(observation(resource=name, ignored=((name, f"of_{name}"),)))
    sink(observation(resource="a", outcome="refused", limits=(("a", "of_a"),), attempts=3))
    lines = sink.render().splitlines()
    assert 'solotable_limiter_acquires_total{resource="other",outcome="admitted"} 2' in lines
    assert 'solotable_limiter_acquires_total{resource="a",outcome="refused"} 1' in lines
    assert 'solotable_limiter_refusals_total{resource="a",limit="of_a",outcome="refused"} 1' in lines
    assert 'solotable_limiter_unknown_limits_total{resource="b",limit="other"} 1' in lines
    assert 'solotable_limiter_attempts_total{resource="a"} 4' in lines
    assert 'solotable_limiter_acquire_duration_seconds_bucket{resource="a",le="0.005"} 2' in lines
    assert not [line for line in lines if '"c"' in line or "of_c" in line]


def test_opentelemetry_counts_the_same() -> None:
    pytest.importorskip("opentelemetry.sdk")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    reader = InMemoryMetricReader()
    sink = LimiterOpenTelemetryObserver(meter_provider=MeterProvider([reader], shutdown_on_exit=False))
    seen: list[AcquireObservation] = []
    both = combine(sink, seen.append)
    both(observation(exceeded=(("r", "soft"),)))
    both(observation(outcome="refused", error="RateLimitExceeded", limits=(("r", "rpm"),)))
    data: Any = reader.get_metrics_data()
    metrics = {each.name: each.data for each in data.resource_metrics[0].scope_metrics[0].metrics}
    (refusal,) = metrics["solotable.limiter.refusals"].data_points
    assert dict(refusal.attributes) == {
        "solotable.limiter.resource": "r",
        "solotable.limiter.limit": "rpm",
        "solotable.limiter.outcome": "refused",
    }
    assert sum(each.count for each in metrics["solotable.limiter.acquire.duration"].data_points) == 2
    assert sum(each.value for each in metrics["solotable.limiter.attempts"].data_points) == 2
    assert len(seen) == 2


def test_the_metrics_can_be_mounted_in_any_application() -> None:
    sink = LimiterPrometheusObserver()
    sink(observation())
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(metrics_app(sink)({"type": "http"}, None, send))  # type: ignore[arg-type]  # a coroutine
    start, body = sent
    assert start["status"] == 200
    assert dict(start["headers"])[b"content-type"].startswith(b"text/plain; version=0.0.4")
    assert body["body"].decode() == sink.render()


def test_operators_read_the_metrics_of_their_namespace(tmp_path: Path) -> None:
    with running(tmp_path) as api:
        body = {"entity": mark("acme"), "resource": MODEL, "consume": {"rpm": 1}}
        api.client.post("/acquire", json=body, headers=headers("APP", "acme"))
        (mine, theirs) = (
            api.client.get("/metrics", headers=headers("OPERATOR", each)) for each in ("acme", "zeta")
        )
        assert mine.headers["content-type"].startswith("text/plain; version=0.0.4")
        assert f'resource="{MODEL}",outcome="admitted"' in mine.text
        assert mark("acme") not in theirs.text
        assert api.client.get("/metrics", headers=headers("APP", "acme")).status_code == 403
        assert api.client.get("/metrics").status_code == 401
