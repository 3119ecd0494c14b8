"""Limits are judged by ratios, and nobody who was not measured is beaten."""

from __future__ import annotations

from typing import Any

from bench import limits, report
from bench.commits import ONE, RAW, SIXTEEN
from bench.wire import workload


def rate(**by_name: float) -> dict[str, dict[str, Any]]:
    return {name.replace("_", " "): {"rate": value} for name, value in by_name.items()}


def outcomes(verdicts: list[limits.Verdict]) -> list[str]:
    return [verdict.outcome for verdict in verdicts]


def test_memory_is_compared_with_the_fastest_peer_and_queries_more_strictly() -> None:
    figures = {
        "PutItem": rate(solotable=300, Dynoxide=150, moto=1),
        "Query of 50": rate(solotable=300, Dynoxide=150, moto=1),
        "GSI query of 50": rate(solotable=900, Dynoxide=150, moto=1),
    }
    verdicts = limits.memory_verdicts(figures, [])
    assert outcomes(verdicts) == ["reached", "not reached", "reached"]
    assert verdicts[0].figure == "2.00x Dynoxide"


def test_a_missing_or_void_peer_is_not_beaten() -> None:
    void = {**rate(solotable=300, moto=1), "Dynoxide": {"void": "1 of 2 replies were errors"}}
    (verdict,) = limits.memory_verdicts({"PutItem": void}, ["dynalite"])
    assert (verdict.outcome, verdict.note) == ("not judged", "without Dynoxide, dynalite")
    assert outcomes(limits.memory_verdicts({"PutItem": rate(solotable=3, moto=2)}, ["dynalite"])) == [
        "not reached"
    ]
    assert outcomes(limits.memory_verdicts({"PutItem": rate(Dynoxide=3)}, ["solotable"])) == ["not judged"]


def test_a_peer_without_the_operation_does_not_hold_up_the_verdict() -> None:
    figures = {"TransactWriteItems of 2": {**rate(solotable=300, moto=1), "dynalite": {"none": "none"}}}
    assert outcomes(limits.memory_verdicts(figures, [])) == ["reached"]


def test_a_peer_with_wrong_answers_is_not_beaten_and_is_named() -> None:
    figures = {"Scan of 500": {**rate(solotable=300, moto=1), "Dynoxide": {"wrong": "no LastEvaluatedKey"}}}
    (verdict,) = limits.memory_verdicts(figures, [])
    assert (verdict.outcome, verdict.note) == ("not judged", "without Dynoxide")
    assert list(report.faults(figures)) == ["  wrong: Dynoxide, Scan of 500: no LastEvaluatedKey"]
    assert report.cell({"wrong": "no LastEvaluatedKey"}) == "wrong"


def test_two_workers_are_compared_with_one_process() -> None:
    figures = {
        "durable": {
            "GetItem": rate(**{"1 worker": 100, "2 workers": 150}),
            "PutItem": rate(**{"1 worker": 100, "2 workers": 99.9}),
        }
    }
    verdicts = limits.worker_verdicts(figures)
    assert outcomes(verdicts) == ["reached", "not reached"]
    # Two digits would hide the miss.
    assert [each.figure for each in verdicts] == ["1.50x", "0.999x"]


def test_reads_between_writes_are_compared_with_reads_alone() -> None:
    figures = {
        "PutItem": rate(solotable=100, moto=1),
        "GetItem": rate(solotable=200, moto=1),
        # A put in 10 ms and a get in 10 ms instead of 5.
        workload.PUT_THEN_GET: rate(solotable=100, moto=1),
    }
    (verdict,) = limits.read_verdict(figures, "memory")
    assert (verdict.figure, verdict.outcome) == ("2.00x", "not reached")
    del figures["GetItem"]["solotable"]
    assert limits.read_verdict(figures, "memory") == []
    # The mixed operation is not compared with peers.
    assert [each.what for each in limits.memory_verdicts(figures, [])] == [
        "PutItem, memory",
        "GetItem, memory",
    ]
    times = {name: {"raw": 1.0, "engine": taken} for name, taken in
             (("PutItem", 30.0), ("GetItem", 10.0), (workload.PUT_THEN_GET, 45.0))}  # fmt: skip
    assert limits.in_process_verdicts({"10000": times})[-1].figure == "1.50x"


def test_growth_is_of_the_largest_table_beside_the_smallest() -> None:
    figures = {"10000": {"requests": {"GetItem": 50.0, "PutItem": 100.0}},
               "1000000": {"requests": {"GetItem": 60.0, "PutItem": 151.0}}}  # fmt: skip
    assert outcomes(limits.growth_verdicts(figures)) == ["reached", "not reached"]


def test_disk_is_compared_with_each_peer_that_has_a_limit() -> None:
    figures = {"PutItem": rate(solotable=100, solotable_relaxed=900, Dynoxide=90, DynamoDB_Local=50)}
    assert outcomes(limits.disk_verdicts(figures)) == ["reached", "not reached"]
    del figures["PutItem"]["Dynoxide"]
    assert outcomes(limits.disk_verdicts(figures)) == ["not judged", "not reached"]


def test_ours_in_another_mode_is_not_a_peer() -> None:
    assert limits.ratios(rate(solotable=100, solotable_relaxed=200, moto=50)) == {"moto": 2.0}


def test_commits_and_start_and_process() -> None:
    commits = {RAW: {"rate": 100.0}, ONE: {"rate": 79.0}, SIXTEEN: {"rate": 400.0}}
    assert outcomes(limits.commit_verdicts(commits)) == ["not reached", "reached"]
    ours = {"solotable": {"first_answer_seconds": 0.4, "idle_megabytes": 90.0}}
    assert outcomes(limits.start_verdicts(ours)) == ["reached", "not reached"]
    assert outcomes(limits.start_verdicts({})) == ["not judged", "not judged"]
    small = {"GetItem": {"raw": 10.0, "engine": 30.0}}
    large = {"GetItem": {"raw": 10.0, "engine": 60.0}}
    grown = limits.in_process_verdicts({"10000": small, "1000000": large})
    assert outcomes(grown) == ["reached", "not reached", "not reached"]
    assert outcomes(limits.in_process_verdicts({"10000": small})) == ["reached"]


def test_the_tables_show_every_contender_of_every_operation() -> None:
    figures = {"PutItem": rate(solotable=100, moto=50), "GetItem": {"moto": {"void": "2 of 3"}}}
    names = ["solotable", "moto", "dynalite"]
    drawn = "\n".join(report.wire_chart(figures, names))
    assert drawn.count("moto") == drawn.count("dynalite") == 2
    assert "2.00x" in drawn
    assert "void" in drawn
    assert [line.split()[-2:] for line in report.wire_ratios(figures, names)] == [
        ["moto", "dynalite"],
        ["2.00x", "missing"],
        ["void", "missing"],
    ]
    assert list(report.faults(figures)) == ["  void: moto, GetItem: 2 of 3"]
