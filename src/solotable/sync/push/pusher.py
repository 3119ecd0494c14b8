"""Push: run new mutations in order, a transaction at a time, and answer as clients expect.

A mutation is confirmed in the transaction of its effects. An error of the database confirms nothing: the
client gets SyncUnavailable and sends everything again.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import ValidationError

from solotable._entities.traits.events import Actor
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.sync.spaces import Space
from solotable._flows.transactions.conflicts import CONFLICT_ATTEMPTS
from solotable._protocol.engine import Engine
from solotable._store import AsyncStore, Store
from solotable._store.runner import Inline, run
from solotable.errors import (
    ConditionFailed,
    DataError,
    LeaseHeld,
    LeaseLost,
    NotFound,
    NotUnique,
    ServiceError,
    SolotableError,
    SyncUnavailable,
    TenantViolation,
    TransactionCancelled,
)
from solotable.sync.mutators import MutationContext, Mutators, Rejected

from .attempt import Attempt, Refusal, Target, TooManyItems
from .clients import ClientRecord, read_clients
from .request import CLIENT_STATE_NOT_FOUND, Mutation, PushBody

log = logging.getLogger("solotable.sync")

#: Errors of a store that a repetition of the mutation would raise again.
_FINAL = (
    ConditionFailed,
    DataError,
    LeaseHeld,
    LeaseLost,
    NotFound,
    NotUnique,
    TenantViolation,
    TransactionCancelled,
    ValidationError,
)
#: Pushes with an unexpected error of a mutator before the mutation is rejected.
_TRIES = 5
_MOST_COUNTED = 10_000
#: Reads of a client's record before a gap in its ids is believed.
_LOOKS = 4
#: A record that is younger than this may have a newer version that is not visible yet.
_YOUNG_SECONDS = 10.0
_GAP = "A mutation is missing before those that are left; send it first."
#: The clients of one push; a group has a client for each tab.
_MOST_CLIENTS = 500
#: Clients whose ids one transaction confirms again; it has room for some mutations too.
_MOST_UNCONFIRMED = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class PushSettings:
    """The parts of a Sync that pushes need."""

    engine: Engine
    mutators: Mutators
    readable: Callable[[str, str, str], Sequence[Space]]
    root: Callable[[str], Space]
    scope: Callable[[str], Scope]
    committed: Callable[[str], None]
    budget_seconds: float


@dataclass(slots=True)
class _Work:
    """The mutations of a push that are left, and the records of their clients."""

    tenant: str
    user: str
    principal: Any
    group: str
    left: list[Mutation]
    records: dict[str, ClientRecord]
    new_group: bool
    #: Why some mutations of the push have to wait for another one; empty if none has.
    waiting: str
    conflicts: int = 0
    #: Whether to commit mutations one by one, to find the one that the database rejects.
    single: bool = False
    #: Clients whose ids a reset left out, and that wait for the confirmation of a mutation that was done.
    unconfirmed: list[str] = field(default_factory=list)
    #: Mutations that the database rejects for good.
    refused: dict[Mutation, Refusal] = field(default_factory=dict)
    actor: Actor = field(init=False)

    def __post_init__(self) -> None:
        make = getattr(self.principal, "actor", None)
        self.actor = make() if callable(make) else Actor(id=self.user)

    def has_more(self) -> bool:
        """Whether another transaction is needed."""
        return bool(self.left or self.unconfirmed)

    @property
    def clients(self) -> list[str]:
        """The clients whose records the next transaction writes."""
        return [*self.unconfirmed, *(each.client for each in self.left)]


@dataclass(slots=True)
class _Queue:
    """The pushes of a tenant, which run one after another."""

    #: Those that run or wait.
    pushes: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    #: When the running push began; None between pushes.
    _since: float | None = None

    @contextmanager
    def turn(self, seconds: float) -> Iterator[None]:
        """Wait for a turn; a push that takes twice its time is stuck, and nothing waits for it."""
        since = self._since
        patience = seconds if since is None else since + 2 * seconds - time.monotonic()
        if not self._lock.acquire(timeout=min(seconds, max(0.0, patience))):
            raise SyncUnavailable("Another push of the tenant has not ended; send it again.")
        try:
            self._since = time.monotonic()
            yield
        finally:
            self._since = None
            self._lock.release()


class Pusher:
    """Executes pushes; those of one tenant run one after another in this process."""

    def __init__(self, settings: PushSettings) -> None:
        self._settings = settings
        self._queues: dict[str, _Queue] = {}
        self._guard = threading.Lock()
        self._failed: OrderedDict[tuple[str, str, str, int], int] = OrderedDict()

    def push(self, tenant: str, user: str, body: PushBody, principal: Any) -> Mapping[str, Any]:
        """Run the new mutations of a push; return the body of the answer."""
        with self._turn(tenant):
            work = self._load(tenant, user, body, principal)
            if work is None:
                return CLIENT_STATE_NOT_FOUND
            if not work.has_more() and not work.waiting:
                return {}
            readable = self._settings.readable(tenant, user, body.group)
            end = time.monotonic() + self._settings.budget_seconds
            while work.has_more():
                self._step(work, readable)
                if work.has_more() and time.monotonic() > end:
                    raise SyncUnavailable(
                        f"{len(work.left)} of {len(body.mutations)} mutations are left; send them again."
                    )
            if work.waiting:
                raise SyncUnavailable(work.waiting)
            return {}

    @contextmanager
    def _turn(self, tenant: str) -> Iterator[None]:
        """Wait for the other pushes of a tenant; raise SyncUnavailable if one of them does not end."""
        with self._guard:
            queue = self._queues.setdefault(tenant, _Queue())
            queue.pushes += 1
        try:
            with queue.turn(self._settings.budget_seconds):
                yield
        finally:
            with self._guard:
                queue.pushes -= 1
                if queue.pushes == 0:
                    del self._queues[tenant]

    def _load(self, tenant: str, user: str, body: PushBody, principal: Any) -> _Work | None:
        """Read the clients of a push; None if their state is not here, or belongs to another user."""
        scope = self._settings.scope(tenant)
        clients = list(dict.fromkeys(each.client for each in body.mutations))
        # Each client costs a read, and its id nothing.
        chosen = dict.fromkeys(clients[:_MOST_CLIENTS])
        mutations = [each for each in body.mutations if each.client in chosen]
        look = 0
        while True:
            records, owner = run(
                read_clients(scope, self._settings.root(tenant), body.group, chosen), self._settings.engine
            )
            if owner is not None and owner != user:
                return None
            left, gaps = _new_mutations(mutations, records)
            look += 1
            if not gaps or look == _LOOKS:
                break
            # The last write of the record may not be visible yet.
            run(_wait(scope, look), self._settings.engine)
        if any(records[client].is_new for client in gaps):
            return None
        if gaps and all(scope.clock() - records[client].at > _YOUNG_SECONDS for client in gaps) and not left:
            return None
        waiting = _GAP if gaps else ""
        if len(clients) > len(chosen):
            waiting = f"A push takes {_MOST_CLIENTS} clients, got {len(clients)}; send the rest again."
        work = _Work(
            tenant, user, principal, body.group, left, records, new_group=owner is None, waiting=waiting
        )
        work.unconfirmed = _unconfirmed(chosen, work)
        return work

    def _step(self, work: _Work, readable: Sequence[Space]) -> None:
        """Commit as many of the mutations as one transaction takes."""
        settings = self._settings
        scope = settings.scope(work.tenant)
        target = Target(
            engine=settings.engine,
            scope=scope,
            root=settings.root(work.tenant),
            group=work.group,
            user=work.user,
            readable=readable,
            new_group=work.new_group,
        )
        try:
            attempt = Attempt(target, work.records)
            attempt.confirm_again(work.unconfirmed[:_MOST_UNCONFIRMED])
            with _Caller(attempt, scope, work.actor, settings.budget_seconds) as caller:
                for mutation in work.left[: 1 if work.single else None]:
                    if not self._add(work, attempt, caller, mutation):
                        break
            records, _ = attempt.commit()
        except TransactionCancelled as error:
            if any(reason["Code"] == "ValidationError" for reason in error.reasons):
                _refuse(work, error)
            else:
                self._after_conflict(work, error)
        except SyncUnavailable:
            raise
        except SolotableError as error:
            if isinstance(error, ServiceError) and error.code == "ValidationException":
                _refuse(work, error)
                return
            raise SyncUnavailable(f"The database failed during a push: {error}") from error
        else:
            work.records |= records
            work.left = work.left[attempt.count :]
            work.unconfirmed = _unconfirmed(work.unconfirmed, work)
            work.new_group, work.conflicts, work.single = False, 0, False
            settings.committed(work.tenant)

    def _after_conflict(self, work: _Work, error: TransactionCancelled) -> None:
        """Wait, and read the clients again: another process may have run the same mutations."""
        work.conflicts += 1
        if work.conflicts >= CONFLICT_ATTEMPTS:
            raise SyncUnavailable("Other writers changed the same space each time; send it again.") from error
        scope = self._settings.scope(work.tenant)
        run(_wait(scope, work.conflicts), self._settings.engine)
        root = self._settings.root(work.tenant)
        read = read_clients(scope, root, work.group, work.clients)
        work.records, owner = run(read, self._settings.engine)
        work.new_group = owner is None
        if owner is not None and owner != work.user:
            raise SyncUnavailable("The group has got another owner; send it again.") from error
        work.left, gaps = _new_mutations(work.left, work.records)
        work.waiting = work.waiting or (_GAP if gaps else "")
        work.unconfirmed = _unconfirmed(work.unconfirmed, work)

    def _add(self, work: _Work, attempt: Attempt, caller: _Caller, mutation: Mutation) -> bool:
        context = MutationContext(
            tenant=work.tenant,
            user=work.user,
            group=work.group,
            client=mutation.client,
            mutation_id=mutation.id,
            principal=work.principal,
        )

        def mutate() -> Refusal | None:
            return work.refused.get(mutation) or self._run(attempt, caller, mutation, context)

        try:
            return attempt.add(mutation, mutate)
        except TooManyItems:
            refusal = Refusal(
                code="too_large", reason=f"{mutation.name[:100]} writes more than a transaction takes."
            )
            return attempt.add(mutation, lambda: refusal)

    def _run(
        self, attempt: Attempt, caller: _Caller, mutation: Mutation, context: MutationContext
    ) -> Refusal | None:
        """Run one mutation; return why it is rejected, or None."""
        mutators = self._settings.mutators
        try:
            mutator = mutators.get(mutation.name)
            caller.call(mutator, mutator.validate(mutation.arguments), context)
        except Exception as error:
            failure = attempt.overlay.failure
            if failure is not None:
                raise SyncUnavailable(f"The database failed during a mutation: {failure}") from error
            return self._refusal(error, mutation, context)
        if attempt.overlay.failure is not None:
            raise SyncUnavailable("The database failed during a mutation.") from attempt.overlay.failure
        return None

    def _refusal(self, error: Exception, mutation: Mutation, context: MutationContext) -> Refusal:
        match error:
            case Rejected():
                return Refusal(code=error.code, reason=error.reason)
            case ValidationError():
                first = error.errors()[0]
                where = ".".join(str(part) for part in first["loc"])
                return Refusal(code="invalid", reason=f"{where}: {first['msg']}")
            case DataError():
                return Refusal(code=type(error).__name__, reason=error.public_message or str(error))
        if isinstance(error, (*_FINAL, *self._settings.mutators.rejections)):
            return Refusal(code=type(error).__name__, reason=str(error))
        key = (context.tenant, context.group, mutation.client, mutation.id)
        with self._guard:
            tries = self._failed.pop(key, 0) + 1
            if tries < _TRIES:
                self._failed[key] = tries
            while len(self._failed) > _MOST_COUNTED:
                self._failed.popitem(last=False)
        log.error("mutator %r failed (attempt %d of %d)", mutation.name[:100], tries, _TRIES, exc_info=error)
        if tries < _TRIES:
            raise SyncUnavailable(f"The mutator {mutation.name[:100]!r} failed.") from error
        return Refusal(code="failed", reason=f"The mutator {mutation.name[:100]!r} failed {tries} times.")


class _Caller:
    """Calls mutators with stores over the overlay of an attempt; async ones on an event loop."""

    def __init__(self, attempt: Attempt, scope: Scope, actor: Actor, seconds: float) -> None:
        own = replace(scope, logs_later=True, actor=actor)
        self._seconds = seconds
        self._store = Store(attempt.overlay, own)
        self._async_store = AsyncStore(Inline(attempt.overlay), own)
        self._runner: asyncio.Runner | None = None

    def __enter__(self) -> _Caller:
        return self

    def __exit__(self, *_: object) -> None:
        if self._runner is not None:
            self._runner.close()

    def call(self, mutator: Any, arguments: Any, context: MutationContext) -> None:
        """Run a mutator to its end; an async one that takes too long is cancelled with TimeoutError."""
        if not mutator.is_async:
            mutator.call(self._store, arguments, context)
            return
        coroutine = self._limited(mutator.call(self._async_store, arguments, context))
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            if self._runner is None:
                self._runner = asyncio.Runner()
            self._runner.run(coroutine)
        else:
            # The caller blocks an event loop, which cannot run a second one in its thread.
            with ThreadPoolExecutor(1) as pool:
                pool.submit(asyncio.run, coroutine).result()

    async def _limited(self, coroutine: Coroutine[Any, Any, None]) -> None:
        async with asyncio.timeout(self._seconds):
            await coroutine


def _refuse(work: _Work, error: ServiceError) -> None:
    """Prepare the next step after the database rejected a commit as invalid: a repetition would not help."""
    if work.single or not work.left:
        mutation = next(iter(work.left), None)
        if mutation is None or mutation in work.refused:
            raise SyncUnavailable(f"The database rejects a push: {error}") from error
        log.error("the database rejects the writes of mutator %r: %s", mutation.name[:100], error)
        work.refused[mutation] = Refusal(code="invalid_writes", reason="The database rejects its writes.")
    work.single = True


def _new_mutations(
    mutations: Sequence[Mutation], records: Mapping[str, ClientRecord]
) -> tuple[list[Mutation], set[str]]:
    """Return the mutations to run, and the clients that skipped an id."""
    found: list[Mutation] = []
    following = {client: record.last + 1 for client, record in records.items()}
    adopting = {client for client, record in records.items() if record.is_reset}
    gaps: set[str] = set()
    for mutation in mutations:
        client = mutation.client
        if client in adopting:
            # A client sends its first unconfirmed mutation first. If ids are missing before it, the server
            # has lost them.
            following[client] = max(following[client], mutation.id)
            adopting.discard(client)
        if client in gaps or mutation.id < following[client]:
            continue
        if mutation.id > following[client]:
            gaps.add(client)
            continue
        found.append(mutation)
        following[client] += 1
    return found, gaps


def _unconfirmed(clients: Iterable[str], work: _Work) -> list[str]:
    """Return the clients whose ids a reset left out, and that have no new mutation to confirm them."""
    new = {each.client for each in work.left}
    return [each for each in dict.fromkeys(clients) if work.records[each].is_reset and each not in new]


def _wait(scope: Scope, attempt: int) -> Flow[None]:
    yield scope.retries.wait(attempt)
