"""What the figures are to reach, and whether they do. Ratios within one run; no clock, no printing.

A limit is "not judged" where a figure it needs is missing or void: a peer that could not be
measured is never counted as beaten.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

from bench.commits import MANY, ONE, RAW, SIXTEEN
from bench.systems.limiter_rounds import KINDS
from bench.wire.workload import PUT_THEN_GET

OURS = "solotable"
ZAE = "zae-limiter"
#: Places where limiters are measured and not judged: a peer without durability, or without DynamoDB.
IN_MEMORY = "memory"
REDIS = "Redis"
Outcome = Literal["reached", "not reached", "not judged"]

#: In process: times the raw call, and times itself at the small size.
RAW_LIMIT = 4.0
SCALE_LIMIT = 1.5
#: A GetItem right after a PutItem: times a GetItem without writes around it.
BETWEEN_WRITES_LIMIT = 1.5
#: Over the wire, memory against memory: times the fastest peer.
MEMORY_LIMIT = 2.0
MEMORY_QUERY_LIMIT = 5.0
#: Over the wire, disk against disk, ours with its default durability: times the peer.
DISK_LIMITS = {"Dynoxide": 1.0, "DynamoDB Local": 3.0}
#: Durable commits: times raw SQLite with one caller.
COMMIT_LIMITS = {ONE: 0.8, SIXTEEN: 4.0}
#: Two workers: times one process. The load needs a part of the second core.
WORKER_LIMIT = 1.0
START_SECONDS_LIMIT = 0.5
#: Pages through HTTP, as a share of a constant's rate.
CMS_SHARE_LIMIT = 0.5
#: Surveys: what the written design claims beside the layout before, and times the engine's own Query.
SURVEY_CLAIMS = {"cost": 0.40, "writes": 0.70, "queries": 0.50}
WHOLE_SURVEY_LIMIT = 2.0
#: Milliseconds of the portal's search, and seconds that its index may be behind.
PORTAL_SEARCH_LIMIT = 50.0
PORTAL_BEHIND_LIMIT = 2.0
#: Sync: capacity units, milliseconds, pushes a second, and growth of memory with the view.
IDLE_PULL_LIMIT = 1.0
PUSH_LIMIT = 8.0
PUSH_P99_LIMIT = 250.0
PUSH_RATE_LIMIT = 500
VIEW_MEMORY_LIMIT = 1.5
#: A migration: items a CPU second, per cent that the forecast is off, and times the application's own p99.
COPY_LIMIT = 5_000
DIFF_LIMIT = 50_000
FORECAST_LIMIT = 20.0
COPY_LATENCY_LIMIT = 1.2
#: The data patterns: times as many plain writes in one transaction; items a second of the jobs.
PATTERN_LIMIT = 2.5
JOB_RATE_LIMIT = 5_000
#: Continuous backups: times the CPU of a write without them.
BACKUP_LIMIT = 1.6
#: The rate limiter: times zae-limiter's acquires a second by the file, and a CPU second over the wire.
LIMITER_LIMITS = {"relaxed file": 20.0, "durable file": 5.0}
LIMITER_WIRE_LIMIT = 2.0
#: Crowds on one bucket: per cent of what an exact bucket admits, of calls that arrive in another order.
CROWD_LIMITS = {"shards": 98.0, "one item": 99.0}
MOST_ADMITTED = 100.1
#: The modelling layer: times the engine's own request, microseconds to decode an entity, microseconds of a
#: GetItem over HTTP, times bare boto3's CPU, times the peers' rate.
MODEL_LIMITS = {"get": 2.0, "put": 1.3, "page of 50": 1.6}
DECODE_LIMIT = 3.0
CLIENT_LIMIT = 100.0
BOTO3_LIMIT = 1.1
IN_PROCESS_LIMIT = 20.0
IMPORT_SECONDS_LIMIT = 0.15
#: `from solotable import Entity, Table`: times the CPU of importing Pydantic's BaseModel.
IMPORT_RATIO_LIMIT = 1.5
DEFINE_SECONDS_LIMIT = 1.0
IDLE_MEGABYTES_LIMIT = 80.0

#: Figures by operation and contender, as wire.race returns them.
Figures = Mapping[str, Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One limit beside what was measured."""

    what: str
    limit: str
    figure: str
    outcome: Outcome
    note: str = ""


def is_ours(name: str) -> bool:
    """Say whether a name is ours, in whatever mode; ours in another mode is no peer."""
    return name.partition(" ")[0] == OURS


def rates(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return the valid rates of one operation by contender."""
    return {name: float(figure["rate"]) for name, figure in figures.items() if "rate" in figure}


def ratios(figures: Mapping[str, Mapping[str, Any]]) -> dict[str, float]:
    """Return how many times each peer's rate ours is, for one operation."""
    valid = rates(figures)
    ours = valid.pop(OURS, None)
    if ours is None:
        return {}
    return {name: ours / rate for name, rate in valid.items() if rate and not is_ours(name)}


def memory_verdicts(figures: Figures, missing: Iterable[str]) -> list[Verdict]:
    """Judge memory against memory: the fastest peer of each operation."""
    verdicts = []
    for operation, by_name in _single(figures).items():
        limit = MEMORY_QUERY_LIMIT if "query" in operation.lower() else MEMORY_LIMIT
        times = ratios(by_name)
        unknown = sorted(
            {*missing, *(name for name, figure in by_name.items() if {"void", "wrong"} & set(figure))}
        )
        fastest = min(times, key=times.__getitem__, default=None)
        verdicts.append(
            _judge(
                what=f"{operation}, memory",
                limit=f"{limit:g}x the fastest peer",
                shown=f"{times[fastest]:.2f}x {fastest}" if fastest else "no figure",
                good=times[fastest] >= limit if fastest else None,
                unknown=unknown,
            )
        )
    return verdicts


def disk_verdicts(figures: Figures) -> list[Verdict]:
    """Judge disk against disk: each peer that has a limit of its own."""
    return [
        _least(f"{operation}, disk", ratios(by_name).get(peer), limit, peer)
        for peer, limit in DISK_LIMITS.items()
        for operation, by_name in _single(figures).items()
    ]


def _single(figures: Figures) -> Figures:
    """Return the figures of single operations: the mixed one is compared with them, not with the peers."""
    return {operation: by_name for operation, by_name in figures.items() if operation != PUT_THEN_GET}


def between_writes(put: float, get: float, both: float) -> float:
    """Return how many times a GetItem costs right after a PutItem, from the times of each and of both.

    >>> between_writes(put=30.0, get=10.0, both=45.0)
    1.5
    """
    return (both - put) / get


def read_verdict(figures: Figures, where: str) -> list[Verdict]:
    """Check our reads between writes over the wire, beside reads alone."""
    operations = {"put": "PutItem", "get": "GetItem", "both": PUT_THEN_GET}
    rate = {name: rates(figures.get(title, {})).get(OURS) for name, title in operations.items()}
    times = {name: 1 / each for name, each in rate.items() if each}
    if len(times) < len(operations):
        return []
    # A rate counts requests: a put and its get are two.
    ratio = between_writes(times["put"], times["get"], 2 * times["both"])
    return [_most(f"GetItem between writes, {where}", ratio, BETWEEN_WRITES_LIMIT, "GetItem alone")]


def worker_verdicts(figures: Mapping[str, Mapping[str, Mapping[str, Any]]]) -> list[Verdict]:
    """Judge the requests a second with two workers beside those with one process."""
    return [
        _least(
            f"{operation}, two workers, {durability} file",
            counts["2 workers"]["rate"] / counts["1 worker"]["rate"],
            WORKER_LIMIT,
            "one process",
        )
        for durability, operations in figures.items()
        for operation, counts in operations.items()
    ]


def commit_verdicts(figures: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Judge durable commits beside raw SQLite with one caller."""
    callers = {ONE: "1 caller", SIXTEEN: f"{MANY} callers"}
    return [
        _least(
            f"durable commits, {callers[name]}",
            figures[name]["rate"] / figures[RAW]["rate"],
            limit,
            "raw SQLite with 1",
        )
        for name, limit in COMMIT_LIMITS.items()
    ]


def start_verdicts(figures: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Judge our server's start and idle memory."""
    ours = figures.get(OURS, {})
    seconds, megabytes = ours.get("first_answer_seconds"), ours.get("idle_megabytes")
    return [
        _judge(
            what="first answer after the start",
            limit=f"within {START_SECONDS_LIMIT:g} s",
            shown="no figure" if seconds is None else f"{seconds:.2f} s",
            good=None if seconds is None else seconds <= START_SECONDS_LIMIT,
        ),
        _judge(
            what="idle memory",
            limit=f"under {IDLE_MEGABYTES_LIMIT:g} MB",
            shown="no figure" if megabytes is None else f"{megabytes:.0f} MB",
            good=None if megabytes is None else megabytes < IDLE_MEGABYTES_LIMIT,
        ),
    ]


def in_process_verdicts(figures: Mapping[str, Mapping[str, Mapping[str, float]]]) -> list[Verdict]:
    """Judge the engine in process: beside raw SQLite at each size, and the largest beside the smallest."""
    verdicts = [
        _most(f"{operation}, {int(size):,} items", times["engine"] / times["raw"], RAW_LIMIT, "raw SQLite")
        for size, by_operation in figures.items()
        for operation, times in by_operation.items()
    ]
    verdicts += [
        _most(
            f"GetItem between writes, {int(size):,} items",
            between_writes(*(times[name]["engine"] for name in ("PutItem", "GetItem", PUT_THEN_GET))),
            BETWEEN_WRITES_LIMIT,
            "GetItem alone",
        )
        for size, times in figures.items()
        if PUT_THEN_GET in times
    ]
    smallest, largest = (choose(figures, key=int) for choose in (min, max))
    if largest != smallest:
        small = figures[smallest]
        verdicts += [
            _most(
                f"{operation}, growth to {int(largest):,}",
                times["engine"] / small[operation]["engine"],
                SCALE_LIMIT,
            )
            for operation, times in figures[largest].items()
        ]
    return verdicts


def growth_verdicts(figures: Mapping[str, Mapping[str, Any]]) -> list[Verdict]:
    """Check how the cost of each request grows from the smallest table to the largest."""
    smallest, largest = (choose(figures, key=int) for choose in (min, max))
    return [
        _most(
            f"{operation}, from {int(smallest):,} to {int(largest):,} small items",
            taken / figures[smallest]["requests"][operation],
            SCALE_LIMIT,
        )
        for operation, taken in figures[largest]["requests"].items()
    ]


def model_verdicts(figures: Mapping[str, Any], missing: Iterable[str]) -> list[Verdict]:
    """Judge the modelling layer: beside the engine, beside bare boto3 and its peers, and its start."""
    verdicts = [
        _most(
            f"store, {operation}",
            times["store"] / times["engine"],
            MODEL_LIMITS[operation],
            "the engine's own",
        )
        for operation, times in figures["overhead"].items()
    ]
    decoded, cpu_of = figures["decoding"]["plan.decode"], figures["client"]
    verdicts += [
        _judge(
            what="an entity decoded",
            limit=f"at most {DECODE_LIMIT:g} µs of CPU",
            shown=f"{decoded:.2f} µs",
            good=decoded <= DECODE_LIMIT,
        ),
        *(
            _judge(
                what=f"client over HTTP, GetItem, {kind}",
                limit=f"at most {CLIENT_LIMIT:g} µs of CPU",
                shown=f"{cpu_of[kind]:.0f} µs",
                good=cpu_of[kind] <= CLIENT_LIMIT,
            )
            for kind in ("blocking", "async")
        ),
    ]
    for operation, times in figures["layers"].items():
        ours, cpu = times["solotable"], f"client CPU, {operation}"
        verdicts.append(_most(cpu, ours / times["boto3"], BOTO3_LIMIT, "bare boto3"))
        peers = {name: times[name] for name in ("PynamoDB", "dyntastic") if name in times}
        least = min(peers, key=peers.__getitem__, default=None)
        if least is None:
            continue
        faster = peers[least] / times["in process"]
        verdicts += [
            _judge(
                what=cpu,
                limit="below every peer",
                shown=f"{ours / peers[least]:.2f}x {least}",
                good=ours < peers[least],
                unknown=missing,
            ),
            _judge(
                what=f"in process, {operation}",
                limit=f"{IN_PROCESS_LIMIT:g}x the peers a CPU second",
                shown=f"{faster:.1f}x {least}",
                good=faster >= IN_PROCESS_LIMIT,
                unknown=missing,
            ),
        ]
    seconds = figures["definitions"]
    imported = seconds["import solotable"] - seconds["python alone"]
    defined = seconds["define and lint 100 entities"]
    return [
        *verdicts,
        _judge(
            what="import solotable",
            limit=f"under {IMPORT_SECONDS_LIMIT * 1000:g} ms",
            shown=f"{imported * 1000:.0f} ms",
            good=imported < IMPORT_SECONDS_LIMIT,
        ),
        _judge(
            what="100 entities defined and linted",
            limit=f"under {DEFINE_SECONDS_LIMIT:g} s",
            shown=f"{defined:.2f} s",
            good=defined < DEFINE_SECONDS_LIMIT,
        ),
    ]


def import_verdicts(ratio: float) -> list[Verdict]:
    """Check the import of a declaration beside that of Pydantic."""
    return [_most("from solotable import Entity, Table", ratio, IMPORT_RATIO_LIMIT, "Pydantic's BaseModel")]


def pattern_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Judge the data patterns: units as predicted, time beside plain writes, and the jobs' rates."""
    verdicts = []
    for title, each in figures["puts"].items():
        said = tuple(each["predicted"])
        verdicts += [
            _judge(
                what=f"{title}, units",
                limit=f"{said[0]:g} RCU and {said[1]:g} WCU",
                shown=f"{each['rcu']:g} and {each['wcu']:g}",
                good=(each["rcu"], each["wcu"]) == said,
            ),
            _most(f"{title}, time", each["pattern"] / each["plain"], PATTERN_LIMIT, "plain writes"),
        ]
    verdicts += [
        _judge(
            what=name,
            limit=f"{JOB_RATE_LIMIT:,} items/s",
            shown=f"{rate:,.0f}/s",
            good=rate >= JOB_RATE_LIMIT,
        )
        for name, rate in figures["jobs"].items()
    ]
    return verdicts


def backup_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Judge the price of continuous backups."""
    return [
        _most(title, each["cpu"]["with"] / each["cpu"]["without"], BACKUP_LIMIT, "a write without them")
        for title, each in figures.items()
    ]


def cms_verdicts(figures: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Judge the CMS: its pages beside a constant of the same app."""
    verdicts = []
    for place in ("embedded engine", "wire server"):
        rates = figures.get(place)
        share = None if rates is None else rates["page"] / rates["constant"]
        verdicts.append(
            _judge(
                what=f"pages, {place}",
                limit=f"{CMS_SHARE_LIMIT:.0%} of a constant",
                shown="no figure" if share is None else f"{share:.0%}",
                good=None if share is None else share >= CMS_SHARE_LIMIT,
            )
        )
    return verdicts


def survey_verdicts(
    savings: Mapping[tuple[str, str], Mapping[str, float] | None],
    whole: Mapping[str, Mapping[str, float]],
) -> list[Verdict]:
    """Judge the claims by size and place, and a complete survey beside the engine's own Query."""
    verdicts = []
    for (size, place), found in savings.items():
        for claim, least in SURVEY_CLAIMS.items():
            share = None if found is None else found[claim]
            # Savings of dollars are fewer of them, and faster is more in the same time.
            sign, form = (-1, "+.1%") if claim == "cost" else (1, "+.0%")
            verdicts.append(
                _judge(
                    what=f"{claim}, {size} survey, {place}",
                    limit=f"claim: {sign * least:+.0%}",
                    shown="the old layout fails" if share is None else format(sign * share, form),
                    good=None if share is None else share >= least,
                )
            )
    for place, each in whole.items():
        ratio = each["service"] / each["engine"]
        verdicts.append(_most(f"complete survey, {place}", ratio, WHOLE_SURVEY_LIMIT, "the engine's Query"))
    return verdicts


def portal_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Compare the portal's search with its limits: p95 of all kinds, and the longest delay of the index."""
    p95, behind = figures["searches"]["all"]["p95"], figures["behind"]["max"]
    return [
        _judge(
            what=f"search, {figures['documents']:,} documents",
            limit=f"p95 below {PORTAL_SEARCH_LIMIT:g} ms",
            shown=f"{p95:.1f} ms",
            good=p95 < PORTAL_SEARCH_LIMIT,
        ),
        _judge(
            what="search, behind writes",
            limit=f"at most {PORTAL_BEHIND_LIMIT:g} s",
            shown=f"{behind:.2f} s",
            good=behind <= PORTAL_BEHIND_LIMIT,
        ),
    ]


def migration_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Compare a migration with its limits."""
    copy, diff = figures["copy_per_cpu_second"], figures["diff_items_per_cpu_second"]
    error, ratio = figures["eta_error_percent"], figures["latency_ms"]["p99_ratio"]
    verdicts = [
        _judge(
            what="migration, copy",
            limit=f"at least {COPY_LIMIT:,} items a CPU second",
            shown=f"{copy:,.0f}",
            good=copy >= COPY_LIMIT,
        ),
        _judge(
            what="migration, diff",
            limit=f"at least {DIFF_LIMIT:,} items of both sides a CPU second",
            shown=f"{diff:,.0f}",
            good=diff >= DIFF_LIMIT,
        ),
        _judge(
            what="migration, application's p99 beside a copy",
            limit=f"at most {COPY_LATENCY_LIMIT:g} times",
            shown=f"{ratio:.2f} times",
            good=ratio <= COPY_LATENCY_LIMIT,
        ),
    ]
    if error is not None:
        verdicts.append(
            _judge(
                what="migration, forecast after 10 %",
                limit=f"at most {FORECAST_LIMIT:g} % off",
                shown=f"{error:.0f} %",
                good=error <= FORECAST_LIMIT,
            )
        )
    return verdicts


def sync_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Compare pushes and pulls with their limits."""
    crowd, view = figures["crowd"], figures["view"]
    wrong = crowd["lost"] + crowd["duplicated"]
    growth = view["whole_peak_kb"] / view["small_peak_kb"]
    rate = figures["processes"]["per_second"]
    return [
        _judge(
            what="sync, pull without changes",
            limit=f"at most {IDLE_PULL_LIMIT:g} RCU",
            shown=f"{figures['idle_pull_rcu']:g}",
            good=figures["idle_pull_rcu"] <= IDLE_PULL_LIMIT,
        ),
        _judge(
            what="sync, push of one item",
            limit=f"at most {PUSH_LIMIT:g} WCU",
            shown=f"{figures['push_wcu']:g}",
            good=figures["push_wcu"] <= PUSH_LIMIT,
        ),
        _judge(
            what="sync, mutations of a crowd",
            limit="none lost or repeated",
            shown=f"{wrong} of {crowd['pushes']}",
            good=wrong == 0,
        ),
        _judge(
            what="sync, p99 of a push in a crowd",
            limit=f"at most {PUSH_P99_LIMIT:g} ms",
            shown=f"{crowd['p99_ms']:.0f} ms",
            good=crowd["p99_ms"] <= PUSH_P99_LIMIT,
        ),
        _judge(
            what="sync, pushes over 50 spaces, two processes",
            limit=f"at least {PUSH_RATE_LIMIT:,} a second",
            shown=f"{rate:,.0f}",
            good=rate >= PUSH_RATE_LIMIT,
        ),
        _judge(
            what="sync, memory of a view ten times as large",
            limit=f"at most {VIEW_MEMORY_LIMIT:g} times",
            shown=f"{growth:.2f} times",
            good=growth <= VIEW_MEMORY_LIMIT,
        ),
    ]


def _most(what: str, ratio: float, limit: float, beside: str = "") -> Verdict:
    """Judge a ratio that is to stay below: times of ours by times of another."""
    text = f"at most {limit:g}x {beside}".rstrip()
    return _judge(what=what, limit=text, shown=_shown(ratio, limit), good=ratio <= limit)


def _shown(ratio: float, limit: float) -> str:
    """Return a ratio with two digits, or with three if two hide on which side of the limit it is."""
    hides = ratio != limit and round(ratio, 2) == limit
    return f"{ratio:.3f}x" if hides else f"{ratio:.2f}x"


def _least(what: str, ratio: float | None, limit: float, beside: str) -> Verdict:
    """Judge a ratio that is to be reached: our rate by another's; None where that was not measured."""
    return _judge(
        what=what,
        limit=f"{limit:g}x {beside}",
        shown="no figure" if ratio is None else _shown(ratio, limit),
        good=None if ratio is None else ratio >= limit,
        unknown=[beside] if ratio is None else [],
    )


def limiter_verdicts(figures: Mapping[str, Any]) -> list[Verdict]:
    """Judge the rate limiter beside zae-limiter, kind by kind, by the workload that suits it least.

    In process it is judged beside zae-limiter on each endpoint, as that makes a difference to it; over the
    wire, on the same one.
    """
    verdicts = []
    endpoints = [place for place in figures if place not in (*LIMITER_LIMITS, IN_MEMORY, REDIS)]
    for place, limit in LIMITER_LIMITS.items():
        for kind, endpoint in product(KINDS, endpoints):
            ours = _limiter(figures, place, OURS, kind, "rate")
            peer = _limiter(figures, endpoint, ZAE, kind, "rate")
            times = {each: ours[each] / peer[each] for each in ours if each in peer}
            verdicts.append(_times(f"acquires, {place}, {kind}", limit, times, on=f" on {endpoint}"))
    for place in endpoints:
        for kind in KINDS:
            ours = _limiter(figures, place, OURS, kind, "cpu_us")
            peer = _limiter(figures, place, ZAE, kind, "cpu_us")
            times = {each: peer[each] / ours[each] for each in ours if each in peer}
            verdicts.append(_times(f"CPU, {place}, {kind}", LIMITER_WIRE_LIMIT, times))
    return verdicts


def crowd_verdicts(figures: Mapping[str, Mapping[str, float]]) -> list[Verdict]:
    """Judge how much crowds get of what an exact bucket admits, on shards and on one item."""
    verdicts = []
    for what, limit in CROWD_LIMITS.items():
        shares = {
            name: each["share"]
            for name, each in figures.items()
            if ("one item" in name) == (what == "one item")
        }
        least = min(shares, key=shares.__getitem__)
        verdicts.append(
            _judge(
                what=f"admitted in a crowd, {what}",
                limit=f"{limit:g} % of an exact bucket, never more than it",
                shown=f"{shares[least]:.2f} %, {least}",
                good=shares[least] >= limit and max(shares.values()) <= MOST_ADMITTED,
            )
        )
    return verdicts


def _limiter(figures: Mapping[str, Any], place: str, name: str, kind: str, member: str) -> dict[str, float]:
    found = figures.get(place, {}).get(name, {}).get(kind, {})
    return {workload: figure[member] for workload, figure in found.items()}


def _times(what: str, limit: float, times: Mapping[str, float], on: str = "") -> Verdict:
    least = min(times, key=times.__getitem__, default=None)
    return _judge(
        what=what,
        limit=f"{limit:g}x {ZAE}{on}",
        shown="no figure" if least is None else f"{times[least]:.1f}x, {least}",
        good=None if least is None else times[least] >= limit,
        unknown=() if times else (f"{ZAE} or {OURS}",),
    )


def _judge(*, what: str, limit: str, shown: str, good: bool | None, unknown: Iterable[str] = ()) -> Verdict:
    without = ", ".join(unknown)
    if good is False:
        outcome: Outcome = "not reached"
    elif good is None or without:
        outcome = "not judged"
    else:
        outcome = "reached"
    return Verdict(
        what=what, limit=limit, figure=shown, outcome=outcome, note=f"without {without}" if without else ""
    )
