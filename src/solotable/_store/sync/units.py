"""Transactions and batches of the blocking store."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from solotable._flows.scope import Scope
from solotable._protocol.engine import Engine
from solotable._store.runner import run
from solotable._store.unit_of_work import BatchWork, TransactionWork


class Transaction(TransactionWork):
    """The writes of one transaction; `with db.transaction() as tx`."""

    def __init__(self, engine: Engine, scope: Scope, token: str | None) -> None:
        super().__init__(scope, token)
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            run(self._commit(), self._engine)


class Batch(BatchWork):
    """The writes of one batch; `with db.batch() as batch`."""

    def __init__(self, engine: Engine, scope: Scope, *, overwrite: bool) -> None:
        super().__init__(scope, overwrite=overwrite)
        self._engine = engine

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            run(self._write(), self._engine)
