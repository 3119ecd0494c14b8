"""Run the measurements, print them as ratios and keep them as JSON, and as a picture for the README."""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from bench import backups, chart, commits, floors, growth, in_process, limits, report, start
from bench.limits import Verdict
from bench.models import compare as models
from bench.models import imports
from bench.patterns import puts as patterns
from bench.systems import cms, limiter, limiter_crowd, migration, portal, sync
from bench.systems.surveys import compare as surveys
from bench.systems.surveys import granular_layout, old_layout, whole_survey, workload
from bench.systems.surveys import tables as survey_tables
from bench.wire import peers, workers
from bench.wire import race as wire
from bench.wire.load import CONNECTIONS, generator_name
from bench.wire.peers import Mode

SMALL = 10_000
LARGE = 1_000_000
#: Items of the largest table of `growth`.
GROWN = 10_000_000
GROWN_QUICK = 100_000
#: Parts that run only if they are named: one takes many minutes, the other needs perf.
BY_NAME = frozenset({"growth", "floors"})
#: What runs against each other over the wire.
GROUPS: dict[str, tuple[Mode, ...]] = {"memory": ("memory",), "disk": ("disk", "relaxed")}
RESULTS = Path(__file__).parent / "results"


def main() -> None:
    """Run the parts that are named; by default all but those of BY_NAME. See --help."""
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    named = f"one or more of {', '.join(PARTS)}; by default all but {', '.join(sorted(BY_NAME))}"
    parser.add_argument("parts", nargs="*", metavar="part", help=named)
    parser.add_argument("--quick", action="store_true", help="few short rounds: a look, not a figure")
    parser.add_argument("--rounds", type=int, default=5, help="wire: rounds of each operation (5)")
    parser.add_argument("--large", type=int, help="in-process: items of the large table (0: leave it out)")
    parser.add_argument("--items", type=int, help=f"growth: items of the largest table ({GROWN:,})")
    parser.add_argument("--out", type=Path, help="folder of the results (bench/results; quick: .cache/bench)")
    chosen = parser.parse_args()
    # A look is not to overwrite figures.
    chosen.out = chosen.out or (peers.ROOT / ".cache" / "bench" if chosen.quick else RESULTS)
    if unknown := sorted(set(chosen.parts) - set(PARTS)):
        parser.error(f"no such part: {', '.join(unknown)} (there are {', '.join(PARTS)})")
    try:
        growth.sizes(chosen.items or GROWN)
    except ValueError as error:
        parser.error(f"--items: {error}")
    # So that the servers are stopped as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("stopped"))
    say([report.build_line(), *report.warnings()])
    verdicts: list[Verdict] = []
    begin = time.monotonic()
    for name, part in PARTS.items():
        if name in (chosen.parts or PARTS.keys() - BY_NAME):
            with tempfile.TemporaryDirectory(prefix="solotable-bench-") as folder:
                verdicts += part(chosen, Path(folder))
    print(f"limits ({time.monotonic() - begin:,.0f} s in all)")
    say(report.verdict_table(verdicts))
    if any(verdict.outcome == "not reached" for verdict in verdicts):
        print("what bounds those that are not reached")
        say(report.bounds(verdicts))
    if chosen.quick:
        print("  a quick look: too few rounds for a figure")


def say(lines: Iterable[str]) -> None:
    """Print the lines of a table, and a line between it and the next."""
    for line in lines:
        print(line)
    print(flush=True)


def run_in_process(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """The engine in process beside raw SQLite."""
    large = chosen.large if chosen.large is not None else 0 if chosen.quick else LARGE
    figures: dict[str, Any] = {}
    for size in (SMALL, *([large] if large else [])):
        print(f"in process, {size:,} items of 0.9 KB, relaxed durability", flush=True)
        figures[str(size)] = in_process.measure(folder, size, quick=chosen.quick)
        say(report.in_process_table(figures[str(size)]))
    if large:
        say(report.growth_table(figures[str(SMALL)], figures[str(large)]))
    verdicts = limits.in_process_verdicts(figures)
    keep(chosen, "in-process", report.record("in process, microseconds a call", figures, verdicts))
    return verdicts


def run_growth(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """The cost of a request by the number of items in its table."""
    largest = chosen.items or (GROWN_QUICK if chosen.quick else GROWN)
    print(f"growth from {growth.SMALLEST:,} to {largest:,} items of 0.1 KB, relaxed durability", flush=True)
    figures = growth.measure(
        folder, largest, quick=chosen.quick, progress=lambda said: print(f"  {said}", flush=True)
    )
    say(report.sizes_table(figures))
    verdicts = limits.growth_verdicts(figures)
    keep(chosen, "growth", report.record("growth, microseconds of CPU a request", figures, verdicts))
    return verdicts


def run_floors(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Where the server's CPU goes, by operation."""
    print(f"shares of the server's CPU under load, in memory; load by {generator_name()}", flush=True)
    figures = floors.measure(folder, quick=chosen.quick)
    if figures is None:
        say(["  missing: perf is not on the PATH"])
        return []
    say(report.times_table(figures, "per cent of the server's CPU"))
    keep(chosen, "floors", report.record("shares of the server's CPU, per cent", figures, []))
    return []


def run_wire(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Every server that can be had, memory against memory and disk against disk."""
    plan = wire.Plan(rounds=1, seconds=1) if chosen.quick else wire.Plan(rounds=chosen.rounds)
    print(f"over the wire: {CONNECTIONS} connections, {plan.items:,} items of 0.9 KB, one index")
    print(f"load by {generator_name()}", flush=True)
    everyone = peers.contenders()
    versions, missing = peers.ready(everyone)
    figures: dict[str, Any] = {}
    absent: dict[str, dict[str, str]] = {}
    for title, modes in GROUPS.items():
        print(f"{title} against {title}", flush=True)
        entered = [
            (contender.name + (" relaxed" if mode == "relaxed" else ""), contender, mode)
            for contender in everyone
            for mode in modes
            if mode in contender.modes
        ]
        racing = [entry for entry in entered if entry[1].name in versions]
        figures[title], failed = wire.race(racing, folder / title, plan)
        absent[title] = {
            name: missing[each.name] for name, each, _ in entered if each.name in missing
        } | failed
        names = [name for name, _, _ in entered]
        _show(figures[title], names, absent[title])
        _draw(chosen.out, title, figures[title], names, versions, plan)
    verdicts = limits.memory_verdicts(figures["memory"], absent["memory"])
    verdicts += limits.disk_verdicts(figures["disk"])
    verdicts += [each for where, found in figures.items() for each in limits.read_verdict(found, where)]
    facts = {"versions": versions, "missing": absent, "items": plan.items, "rounds": plan.rounds}
    facts |= {"seconds": plan.seconds, "connections": CONNECTIONS, "load": generator_name()}
    keep(chosen, "wire", report.record("over the wire, requests a second", figures, verdicts, **facts))
    return verdicts


def _show(figures: dict[str, Any], names: list[str], absent: dict[str, str]) -> None:
    print()
    say(report.wire_chart(figures, names))
    say(report.wire_ratios(figures, names))
    say([*report.faults(figures), *(f"  missing: {name}: {why}" for name, why in absent.items())])


def _draw(
    out: Path,
    title: str,
    figures: dict[str, Any],
    names: list[str],
    versions: dict[str, str],
    plan: wire.Plan,
) -> None:
    where = "in memory" if title == "memory" else "on disk"
    picture = chart.svg(
        figures,
        names,
        title=f"Requests per second over the wire, {where}",
        below=f"{CONNECTIONS} connections, {plan.items:,} items of 0.9 KB, one index that projects all; "
        "more is better. Beside each title: times the fastest peer.",
        notes=", ".join(f"{name} {version}" for name, version in versions.items() if name in names),
    )
    out.mkdir(parents=True, exist_ok=True)
    path = out / ("wire.svg" if title == "memory" else f"wire-{title}.svg")
    path.write_text(picture, encoding="utf-8")
    print(f"drawn in {path}\n", flush=True)


def run_workers(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Our server with one process and with two workers."""
    print(f"workers: {CONNECTIONS} connections, load by {generator_name()}", flush=True)
    figures = workers.measure(folder, quick=chosen.quick)
    say(workers.table(figures))
    facts = {"items": workers.ITEMS, "connections": CONNECTIONS, "load": generator_name()}
    verdicts = limits.worker_verdicts(figures)
    keep(chosen, "workers", report.record("two workers, requests a second", figures, verdicts, **facts))
    return verdicts


def run_commits(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Durable commits beside raw SQLite."""
    print("durable commits: PutItem in process, fsynced before it is answered ", end="", flush=True)
    figures = commits.measure(folder, rounds=3 if chosen.quick else 15, seconds=0.5 if chosen.quick else 1.0)
    fsync = commits.fsync_milliseconds(folder)
    print(f"\n  an fsync of 4 KB takes {fsync:.2f} ms here")
    say(report.commits_table(figures))
    verdicts = limits.commit_verdicts(figures)
    facts = {"fsync_milliseconds": fsync}
    keep(chosen, "commits", report.record("durable commits a second", figures, verdicts, **facts))
    return verdicts


def run_start(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """First answer and idle memory of every server."""
    print("from the start of the process to the first answer", flush=True)
    everyone = peers.contenders()
    versions, missing = peers.ready(everyone)
    having = [each for each in everyone if each.name in versions]
    figures = start.measure(having, folder, times=2 if chosen.quick else 5)
    print()
    say(report.start_table(figures, missing))
    verdicts = limits.start_verdicts(figures)
    facts = {"versions": versions, "missing": missing}
    keep(chosen, "start", report.record("start and idle memory", figures, verdicts, **facts))
    return verdicts


def run_imports(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """CPU time of importing what a declaration needs, beside Pydantic and PynamoDB."""
    print("imports in fresh interpreters: CPU time, .pyc files warm", flush=True)
    figures, missing = imports.measure(quick=chosen.quick)
    say(imports.table(figures))
    say([f"  missing: {name}: {why}" for name, why in missing.items()])
    verdicts = limits.import_verdicts(imports.ratio(figures, "solotable"))
    keep(chosen, "imports", report.record("imports, ms of CPU", figures, verdicts, missing=missing))
    return verdicts


def run_models(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Our modelling layer beside the engine, and beside its peers."""
    print("the store beside the engine's own requests, in process", flush=True)
    figures: dict[str, Any] = {"overhead": models.overhead(quick=chosen.quick)}
    say(report.times_table(figures["overhead"], "microseconds of CPU a call"))
    figures["decoding"] = models.decoding(quick=chosen.quick)
    say(f"  {what:<38}{each:>8.2f} µs of CPU an entity" for what, each in figures["decoding"].items())
    print("our client over HTTP: its own CPU, the kernel's work for it included", flush=True)
    figures["client"] = models.client(folder, quick=chosen.quick)
    say(f"  GetItem, {what:<29}{each:>8.0f} µs of CPU" for what, each in figures["client"].items())
    print("a condition recorded from where=, beside its text rendered and compiled", flush=True)
    figures["conditions"] = models.conditions(quick=chosen.quick)
    say(report.times_table(figures["conditions"], "microseconds of CPU a call"))
    print("modelling layers over one wire server: the client's own CPU", flush=True)
    figures["layers"], missing = models.beside_peers(folder, quick=chosen.quick)
    say(report.times_table(figures["layers"], "microseconds of CPU a call"))
    say([f"  missing: {name}: {why}" for name, why in missing.items()])
    figures["definitions"] = models.definitions(quick=chosen.quick)
    say(f"  {what:<38}{seconds * 1000:>8,.0f} ms" for what, seconds in figures["definitions"].items())
    verdicts = limits.model_verdicts(figures, missing)
    keep(chosen, "models", report.record("the modelling layer", figures, verdicts, missing=missing))
    return verdicts


def run_patterns(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """The data patterns: units, time beside plain writes, and the rates of the jobs."""
    print("data patterns, in process: units and time of a put", flush=True)
    figures: dict[str, Any] = {"puts": patterns.measure(quick=chosen.quick)}
    say(report.patterns_table(figures["puts"]))
    figures["jobs"] = patterns.rates(quick=chosen.quick)
    say(f"  {name:<30}{rate:>10,.0f} items/s" for name, rate in figures["jobs"].items())
    verdicts = limits.pattern_verdicts(figures)
    keep(chosen, "patterns", report.record("the data patterns", figures, verdicts))
    return verdicts


def run_backups(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Writes with and without continuous backups."""
    print("continuous backups: the same writes with and without them, relaxed file", flush=True)
    figures = backups.measure(folder, quick=chosen.quick)
    say(backups.table(figures))
    verdicts = limits.backup_verdicts(figures)
    keep(chosen, "backups", report.record("continuous backups, microseconds a write", figures, verdicts))
    return verdicts


def run_cms(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Pages of the CMS through HTTP beside a constant."""
    print("pages of the CMS through HTTP, uvicorn with one worker", flush=True)
    figures = cms.measure(folder, quick=chosen.quick)
    if figures is None:
        say(["  missing: wrk is not here"])
        return limits.cms_verdicts({})
    for place, rates in figures.items():
        share = rates["page"] / rates["constant"]
        print(
            f"  {place:<20}{rates['constant']:>9,.0f}/s constant{rates['page']:>9,.0f}/s pages{share:>8.0%}"
        )
    say([])
    verdicts = limits.cms_verdicts(figures)
    keep(chosen, "cms", report.record("the CMS through HTTP, requests a second", figures, verdicts))
    return verdicts


def run_limiter(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Our rate limiter beside zae-limiter, `limits` and a Lua bucket: in process, over HTTP, on Redis."""
    print("rate limiters: acquires of two limits, all admitted; async is 16 callers on one loop", flush=True)
    found = limiter.measure(folder, quick=chosen.quick)
    say(f"  {name:<18}{version}" for name, version in found.versions.items())
    say(limiter.table(found.figures))
    say([f"  missing: {name}: {why}" for name, why in found.missing.items()])
    verdicts = limits.limiter_verdicts(found.figures)
    facts = {"versions": found.versions, "missing": found.missing, "endpoints": limiter.ENDPOINTS}
    keep(chosen, "limiter", report.record("rate limiters", found.figures, verdicts, **facts))
    return verdicts


def run_crowd(chosen: argparse.Namespace, _folder: Path) -> list[Verdict]:
    """Simulated crowds on one bucket of our rate limiter, beside an exact bucket."""
    print("crowds: tokens admitted of what an exact bucket admits; 8 processes, simulated", flush=True)
    figures = limiter_crowd.measure(quick=chosen.quick)
    say(limiter_crowd.table(figures))
    verdicts = limits.crowd_verdicts(figures)
    keep(chosen, "crowd", report.record("crowds on one bucket", figures, verdicts))
    return verdicts


def run_surveys(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Surveys as granular items beside one JSON document each, in eight tables."""
    print(f"surveys: {granular_layout.INDEXES} indexes of ours, {old_layout.INDEXES} of the old layout")
    say(survey_tables.load_lines())
    sizes: dict[str, Any] = {}
    savings: dict[tuple[str, str], dict[str, float] | None] = {}
    with surveys.places(folder) as (places, missing):
        for size in (workload.TINY,) if chosen.quick else workload.SIZES:
            sizes[size.name] = {"parts": size.parts, "surveys": size.surveys, "places": {}}
            for place, url in places.items():
                print(f"{size.name} surveys of {size.parts} parts, {place}", flush=True)
                found = surveys.measure(url, size, rounds=2 if chosen.quick else 11)
                say(survey_tables.text_table(found))
                sizes[size.name]["places"][place] = found
                savings[size.name, place] = survey_tables.savings(found)
    say([f"  missing: {name}: {why}" for name, why in missing.items()])
    print("a complete survey of 30 sections, 150 elements and 400 components: ms of CPU")
    whole = whole_survey.measure(folder, workload.FULL, rounds=3 if chosen.quick else 40)
    say(
        f"  {place:<10}{each['engine']:>8.1f} engine{each['service']:>8.1f} service, "
        f"{each['requests']:g} requests"
        for place, each in whole.items()
    )
    verdicts = limits.survey_verdicts(savings, whole)
    facts: dict[str, Any] = {"missing": missing, "prices": workload.prices()}
    facts |= {"surveyors": workload.SURVEYORS, "days_a_month": workload.DAYS_A_MONTH}
    facts |= {"load_a_day": workload.LOAD}
    figures = {"sizes": sizes, "complete survey": whole}
    keep(chosen, "surveys", report.record("surveys, old layout and ours", figures, verdicts, **facts))
    return verdicts


def run_portal(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """The portal's search in process, and how far its index is behind writes."""
    count = portal.QUICK_DOCUMENTS if chosen.quick else portal.DOCUMENTS
    print(f"the portal's search over {count:,} documents in process, pages of 20 with facets", flush=True)
    figures = portal.measure(folder, quick=chosen.quick)
    say(portal.table(figures))
    verdicts = limits.portal_verdicts(figures)
    keep(chosen, "portal", report.record("the portal's search, milliseconds", figures, verdicts))
    return verdicts


def run_migration(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """A migration in process: its copy, its comparison, its forecast, and an application beside it."""
    count = migration.QUICK_ITEMS if chosen.quick else migration.ITEMS
    print(f"a migration of {count:,} items of 0.4 KB in process, relaxed durability", flush=True)
    figures = migration.measure(folder, quick=chosen.quick)
    say(migration.table(figures))
    verdicts = limits.migration_verdicts(figures)
    keep(chosen, "migration", report.record("a migration, items a second", figures, verdicts))
    return verdicts


def run_sync(chosen: argparse.Namespace, folder: Path) -> list[Verdict]:
    """Sync in process: pushes and pulls, a crowd on one space, and a whole view."""
    print("sync in process, items of 0.5 KB, relaxed durability", flush=True)
    figures = sync.measure(folder, quick=chosen.quick)
    say(sync.table(figures))
    verdicts = limits.sync_verdicts(figures)
    keep(chosen, "sync", report.record("sync, capacity units and milliseconds", figures, verdicts))
    return verdicts


def keep(chosen: argparse.Namespace, name: str, stored: dict[str, Any]) -> None:
    """Write a part's record, and say where."""
    print(f"written to {report.save(chosen.out, name, {**stored, 'quick': chosen.quick})}\n", flush=True)


PARTS: dict[str, Callable[[argparse.Namespace, Path], list[Verdict]]] = {
    "in-process": run_in_process,
    "growth": run_growth,
    "floors": run_floors,
    "wire": run_wire,
    "workers": run_workers,
    "commits": run_commits,
    "start": run_start,
    "imports": run_imports,
    "models": run_models,
    "patterns": run_patterns,
    "backups": run_backups,
    "cms": run_cms,
    "limiter": run_limiter,
    "crowd": run_crowd,
    "surveys": run_surveys,
    "portal": run_portal,
    "migration": run_migration,
    "sync": run_sync,
}


if __name__ == "__main__":
    main()
