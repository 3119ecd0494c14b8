"""Tenants that try to reach each other's items: random verbs, ids made of delimiters, stolen cursors.

Every item carries its owner's mark, so a mark that shows up elsewhere is a leak. Each tenant has a vault
that it never touches itself, so another tenant made a change there.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

from solotable import ANY, Database, Entity, Query, Store
from solotable._protocol.replies import decode_items
from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.errors import SolotableError
from tests.store.models import Book, Loan, Section, Survey, library, surveyor

TENANTS = [
    *("a", "b", "A", "a#b", "a#SURVEY#s", "a%23b", "b$", "b%", "a ", "TENANT#a", "a#AUTHOR#x", "é"),
    *("a\x00", "#", "%", "b#SHELF#x", "TENANT#a#SURVEY#s", "ab"),
]
IDS = [
    "s",
    "x",
    "1",
    "10",
    "",
    "#",
    "%23",
    "s#SECTION#x",
    "SECTION#000001",
    "$",
    "~",
    "a#SURVEY#s",
    "b",
    "\x00",
]


class Leak(AssertionError):
    """Something of another tenant came out, or was changed."""


def mark(tenant: str) -> str:
    """Return the text that only this tenant's items hold."""
    return f"<mark {TENANTS.index(tenant)}>"


def vault(tenant: str) -> str:
    """Return the id of what a tenant has and never touches."""
    return f"vault{TENANTS.index(tenant)}"


class Intruders:
    """All tenants over one database, and what each of them tries."""

    def __init__(self, base: Database, seed: int) -> None:
        self.base = base
        self.chance = random.Random(seed)
        self.stores = {tenant: base.tenant(tenant) for tenant in TENANTS}
        self.marks = {tenant: mark(tenant) for tenant in TENANTS}
        self.cursors: dict[str, list[tuple[Callable[[], Any], str]]] = {}
        self.entities: dict[str, list[Entity]] = {}
        self.refused = self.empty = 0
        for tenant, store in self.stores.items():
            self._settle(tenant, store)
        self.vaults = self._vaults()

    def _settle(self, tenant: str, store: Store) -> None:
        own, name = self.marks[tenant], vault(tenant)
        made: list[Entity] = [store.put(Survey(survey_id=name, title=own))]
        for number in range(4):
            made.append(
                store.put(Section(survey_id=name, section_id=str(number), name=own, order=number, notes=own))
            )
            made.append(store.put(self._book(tenant, f"{name}-{number}", name)))
        made.append(store.put(Loan(loan_id=name, reader=name, note=own)))
        self.entities[tenant] = made
        queries: list[Callable[[], Any]] = [
            lambda: Section.of_survey(name),
            lambda: Section.key.query(survey_id=name),
            lambda: Book.of_author(name),
            lambda: Book.on_shelf(name),
            Book.by_year.query,
        ]
        self.cursors[tenant] = [
            (query, cursor)
            for query in queries
            if (cursor := store.page(query(), limit=1).cursor) is not None
        ]

    def _book(self, tenant: str, book_id: str, author: str) -> Book:
        own = self.marks[tenant]
        return Book(book_id=book_id, title=own, author=author, shelf=author, position=1, notes=own)

    def attempt(self) -> None:
        """Let one tenant try something, and check the result."""
        tenant = self.chance.choice(TENANTS)
        victim = self.chance.choice([other for other in TENANTS if other != tenant])
        verb = self.chance.choice(VERBS)
        store = self.stores[tenant]
        names_victim = self.chance.random() < 0.3
        try:
            result = verb(self, store, tenant, victim, {"tenant_id": victim} if names_victim else {})
        except SolotableError as refused:
            self.refused += 1
            shown = list(_shown(refused))
        else:
            if names_victim and verb not in NAMELESS:
                raise Leak(f"{verb.__name__} took tenant_id={victim!r} under {tenant!r}")
            self.empty += result in (None, [], 0)
            shown = [repr(result)]
        for other, foreign in self.marks.items():
            if other != tenant and any(foreign in text for text in shown):
                raise Leak(f"{verb.__name__} under {tenant!r} showed what is {other!r}'s: {shown}")

    def check(self) -> int:
        """Look at every stored item: each is its tenant's own, and the vaults are as they were."""
        count = 0
        for item in self._items():
            count += 1
            tenant = item["tenant_id"]["S"]
            table = library if item["_type"]["S"] in library.plans else surveyor
            plan = table.plans[item["_type"]["S"]]
            entity = plan.decode(item)
            fresh = plan.encode(entity.__dict__, entity.unknown_attributes)
            if fresh != item:
                raise Leak(f"The keys of {item} are not its own: {fresh}")
            texts = repr(
                [value for name, value in item.items() if name in ("title", "name", "notes", "note")]
            )
            if any(foreign in texts for other, foreign in self.marks.items() if other != tenant):
                raise Leak(f"{tenant!r} holds what is another's: {item}")
        if self._vaults() != self.vaults:
            raise Leak("A vault was opened.")
        return count

    def _vaults(self) -> dict[str, Item]:
        found = {}
        for item in self._items():
            name = vault(item["tenant_id"]["S"])
            if any(item.get(part, {}).get("S", "").split("-")[0] == name for part in _IDS):
                found[repr((item["PK"], item["SK"]))] = item
        return found

    def _items(self) -> Iterator[Item]:
        for table in (surveyor, library):
            start = None
            while True:
                page = self.base.engine.handle(
                    Scan(table=self.base.scope.table(table), start=start, consistent=True)
                )
                yield from decode_items(page.items or ())
                start = page.last_key
                if not start:
                    break

    def some_id(self, victim: str) -> str:
        """Return an id that is the victim's, or looks like a way to it."""
        name = vault(victim)
        return self.chance.choice(
            [
                *IDS,
                name,
                name,
                f"{name}-1",
                victim,
                f"{victim}#SURVEY#{name}",
                f"{name}#SECTION#1",
                f"../TENANT#{victim}",
                f"x#TENANT#{victim}#SURVEY#{name}",
            ]
        )

    def section(self, victim: str) -> dict[str, Any]:
        """Return the key of a section, as an intruder would give it."""
        return {"survey_id": self.some_id(victim), "section_id": self.chance.choice([*IDS, "1", "2"])}


_IDS = ("survey_id", "book_id", "loan_id")


def _shown(error: BaseException) -> Iterator[str]:
    """Everything of an error that a caller can see, but what the caller gave itself."""
    yield str(error)
    for name in ("found", "theirs", "item", "reasons", "largest", "members"):
        yield repr(getattr(error, name, None))
    for failure in getattr(error, "failures", ()):
        yield from _shown(failure.error)
    for cause in (error.__cause__, error.__context__):
        if cause is not None:
            yield from _shown(cause)


Given = dict[str, Any]


def get(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    entity, key = all_.chance.choice(
        [
            (Section, all_.section(victim)),
            (Survey, {"survey_id": all_.some_id(victim)}),
            (Book, {"book_id": all_.some_id(victim)}),
            (Loan, {"loan_id": all_.some_id(victim)}),
        ]
    )
    return db.get(entity, **key, **more)


def get_many(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    keys = [{"book_id": all_.some_id(victim)} for _ in range(3)]
    keys.append({"book_id": all_.some_id(victim), **more})
    return [each for each in db.get_many(Book, keys) if each is not None]


def put(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    own = all_.marks[tenant]
    made = Section(**all_.section(victim), name=own, order=all_.chance.randrange(5), notes=own, **more)
    return (db.put if all_.chance.random() < 0.5 else db.create)(made)


def put_book(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    book = all_._book(tenant, all_.some_id(victim), all_.some_id(victim))
    return db.put(book.model_copy(update=dict(more)))


def update(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    own = all_.marks[tenant]
    changes: dict[str, Any] = all_.chance.choice([{"notes": own}, {"order": 3}, {"name": own, "order": 2}])
    return db.update(Section, **all_.section(victim), **more, set=changes)


def update_book(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    changes = {"author": all_.some_id(victim), "shelf": all_.some_id(victim)}
    return db.update(
        Book, book_id=all_.some_id(victim), **more, set=changes, where=lambda b: b.notes != all_.marks[tenant]
    )


def take(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    """Write with an entity that the victim has read."""
    stolen: Any = all_.chance.choice(all_.entities[victim])
    verbs: list[Callable[[], Any]] = [
        lambda: db.put(stolen),
        lambda: db.create(stolen),
        lambda: db.delete(stolen),
        lambda: db.update(stolen, remove=["notes"]),
        lambda: _transaction(db, stolen, all_.chance),
        lambda: _batch(db, stolen, all_.chance),
    ]
    all_.chance.choice(verbs)()
    raise Leak(f"{tenant!r} wrote {stolen!r}")


def _transaction(db: Store, stolen: Any, chance: random.Random) -> None:
    with db.transaction() as tx:
        verbs: list[Callable[[Any], Any]] = [tx.put, tx.create, tx.delete]
        chance.choice(verbs)(stolen)


def _batch(db: Store, stolen: Any, chance: random.Random) -> None:
    with db.batch(overwrite=True) as batch:
        verbs: list[Callable[[Any], Any]] = [batch.put, batch.delete]
        chance.choice(verbs)(stolen)


def delete(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    ways: list[Callable[[], Any]] = [
        lambda: db.delete(Section, **all_.section(victim), **more),
        lambda: db.delete(Book, book_id=all_.some_id(victim), **more, where=lambda b: b.stars < 3),
        lambda: db.delete(Loan, loan_id=all_.some_id(victim), version=ANY, **more),
    ]
    return all_.chance.choice(ways)()


def query(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    some = all_.some_id(victim)
    queries: list[Callable[[], Query[Any]]] = [
        lambda: Section.by_order.query(survey_id=some, **more),
        lambda: Section.key.query(survey_id=some, **more),
        lambda: Section.key.query(**more),
        lambda: Book.by_author.query(author=some, **more),
        lambda: Book.by_author.query(author=some, **more).since(year=0),
        lambda: Book.by_shelf.query(shelf=some, **more).descending(),
        lambda: Book.by_year.query(**more).until(year=9999),
        lambda: Book.by_title.query(title=all_.marks[victim], **more),
        lambda: Book.by_title.query(**more).starts_with(title="<"),
        lambda: Loan.by_reader.query(reader=some, **more),
        lambda: Survey.key.query(**more),
    ]
    asked = all_.chance.choice(queries)()
    ways: list[Callable[[], Any]] = [
        lambda: list(db.all(asked)),
        lambda: db.page(asked, limit=3).items,
        lambda: db.first(asked),
        lambda: db.count(asked),
    ]
    return all_.chance.choice(ways)()


def collect(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    return db.collection(Survey, Section, survey_id=all_.some_id(victim), **more)


def steal_cursor(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    asked, cursor = all_.chance.choice(all_.cursors[victim])
    if all_.chance.random() < 0.5:
        at = all_.chance.randrange(len(cursor))
        cursor = cursor[:at] + all_.chance.choice("ABCxyz019-_") + cursor[at + 1 :]
    if all_.chance.random() < 0.2:
        asked, _ = all_.chance.choice(all_.cursors[tenant])
    db.page(asked(), limit=2, cursor=cursor)
    raise Leak(f"{tenant!r} used a cursor of {victim!r}")


def transact(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    own = all_.marks[tenant]
    with db.transaction() as tx:
        if all_.chance.random() < 0.5:
            tx.put(all_._book(tenant, "mine", "mine"))
        kind = all_.chance.randrange(4)
        if kind == 0:
            tx.put(Section(**all_.section(victim), name=own, order=1, **more))
        elif kind == 1:
            tx.update(Section, **all_.section(victim), **more, set={"notes": own})
        elif kind == 2:
            tx.delete(Book, book_id=all_.some_id(victim), **more)
        else:
            tx.check(
                Survey,
                survey_id=all_.some_id(victim),
                **more,
                where=lambda s: s.title != all_.marks[victim],
            )


def batch(all_: Intruders, db: Store, tenant: str, victim: str, more: Given) -> Any:
    with db.batch() as together:
        together.put(all_._book(tenant, all_.some_id(victim), all_.some_id(victim)))
        together.delete(Section, **all_.section(victim), **more)


VERBS: list[Callable[[Intruders, Store, str, str, Given], Any]] = [
    get,
    get_many,
    put,
    put_book,
    update,
    update_book,
    take,
    delete,
    query,
    collect,
    steal_cursor,
    transact,
    batch,
]
#: They raise of themselves where they must not succeed.
NAMELESS = (take, steal_cursor)
