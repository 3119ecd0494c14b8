"""Transactions and batches of the async store."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from solotable._flows.scope import Scope
from solotable._protocol.engine import AsyncEngine
from solotable._store.runner import arun
from solotable._store.unit_of_work import BatchWork, TransactionWork


class AsyncTransaction(TransactionWork):
    """The writes of one transaction; `async with db.transaction() as tx`."""

    def __init__(self, engine: AsyncEngine, scope: Scope, token: str | None) -> None:
        super().__init__(scope, token)
        self._engine = engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await arun(self._commit(), self._engine)


class AsyncBatch(BatchWork):
    """The writes of one batch; `async with db.batch() as batch`."""

    def __init__(self, engine: AsyncEngine, scope: Scope, *, overwrite: bool) -> None:
        super().__init__(scope, overwrite=overwrite)
        self._engine = engine

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            await arun(self._write(), self._engine)
