"""Calls of an entity's hooks as requests, and the hooks after reads. The runner calls the methods."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from solotable._entities.declare.plan import Plan
from solotable._entities.hooks import Hooks
from solotable._protocol.requests import Request
from solotable.errors import DataError, DeclarationError

from .retry import Flow


@dataclass(frozen=True, slots=True)
class HookCall(Request[Any]):
    """Call a hook and answer with its result. Without a function, only check that the runner can."""

    name: str
    is_async: bool
    function: Callable[..., Any] | None = None
    arguments: tuple[Any, ...] = ()

    def check_blocking(self, reply: object = None) -> None:
        """Raise DeclarationError for an async hook in a blocking store; a reply may show that it is one."""
        if self.is_async or isinstance(reply, Awaitable):
            if isinstance(reply, Coroutine):
                reply.close()
            raise DeclarationError(
                f"{self.name} is an async hook, which a blocking store cannot run; "
                f"use open_async(), or make it a plain method."
            )


def check_runner(plan: Plan, hooks: Hooks) -> Flow[None]:
    """Reject async hooks in a blocking store before anything is sent."""
    for name in hooks.async_methods:
        yield HookCall(f"{plan.name}.{name}", True)


def call(plan: Plan, hooks: Hooks, name: str, function: Callable[..., Any], *arguments: Any) -> HookCall:
    """Return the call of one hook."""
    return HookCall(f"{plan.name}.{name}", name in hooks.async_methods, function, arguments)


def instance_of(plan: Plan, name: str, answer: object, when: str) -> Any:
    """Return the entity that a hook returned, or raise DataError for another value."""
    if isinstance(answer, plan.entity):
        return answer
    raise DataError(
        f"{plan.name}.{name}: a hook {when} returns a {plan.name} or None, got {type(answer).__name__}."
    )


def check_readers(plans: Iterable[Plan]) -> Flow[None]:
    """Reject async hooks after reads in a blocking store, also if nothing is found."""
    for plan in plans:
        for each in (plan, *plan.subclasses.values()) if plan.hooks_reads else ():
            if each.read_hooks is not None:
                yield from check_runner(each, each.read_hooks)


def after_read(entities: Sequence[Any]) -> Flow[list[Any]]:
    """Call the hooks after the read of these entities, which may be None; return what the caller gets."""
    found = list(entities)
    for at, entity in enumerate(found):
        plan = None if entity is None else entity.plan()
        if plan is None or plan.read_hooks is None:
            continue
        for name in plan.read_hooks.at("after_read"):
            answer = yield call(plan, plan.read_hooks, name, getattr(entity, name))
            if answer is not None:
                found[at] = instance_of(plan, name, answer, "after a read")
    return found
