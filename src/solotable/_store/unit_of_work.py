"""Units of work: collect the writes of a transaction or a batch. The store sends them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, TypeVar, cast

from solotable._entities.declare.entity import Entity
from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._flows.retry import Flow
from solotable._flows.scope import Scope
from solotable._flows.traits import leases, soft_delete
from solotable._flows.transactions.commit import Planner, transact
from solotable._flows.transactions.idempotency import CallerToken, caller_token
from solotable._flows.transactions.write import DerivedWrite, ExpectedVersion, Write
from solotable._flows.writes import hooked, put, update, upsert
from solotable._flows.writes.batch import write_batch
from solotable._flows.writes.changes import Changes
from solotable.errors import DataError, DeclarationError, TenantViolation

from .arguments import Where, check_class, check_instance, condition_of, target_of
from .handles.leases import LeaseState

E = TypeVar("E", bound=Entity)
ReadyT = TypeVar("ReadyT")


@dataclass(frozen=True, slots=True)
class Planned:
    """A prepared write, to be sent alone or in a transaction."""

    scope: Scope
    planner: Planner
    #: The arguments of the caller, to compare repeated transactions.
    arguments: tuple[object, ...]


class TransactionWork:
    """The writes of a transaction, in the caller's order."""

    def __init__(self, scope: Scope, token: str | None = None) -> None:
        self._scope = scope
        self._token = token
        self._planners: list[Planner] | None = []
        self._leases: list[DerivedWrite] = []
        #: The arguments of the caller; a transaction that repeats a token must have the same ones.
        self._arguments: list[object] = []
        self._table: Table | None = None

    def put(self, entity: E, *, where: Where[E] = None) -> E:
        """Create or replace an entity; return the entity that will be stored."""
        return self._put(entity, where, create=False)

    def create(self, entity: E, *, where: Where[E] = None) -> E:
        """Create an entity that must not exist; return the entity that will be stored."""
        return self._put(entity, where, create=True)

    def update(  # noqa: PLR0913 - the kinds of change, each by name
        self,
        entity: type[E] | E,
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
        remove: Iterable[str] = (),
        add: Mapping[str, Any] | None = None,
        append: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        set_if_missing: Mapping[str, Any] | None = None,
        prepend: Mapping[str, Any] | None = None,
        where: Where[E] = None,
        version: ExpectedVersion = None,
        **key: Any,
    ) -> None:
        """Change fields of a stored entity."""
        plan, given, mine, expected = target_of("update", entity, key, version)
        changes = Changes.of(
            set=set,
            remove=remove,
            add=add,
            append=append,
            delete=delete,
            set_if_missing=set_if_missing,
            prepend=prepend,
        )
        condition = condition_of(plan, where)
        self._check_hooks(plan, "update")
        self._add(
            _planner(
                plan,
                changes,
                partial(hooked.before_update, plan),
                lambda ready: update.plan_update(
                    self._scope, plan, given, ready, version=expected, mine=mine, where=condition
                ),
            ),
            plan,
            ("update", given, self._for_token(plan, changes), expected, condition),
        )

    def upsert(  # noqa: PLR0913 - the kinds of change, each by name
        self,
        entity: type[E],
        /,
        *,
        set: Mapping[str, Any] | None = None,  # noqa: A002 - DynamoDB's own verb
        set_if_missing: Mapping[str, Any] | None = None,
        remove: Iterable[str] = (),
        add: Mapping[str, Any] | None = None,
        append: Mapping[str, Any] | None = None,
        prepend: Mapping[str, Any] | None = None,
        delete: Mapping[str, Any] | None = None,
        **key: Any,
    ) -> None:
        """Change fields of a stored entity, or create it with these changes; see `Store.upsert`."""
        plan = check_class("upsert", entity).plan()
        changes = Changes.of(
            set=set,
            remove=remove,
            add=add,
            append=append,
            delete=delete,
            set_if_missing=set_if_missing,
            prepend=prepend,
        )
        self._check_hooks(plan, "update")
        self._add(
            _planner(
                plan,
                changes,
                partial(hooked.before_update, plan),
                lambda ready: upsert.plan_upsert(self._scope, plan, key, ready),
            ),
            plan,
            ("upsert", key, self._for_token(plan, changes)),
        )

    def delete(
        self, entity: type[E] | E, /, *, where: Where[E] = None, version: ExpectedVersion = None, **key: Any
    ) -> None:
        """Delete an entity."""
        plan, given, mine, expected = target_of("delete", entity, key, version)
        condition = condition_of(plan, where)
        self._check_hooks(plan, "delete")
        self._add(
            _planner(
                plan,
                None,
                lambda _: hooked.before_delete(plan, self._scope.bind(plan, given)),
                lambda _: put.plan_delete(
                    self._scope, plan, given, version=expected, mine=mine, where=condition
                ),
            ),
            plan,
            ("delete", given, expected, condition),
        )

    def check(
        self, entity: type[E], /, *, where: Where[E] = None, version: ExpectedVersion = None, **key: Any
    ) -> None:
        """Require that an entity exists and meets a condition, without writing it."""
        plan = check_class("check", entity).plan()
        condition = condition_of(plan, where)
        prepared = put.plan_check(self._scope, plan, key, where=condition, version=version)
        self._add(lambda: _already(prepared), plan, ("check", key, version, condition))

    def undelete(self, entity: type[Entity], /, **key: Any) -> None:
        """Undelete an entity within the grace period of its SoftDelete."""
        plan = check_class("undelete", entity).plan()
        self._add(lambda: soft_delete.plan_undelete(self._scope, plan, key), plan, ("undelete", key))

    def include(self, *planned: Planned) -> None:
        """Add a prepared write: `tx.include(db.names(Route).renaming(...))`."""
        for each in planned:
            if (each.scope.tenant, each.scope.names) != (self._scope.tenant, self._scope.names):
                raise TenantViolation(
                    "A store of another tenant or database prepared this write; "
                    "prepare it with the store of the transaction."
                )
            self._add(each.planner, None, each.arguments)

    def check_lease(self, lease: LeaseState) -> None:
        """Require that the lease is still held when the transaction commits, or raise LeaseLost."""
        self._open()
        self._leases.append(leases.check(self._scope, lease.held))

    def _put(self, entity: E, where: Where[E], *, create: bool) -> E:
        check_instance("create" if create else "put", entity)
        prepared, condition = put.prepare_put(self._scope, entity), condition_of(entity, where)
        plan = entity.plan()
        # A retry has other timestamps and other ciphertexts.
        stamps = {plan.attributes[name].wire for name in (plan.created, plan.updated) if name is not None}
        stamps |= {*(plan.cipher.markers if plan.cipher else ())}
        content = {name: value for name, value in prepared.item.items() if name not in stamps}
        verb: Literal["create", "put"] = "create" if create else "put"

        def prepare(prepared: put.PreparedPut) -> Flow[put.PreparedPut]:
            changed = yield from hooked.before_put(plan, verb, entity)
            return prepared if changed is entity else put.prepare_put(self._scope, changed)

        self._add(
            _planner(
                plan,
                prepared,
                prepare,
                lambda ready: put.plan_put(self._scope, ready, create=create, where=condition),
            ),
            plan,
            ("create" if create else "put", content, condition),
        )
        return cast(E, prepared.after)

    def _add(self, planner: Planner, plan: Plan | None, arguments: object) -> None:
        self._open().append(planner)
        self._arguments.append((None if plan is None else plan.tag, arguments))
        self._table = self._table or (None if plan is None else plan.table)

    def _for_token(self, plan: Plan, changes: Changes) -> dict[str, Any]:
        """Return the changes for the digest of the token; without one, nothing reads them."""
        return {} if self._token is None else _without_secrets(plan, changes)

    def _caller_token(self) -> CallerToken | None:
        if self._token is None or not self._arguments:
            return None
        return caller_token(self._table or self._scope.tables[0], self._token, self._arguments)

    def _open(self) -> list[Planner]:
        if self._planners is None:
            raise DeclarationError("This transaction was sent; begin a new one.")
        return self._planners

    def _commit(self) -> Flow[None]:
        token = self._caller_token()
        writes = yield from transact(self._scope, self._take(), token=token)
        yield from hooked.after_all(
            (write.plan, write.verb, write.after) for write in writes if write.verb in ("create", "put")
        )

    def _check_hooks(self, plan: Plan, verb: str) -> None:
        if plan.hooks is not None and plan.hooks.at(f"after_{verb}"):
            raise DataError(
                f"{plan.name} has an after_{verb} hook, which needs the stored entity, and a transaction "
                f"returns none; {verb} it outside of a transaction, or use an Outbox."
            )

    def _take(self) -> list[Planner]:
        planners, self._planners = self._open(), None
        if self._leases:
            if not planners:
                raise DeclarationError("A transaction that only checks a lease writes nothing; add a write.")
            planners[0] = partial(_guarded, planners[0], tuple(self._leases))
        return planners


class BatchWork:
    """The writes of a batch: puts and deletes without conditions."""

    def __init__(self, scope: Scope, *, overwrite: bool) -> None:
        self._scope = scope
        self._overwrite = overwrite
        self._writes: list[Write] | None = []

    def put(self, entity: E) -> E:
        """Create or replace an entity; return the entity that will be stored."""
        self._check(check_instance("put", entity))
        prepared = put.plan_unconditional_put(self._scope, entity)
        self._open().append(prepared)
        return cast(E, prepared.after)

    def delete(self, entity: type[E] | E, /, **key: Any) -> None:
        """Delete an entity."""
        plan, given, mine, _ = target_of("delete", entity, key, None)
        self._check(entity)
        self._open().append(put.plan_unconditional_delete(self._scope, plan, given, mine=mine))

    def _check(self, entity: type[Entity] | Entity) -> None:
        plan = entity.plan()
        if plan.hooks is not None:
            raise DataError(f"{plan.name} has hooks, which a batch does not run; use a transaction.")
        derived = [*(trait.name for trait in plan.traits), *plan.counters]
        if derived:
            raise DataError(
                f"{plan.name} has {', '.join(derived)}, which a batch cannot write; use a transaction."
            )
        if plan.schema_versions.declared and not self._overwrite:
            raise DataError(
                f"{plan.name} has schema versions, and a batch cannot check whether a newer release wrote an "
                f"item; use a transaction, or batch(overwrite=True) to replace stored items."
            )
        if plan.version is not None and not self._overwrite:
            raise DataError(
                f"{plan.name} is versioned and a batch checks no versions; use a transaction, "
                f"or batch(overwrite=True) to replace stored items."
            )

    def _open(self) -> list[Write]:
        if self._writes is None:
            raise DeclarationError("This batch was sent; begin a new one.")
        return self._writes

    def _write(self) -> Flow[int]:
        writes, self._writes = self._open(), None
        return write_batch(self._scope, writes)


def _guarded(planner: Planner, leases: tuple[DerivedWrite, ...]) -> Flow[Write]:
    write = yield from planner()
    return replace(write, derived_writes=(*write.derived_writes, *leases))


def _planner(
    plan: Plan,
    given: ReadyT,
    prepare: Callable[[ReadyT], Flow[ReadyT]],
    then: Callable[[ReadyT], Flow[Write]],
) -> Planner:
    """Return a planner that calls the hooks before a write once, also if it plans again."""
    if plan.hooks is None:
        return lambda: then(given)
    ready: list[ReadyT] = []

    def planner() -> Flow[Write]:
        if not ready:
            prepared = yield from prepare(given)
            ready.append(prepared)
        return (yield from then(ready[0]))

    return planner


def _already(prepared: Write) -> Flow[Write]:
    yield from ()
    return prepared


def _without_secrets(plan: Plan, changes: Changes) -> dict[str, Any]:
    """Return the changes for the digest of a token, which is stored and must not depend on secrets."""
    given = changes.arguments
    if plan.cipher is not None:
        for name, value in given.items():
            if isinstance(value, Mapping):
                given[name] = {each: _digested(plan, each, value[each]) for each in value}
    return given


def _digested(plan: Plan, field: str, value: Any) -> Any:
    attribute = plan.attributes.get(field)
    return None if attribute is not None and attribute.encrypted is not None else value
