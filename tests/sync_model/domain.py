"""The entities and mutators of the model. Every mutation signs a journal, so its effects can be counted."""

from __future__ import annotations

from datetime import timedelta

from pydantic import BaseModel

from solotable import FROM_SCOPE, Entity, Key, SoftDelete, Store, Synced, Table
from solotable.errors import AlreadyExists
from solotable.sync import MutationContext, Mutators, Rejected

table = Table("Model", tenant="tenant_id", ttl="expires_at")


class Journal(Entity, table=table):
    """The signatures of mutations and writers, in the order of their commits; never deleted."""

    key = Key("TENANT#{tenant_id}", "JOURNAL#{name}")
    sync = Synced()

    tenant_id: str = FROM_SCOPE
    name: str
    signatures: str = ""


class Todo(Entity, table=table):
    """Really deleted."""

    key = Key("TENANT#{tenant_id}", "TODO#{name}")
    sync = Synced()

    tenant_id: str = FROM_SCOPE
    name: str
    text: str = ""


class Card(Entity, table=table):
    """Kept after its deletion."""

    key = Key("TENANT#{tenant_id}", "CARD#{name}")
    sync = Synced()
    deletion = SoftDelete(grace=timedelta(days=1))

    tenant_id: str = FROM_SCOPE
    name: str
    text: str = ""


class Note(Entity, table=table):
    """In a space that only some users read."""

    key = Key("TENANT#{tenant_id}", "PROJECT#{project}#NOTE#{name}")
    sync = Synced(space="project/{project}", key="note/{project}/{name}")

    tenant_id: str = FROM_SCOPE
    project: str
    name: str
    text: str = ""


class Arguments(BaseModel):
    """The journal to sign, and the entity to change."""

    journal: str
    name: str


mutators = Mutators()


def sign(db: Store, journal: str, signature: str) -> None:
    """Add a signature to a journal, by a read and a write."""
    found = db.get(Journal, name=journal) or Journal(name=journal)
    db.put(found.model_copy(update={"signatures": f"{found.signatures} {signature}".strip()}))


def _signature(context: MutationContext) -> str:
    return f"{context.client}:{context.mutation_id}"


@mutators.register("put")
def put(db: Store, args: Arguments, context: MutationContext) -> None:
    sign(db, args.journal, _signature(context))
    db.put(Todo(name=args.name, text=_signature(context)))


@mutators.register("edit")
def edit(db: Store, args: Arguments, context: MutationContext) -> None:
    sign(db, args.journal, _signature(context))
    found = db.get(Todo, name=args.name) or Todo(name=args.name)
    db.put(found.model_copy(update={"text": f"{found.text}+{_signature(context)}"[-80:]}))


@mutators.register("create")
def create(db: Store, args: Arguments, context: MutationContext) -> None:
    """Rejected if the todo exists."""
    sign(db, args.journal, _signature(context))
    db.create(Todo(name=args.name, text=_signature(context)))


@mutators.register("delete")
def delete(db: Store, args: Arguments, context: MutationContext) -> None:
    sign(db, args.journal, _signature(context))
    db.delete(Todo, name=args.name)


@mutators.register("card")
def card(db: Store, args: Arguments, context: MutationContext) -> None:
    """Delete a card that exists, undelete one that was deleted, or write a new one."""
    sign(db, args.journal, _signature(context))
    if db.get(Card, name=args.name) is not None:
        db.delete(Card, name=args.name)
        return
    try:
        db.put(Card(name=args.name, text=_signature(context)))
    except AlreadyExists:
        db.undelete(Card, name=args.name)


@mutators.register("note")
def note(db: Store, args: Arguments, context: MutationContext) -> None:
    """Write into two spaces."""
    sign(db, args.journal, _signature(context))
    db.put(Note(project="p1", name=args.name, text=_signature(context)))


@mutators.register("refuse")
def refuse(db: Store, args: Arguments, context: MutationContext) -> None:
    """Always rejected, after writes."""
    sign(db, args.journal, _signature(context))
    db.put(Todo(name=args.name, text="never seen"))
    raise Rejected("The model refuses.", code="refused")
