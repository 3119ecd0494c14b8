"""`make demo-migration`: move the surveys to one table under live writers, back, and forth again."""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from solotable import Database, connect, flow
from solotable.errors import MigrationNotReady, SolotableError
from solotable.flow.requests import BatchPut, BatchWriteItem
from solotable.migrations.diff import DiffOptions, DiffReport, diff
from solotable.migrations.migration import Migration
from solotable.migrations.router import Router
from solotable.migrations.switching.switch import Switched
from solotable.systems.surveys.entities.surveys import SurveyMeta
from solotable.systems.surveys.table import surveyor

from .access import NewTitles, OldTitles, SurveyTitles
from .mapping import survey_mapping
from .old_tables import OLD_TABLES
from .sample_data import DirtyData, old_items

_WRITERS = 3
#: Only a hang reaches this.
_READY_SECONDS = 280.0
_POLL_SECONDS = 0.05
_SHOW_SECONDS = 0.5
#: Between two changes of a writer.
_PAUSE_SECONDS = 0.1
_IDLE_SHARE = 20
#: Writes that show that a side takes them.
_SOME_WRITES = 12
_SOME_READS = 10


def say(text: str = "") -> None:
    """Print a line at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@dataclass
class Traffic:
    """Clients that rename and read surveys until they are stopped; writers do not share surveys."""

    router: Router[SurveyTitles]
    surveys: list[tuple[str, str]]
    stop: threading.Event = field(default_factory=threading.Event)
    titles: dict[str, str] = field(default_factory=dict)
    writes: int = 0
    errors: list[str] = field(default_factory=list)

    def start(self) -> list[threading.Thread]:
        """Start the writers."""
        threads = [threading.Thread(target=self._write, args=(number,)) for number in range(_WRITERS)]
        for thread in threads:
            thread.start()
        return threads

    def _write(self, number: int) -> None:
        dice = random.Random(number)  # noqa: S311 - which survey is next
        own = self.surveys[number::_WRITERS]
        while not self.stop.is_set():
            tenant, survey = dice.choice(own)
            title = f"{survey}, change {self.writes}"
            started = time.monotonic()
            try:
                self.router.tenant(tenant).write(
                    lambda side, survey=survey, title=title: side.rename(survey, title)  # type: ignore[misc]
                )
            except SolotableError as error:
                self.errors.append(f"{type(error).__name__}: {error}")
                continue
            self.titles[survey] = title
            self.writes += 1
            # On a busy machine the writers slow down with it, so that the copy can follow.
            self.stop.wait(_PAUSE_SECONDS + _IDLE_SHARE * (time.monotonic() - started))

    def read(self, survey: tuple[str, str], *, consistent: bool = False) -> str | None:
        """Read the title of a survey through the router."""
        tenant, survey_id = survey
        return self.router.tenant(tenant).read(
            lambda side: side.title(survey_id), entity=SurveyMeta, consistent=consistent
        )


class Demo:
    """The steps of the demo."""

    def __init__(self, old: Database, new: Database, surveys: list[tuple[str, str]]) -> None:
        self.migration = Migration("surveys", survey_mapping(), sources=old, target=new)
        self.router: Router[SurveyTitles] = Router(self.migration, old=OldTitles, new=NewTitles)
        self.traffic = Traffic(self.router, surveys)
        self._shown = ""

    def run(self) -> int:
        """Run all steps; return 0 if no client met an error and no write was lost."""
        stop = threading.Event()
        threads = self.traffic.start()
        worker = threading.Thread(target=lambda: self.migration.work(workers=2, stop=stop))
        try:
            self._copy(worker)
            self._reads()
            self._writes()
            self._compare()
            self._complete()
        finally:
            self.traffic.stop.set()
            for thread in threads:
                thread.join()
            stop.set()
            worker.join()
            self.router.close()
        return self._verify()

    def _copy(self, worker: threading.Thread) -> None:
        self.migration.create()
        self.migration.start()
        worker.start()
        step("copy, while three writers rename surveys")
        wait_until(lambda: self._show_copy() and self.migration.record().state == "Running")
        self._compare()

    def _show_copy(self) -> bool:
        now = self.migration.status()
        line = (
            f"   {now.copy.percent:5.1f} %  {now.copy.scanned:,} items of {now.copy.total:,}, "
            f"{now.copy.outputs:,} written, {now.applied:,} changes applied, {now.dead_letters} dead letters"
        )
        if line != self._shown:
            say(line)
            self._shown = line
            time.sleep(_SHOW_SECONDS)
        return True

    def _compare(self) -> None:
        def compared() -> DiffReport | None:
            # On a busy machine the replication may lag behind the comparison: compare again.
            report = diff(self.migration, DiffOptions())
            return report if report.is_equal else None

        report: DiffReport = wait_until(compared)
        step(f"diff: {report.expected:,} items compared, {report.total} differences")

    def _reads(self) -> None:
        self.migration.mirror(100)
        tenants = sorted({tenant for tenant, _ in self.traffic.surveys})
        for percent in (10, 50, 100):
            self.migration.switch_reads(percent)
            wait_until(partial(self._knows, percent))
            on_target = sum(map(self._is_on_target, tenants))
            for survey in self.traffic.surveys:
                self.traffic.read(survey)
            step(f"switch-reads {percent} %: {on_target} of {len(tenants)} tenants read the new table")
        wait_until(lambda: self.router.status().mirror.compared >= _SOME_READS)
        mirror = self.router.status().mirror
        say(
            f"   mirror: {mirror.compared} reads compared, {mirror.different} different, "
            f"{mirror.lagging} behind, median latency {mirror.delta() * 1000:+.2f} ms"
        )
        self.migration.mirror(0)

    def _knows(self, percent: float) -> bool:
        self.traffic.read(self.traffic.surveys[0], consistent=True)
        return self.router.routing.reads_percent == percent

    def _is_on_target(self, tenant: str) -> bool:
        return self.router.routing.read_side("SurveyMeta", tenant) == "target"

    def _writes(self) -> None:
        self._switch("switch-writes", self.migration.switch_writes)
        self._switch("reverse", self.migration.reverse)
        self._switch("switch-writes", self.migration.switch_writes)

    def _switch(self, verb: str, switch: Callable[[], Switched]) -> None:
        switched: Switched = wait_until(lambda: _ready(switch))
        before = self.traffic.writes
        wait_until(lambda: self.traffic.writes > before + _SOME_WRITES)
        step(
            f"{verb}: the {switched.to} takes writes; pause {switched.pause_seconds * 1000:.0f} ms, "
            f"{len(self.traffic.errors)} client errors"
        )

    def _complete(self) -> None:
        done = self.migration.complete(keep_data=True)
        step(f"complete --keep-data: {done.items:,} items of the new table are plain now")

    def _verify(self) -> int:
        traffic = self.traffic
        lost = [
            survey
            for survey in traffic.surveys
            if survey[1] in traffic.titles
            and traffic.read(survey, consistent=True) != traffic.titles[survey[1]]
        ]
        pauses = self.router.status().pauses
        say()
        say(
            f"{traffic.writes:,} writes, {len(traffic.errors)} client errors, {len(lost)} lost. "
            f"{len(pauses.seconds)} writes waited for a switch, p99 {pauses.percentile(0.99) * 1000:.0f} ms."
        )
        for error in traffic.errors[:3]:
            say(f"   {error}")
        return 1 if traffic.errors or lost else 0


def _ready(switch: Callable[[], Switched]) -> Switched | None:
    """Switch, or return None while the other side is behind."""
    try:
        return switch()
    except MigrationNotReady:
        return None


_started = time.monotonic()


def step(text: str) -> None:
    """Print a step with the seconds since the start."""
    say(f"{time.monotonic() - _started:5.1f} s  {text}")


def wait_until(condition: Callable[[], Any]) -> Any:
    """Return the first true value of a condition."""
    limit = time.monotonic() + _READY_SECONDS
    while not (found := condition()):
        if time.monotonic() > limit:
            raise SystemExit("The demo waited for minutes; the machine is too busy.")
        time.sleep(_POLL_SECONDS)
    return found


def fill(old: Database, size: DirtyData) -> list[tuple[str, str]]:
    """Write the old items; return the tenant and the id of each survey."""
    surveys: list[tuple[str, str]] = []
    pending: dict[str, list[BatchPut]] = {}
    for table, values in old_items(size):
        if table == "Surveys":
            surveys.append((values["tenant_id"], values["id"]))
        item = {name: flow.encode_value(value) for name, value in values.items()}
        pending.setdefault(table, []).append(BatchPut(item=item))
    for table, puts in pending.items():
        for at in range(0, len(puts), 25):
            request = BatchWriteItem(tables=((table, tuple(puts[at : at + 25])),))
            flow.run(flow.send(flow.scope_of(old), request), old)
    return surveys


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo in a temporary folder; return its exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tenants", type=int, default=20, help="tenants in the old tables")
    parser.add_argument("--surveys", type=int, default=5, help="surveys of each tenant")
    arguments = parser.parse_args(argv)
    size = DirtyData(
        tenants=arguments.tenants, surveys=arguments.surveys, sections=2, elements=2, components=1, images=2
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        connect(f"sqlite:///{Path(folder) / 'old.db'}?durability=relaxed", *OLD_TABLES) as old,
        surveyor.open(f"sqlite:///{Path(folder) / 'new.db'}?durability=relaxed") as new,
    ):
        surveys = fill(old, size)
        say(f"Eight old tables with {len(surveys)} surveys of {arguments.tenants} tenants; one new table.")
        return Demo(old, new, surveys).run()


if __name__ == "__main__":
    raise SystemExit(main())
