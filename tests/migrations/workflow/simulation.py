"""A migration in a random world: writers, workers that pause and die, faults, switches; one seed, one run.

It checks the invariants at the end of each phase: the target is what the sources become, every
acknowledged write is on the serving side, and the way back loses nothing.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from solotable._protocol.requests import Request, TransactWriteItems
from solotable.errors import MigrationNotReady, ServiceError, SwitchTimedOut, TransportError
from solotable.migrations.switching.switch import SwitchOptions
from solotable.migrations.worker import Worker
from solotable.testing.engines.faults import Faults
from solotable.testing.engines.faulty import FaultyEngine

from .clients import Client, Killed, MortalEngine
from .lab import Lab, Section, Survey, mapping

_TRANSIENT = (ServiceError, TransportError)


class Simulation:
    """One run, which a seed decides."""

    def __init__(self, lab: Lab, seed: int) -> None:
        self.lab = lab
        self.dice = random.Random(seed)
        self.faults = Faults()
        self.progress = 0
        self._workers = [self._worker(), self._worker()]
        self._nested = False
        #: The worker that is in the middle of a step.
        self._busy: int | None = None
        self._switching = False
        self.client: Client | None = None
        self.killed = self.interrupted = 0

    def run(self) -> None:
        """Copy, catch up, switch, return, and check."""
        lab, dice = self.lab, self.dice
        lab.fill(users=dice.randrange(12), surveys=dice.randrange(6), profiles=dice.randrange(6))
        lab.start(segments=dice.randrange(1, 4), window_seconds=dice.choice([0.001, 0.05, 60]))
        self.client = Client(lab)
        self._declare_faults()
        for engine in (lab.old_engine, lab.new_engine):
            engine.before = self._interrupt
        self._until(lambda: lab.migration.record().state == "Running")
        for _ in range(dice.randrange(10)):
            self._act()
        self._settle(lab.check)
        for _ in range(dice.randrange(3)):
            self._switch(to_target=True)
            for _ in range(dice.randrange(8)):
                self._act()
            self._settle(self._check_reverse)
            self._switch(to_target=False)
            for _ in range(dice.randrange(8)):
                self._act()
            self._settle(lab.check)

    def _worker(self) -> Worker:
        lab = self.lab
        old, new = (FaultyEngine(engine, self.faults) for engine in (lab.old_engine, lab.new_engine))
        return Worker(lab.opened(old, new))

    def _declare_faults(self) -> None:
        seed = self.dice.randrange(10**6)
        for number, operation in enumerate(("TransactWriteItems", "UpdateItem", "BatchGetItem", "Query")):
            self.faults.throttle(operation, probability=0.02, seed=seed + number)
            self.faults.timeout(operation, applied=True, probability=0.03, seed=seed + 10 + number)
            self.faults.timeout(operation, applied=False, probability=0.02, seed=seed + 20 + number)

    def _until(self, is_true: Callable[[], bool]) -> None:
        for _ in range(3000):
            if is_true():
                return
            self._act()
        raise AssertionError(f"The migration makes no progress: {self.lab.migration.record()}")

    def _act(self) -> None:
        """Let a writer write, a worker work, a worker die, or time pass."""
        match self.dice.randrange(12):
            case 0 | 1 | 2:
                self._write()
            case 3:
                self.lab.clock.ahead += self.dice.choice([0.01, 1, 12])
            case 4:
                self._kill_a_worker()
            case _:
                self._work()
        scanned = self.lab.migration.status().copy.scanned
        assert scanned >= self.progress, "progress went back"
        self.progress = scanned

    def _work(self) -> None:
        number = self.dice.randrange(2)
        number = 1 - number if number == self._busy else number
        before, self._busy = self._busy, number
        try:
            self._workers[number].step()
        except _TRANSIENT:
            # It could not read the record.
            self._workers[number] = self._worker()
        finally:
            self._busy = before

    def _kill_a_worker(self) -> None:
        """Start a worker that dies after some requests."""
        life = [self.dice.randrange(1, 40)]
        executed = self.dice.random() < 0.5
        old, new = (
            MortalEngine(engine, life, executed=executed)
            for engine in (self.lab.old_engine, self.lab.new_engine)
        )
        worker = Worker(self.lab.opened(old, new))
        try:
            for _ in range(4):
                worker.step()
            worker.release()
        except Killed:
            self.killed += 1

    def _interrupt(self, request: Request[Any]) -> None:
        """Do something else before a request, as if its process had paused there."""
        if self._nested or self.dice.random() > (0.25 if isinstance(request, TransactWriteItems) else 0.02):
            return
        self._nested = True
        self.interrupted += 1
        try:
            if self._switching:
                self._client_write()
                return
            for _ in range(self.dice.randrange(1, 4)):
                if self.dice.random() < 0.6:
                    self._write()
                else:
                    self._work()
            if self.dice.random() < 0.3:
                self.lab.clock.ahead += 12
        finally:
            self._nested = False

    def _write(self) -> None:
        lab, number = self.lab, self.dice.randrange(8)
        text = f"At {self.dice.randrange(1000)}"
        kind = self.dice.randrange(4)
        if kind == 0:
            self._client_write()
        elif lab.migration.record().writes == "target":
            self._write_target(kind, number, text)
        elif kind == 1:
            # An address belongs to at most one user: it moves only after the other one is deleted.
            if self.dice.random() < 0.3:
                lab.delete("Users", f"u{number}")
            else:
                lab.user(number, text, email=f"{self.dice.choice(['a', 'b'])}{number}@x.example")
        elif kind == 2:
            if self.dice.random() < 0.3:
                lab.delete("Surveys", f"s{number}")
            else:
                lab.survey(number, sections=self.dice.randrange(5), title=text)
        else:
            table = self.dice.choice(["Accounts", "Settings"])
            if self.dice.random() < 0.4:
                lab.delete(table, f"p{number}")
            else:
                lab.put(table, id=f"p{number}", **{"name" if table == "Accounts" else "theme": text})

    def _write_target(self, kind: int, number: int, text: str) -> None:
        lab = self.lab
        if kind == 1:
            lab.new.put(Survey(survey_id=f"s{number}", title=text))
        elif lab.new.get(Survey, survey_id=f"s{number}", consistent=True) is not None:
            section = str(self.dice.randrange(5))
            if kind == 2:
                lab.new.put(Section(survey_id=f"s{number}", number=section, text=text))
            else:
                lab.new.delete(Section, survey_id=f"s{number}", number=section)

    def _client_write(self) -> None:
        assert self.client is not None
        number = self.dice.randrange(6)
        name = None if self.dice.random() < 0.3 else f"At {self.dice.randrange(1000)}"
        self.client.write(f"c{number}", name)

    def _settle(self, check: Callable[[], None] | None = None) -> None:
        """End the interruptions and faults for a moment, apply everything, and check."""
        self._pause_world(paused=True)
        lab = self.lab
        lab.clock.ahead += 12
        lab.run_to("Running", "Verified", "WritesSwitched")
        lab.catch_up()
        assert self.client is not None
        self.client.flush()
        lab.catch_up()
        self.client.check()
        assert lab.migration.dead_letters() == []
        if check is not None:
            check()
        self._workers = [self._worker(), self._worker()]
        self._pause_world(paused=False)

    def _pause_world(self, *, paused: bool) -> None:
        self.faults.clear()
        if not paused:
            self._declare_faults()
        for engine in (self.lab.old_engine, self.lab.new_engine):
            engine.before = None if paused else self._interrupt

    def _switch(self, *, to_target: bool) -> None:
        """Switch under the writes of a client; the switching process may die, and another one tries again."""
        lab = self.lab
        for attempt in range(60):
            record = lab.migration.record()
            if record.writes == ("target" if to_target else "source"):
                break
            self._pause_world(paused=True)
            lab.catch_up()
            if record.state == "Running":
                lab.migration.record_diff(compared=1, differences=0, flips=record.flips)
            life = [10**9 if attempt > 4 else self.dice.randrange(1, 160)]
            old, new = (
                MortalEngine(engine, life, executed=attempt % 2 == 0)
                for engine in (lab.old_engine, lab.new_engine)
            )
            migration = lab.opened(old, new)
            self._switching = True
            self._pause_world(paused=False)
            try:
                (migration.switch_writes if to_target else migration.reverse)(
                    SwitchOptions(timeout_seconds=5)
                )
            except (Killed, SwitchTimedOut, MigrationNotReady):
                lab.clock.ahead += 12
            finally:
                self._switching = False
        self._settle()
        assert lab.migration.record().writes == ("target" if to_target else "source")

    def _check_reverse(self) -> None:
        """Assert that the sources become what the target is, on the way back and forth."""
        lab = self.lab
        back = mapping.reversed()
        expected: dict[tuple[str, str], Any] = {}
        for item in lab.stored().values():
            for output in back.outputs("App", item).items.values():
                built = back.gather(output, lab.new) if output.kind == "gather" else output.item
                if built is not None:
                    expected[output.table, output.key["id"]["S"]] = built
        stored = {(name, item["id"]["S"]): item for name, items in lab.sources().items() for item in items}
        assert (stored.keys() - expected.keys(), expected.keys() - stored.keys()) == (set(), set())
        for (name, key), item in stored.items():
            built = expected[name, key]
            assert mapping.outputs(name, item).items == mapping.outputs(name, built).items, (item, built)
