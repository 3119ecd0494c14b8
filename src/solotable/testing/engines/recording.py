"""An engine that writes down what it is asked, and asks what each request costs."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from solotable._partiql import Reads, parse_statement, plan
from solotable._protocol.engine import Capabilities, Engine
from solotable._protocol.requests import ExecuteStatement, Request, Scan
from solotable.errors import SolotableError

from .journal import Journal, Record, units_of
from .layer import Layer


class RecordingEngine(Layer):
    """Answers as the engine inside does, and keeps a journal.

    `sleep` is called where a flow waits; without it, the engine inside waits as it would.
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
        """Answer one request, and note it."""
        # Who asked for no report gets none; the journal needs it all the same.
        silent = getattr(request, "capacity", None) == "NONE"
        asked: Any = replace(request, capacity="INDEXES") if silent else request  # type: ignore[type-var]  # a record
        began = time.perf_counter()
        try:
            reply = self.inner.handle(asked)
        except Exception as error:
            self._note(request, error=error, seconds=time.perf_counter() - began)
            raise
        seconds = time.perf_counter() - began
        rcu, wcu, indexes = units_of(request, reply)
        if silent:
            reply = _without_capacity(reply)
        self._note(request, reply=reply, seconds=seconds, rcu=rcu, wcu=wcu, indexes=indexes)
        return reply

    def sleep(self, seconds: float) -> None:
        """Wait, and note for how long."""
        self.journal.waited_seconds += seconds
        if self._sleep is None:
            (self.inner.capabilities.sleep or time.sleep)(seconds)
        else:
            self._sleep(seconds)

    def _note(self, request: Request[Any], **came: Any) -> None:
        came.setdefault("indexes", {})
        self.journal.records.append(Record(request=request, is_scan=self._is_scan(request), **came))

    def _is_scan(self, request: Request[Any]) -> bool:
        if isinstance(request, ExecuteStatement):
            return self._statement_scans(request)
        return isinstance(request, Scan)

    def _statement_scans(self, request: ExecuteStatement) -> bool:
        """Whether a SELECT names no partition key; only an embedded engine can tell."""
        schema: Any = _find(self.inner, "schema")
        if schema is None:
            return False
        try:
            parsed = parse_statement(request.statement.text)
            index = None if parsed.index is None else schema(parsed.table, parsed.index)
            planned = plan(parsed, request.statement, table=schema(parsed.table), index=index)
        except SolotableError:
            return False  # it was refused
        return isinstance(planned, Reads) and any(isinstance(each, Scan) for each in planned.requests)


def _find(engine: Any, name: str) -> Any:
    while isinstance(engine, Layer):
        engine = engine.inner
    return getattr(engine, name, None)


def _without_capacity(reply: Any) -> Any:
    if isinstance(reply, dict):
        return {name: member for name, member in reply.items() if name != "ConsumedCapacity"}
    return replace(reply, capacity=None)
