"""An engine that records each request with its cost."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solotable._flows.consumption import units_of
from solotable._partiql import Reads, parse_statement, plan
from solotable._protocol.engine import Capabilities, Engine
from solotable._protocol.requests import ExecuteStatement, Request, Scan
from solotable.errors import SolotableError

from .journal import Journal, Record
from .wrapper import EngineWrapper


class RecordingEngine(EngineWrapper):
    """Answers as the inner engine does, and writes a journal.

    A flow's waits call `sleep`; without it, the inner engine waits.
    """

    def __init__(
        self,
        engine: Engine,
        journal: Journal | None = None,
        *,
        sleep: Callable[[float], None] | None = None,
    ) -> None:
        super().__init__(engine)
        self.journal = Journal() if journal is None else journal
        self._sleep = sleep

    @property
    def capabilities(self) -> Capabilities:
        """What the engine inside declares, with the time that flows wait noted."""
        return replace(super().capabilities, sleep=self.sleep)

    def handle(self, request: Request[Any], /) -> Any:
        """Answer and record one request."""
        # The journal needs the capacity even if the caller did not request it.
        unrequested = getattr(request, "capacity", None) == "NONE"
        sent: Any = replace(request, capacity="INDEXES") if unrequested else request  # type: ignore[type-var]  # a record
        began = time.perf_counter()
        try:
            reply = self.inner.handle(sent)
        except Exception as error:
            self._record(request, error=error, seconds=time.perf_counter() - began)
            raise
        seconds = time.perf_counter() - began
        consumed = units_of(request, reply)
        indexes = {name.rpartition("/")[2]: units.rcu + units.wcu for name, units in consumed.indexes.items()}
        if unrequested:
            reply = _without_capacity(reply)
        self._record(
            request, reply=reply, seconds=seconds, rcu=consumed.rcu, wcu=consumed.wcu, indexes=indexes
        )
        return reply

    def sleep(self, seconds: float) -> None:
        """Wait, and record for how long."""
        self.journal.waited_seconds += seconds
        if self._sleep is None:
            (self.inner.capabilities.sleep or time.sleep)(seconds)
        else:
            self._sleep(seconds)

    def _record(self, request: Request[Any], **outcome: Any) -> None:
        outcome.setdefault("indexes", {})
        self.journal.records.append(Record(request=request, is_scan=self._is_scan(request), **outcome))

    def _is_scan(self, request: Request[Any]) -> bool:
        if isinstance(request, ExecuteStatement):
            return self._statement_scans(request)
        return isinstance(request, Scan)

    def _statement_scans(self, request: ExecuteStatement) -> bool:
        """Whether a SELECT lacks the partition key; only an embedded engine has the schema."""
        schema: Any = _find(self.inner, "schema")
        if schema is None:
            return False
        try:
            parsed = parse_statement(request.statement.text)
            index = None if parsed.index is None else schema(parsed.table, parsed.index)
            planned = plan(parsed, request.statement, table=schema(parsed.table), index=index)
        except SolotableError:
            return False  # the engine rejected it
        return isinstance(planned, Reads) and any(isinstance(each, Scan) for each in planned.requests)


def _find(engine: Any, name: str) -> Any:
    while isinstance(engine, EngineWrapper):
        engine = engine.inner
    return getattr(engine, name, None)


def _without_capacity(reply: Any) -> Any:
    if isinstance(reply, dict):
        return {name: member for name, member in reply.items() if name != "ConsumedCapacity"}
    return replace(reply, capacity=None)
