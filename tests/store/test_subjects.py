"""Fields with a data subject: what is stored, what a forgotten subject leaves, and what is rejected."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Self
from uuid import UUID

import pytest
from pydantic import BaseModel, computed_field

from solotable import (
    FROM_SCOPE,
    Attr,
    Database,
    Encrypted,
    Entity,
    History,
    Index,
    Key,
    Outbox,
    Query,
    Store,
    Table,
    Unique,
    Version,
    pattern,
    upgrade,
)
from solotable.encryption import KeyRecord, Keyring, KeyTable, Receipt, SubjectKeys, generate_key
from solotable.errors import DataError, DeclarationError, NotConfigured, StoredDataError, SubjectForgotten
from solotable.jobs.backfill import backfill

from .opening import Opening

shop = Table("Subjects", tenant="tenant_id", stream=True, indexes=[Index("GSI1")])
EMAIL, STREET = "ada@example.org", "12 St James's Square"


class CountingTable(KeyTable):
    """A key table that counts the batches that are read."""

    reads: int = 0
    threads: ClassVar[set[int]] = set()

    def read(self, names: Sequence[str]) -> dict[str, KeyRecord]:
        """Count a batch, and read it."""
        self.reads += 1
        self.threads.add(threading.get_ident())
        return super().read(names)


keyring = Keyring({"m1": generate_key()}, per_tenant=True)
store = CountingTable("sqlite://")
keys = SubjectKeys(store, keyring, kind="customer")
staff = SubjectKeys(store, keyring, kind="employee")


class Contact(BaseModel):
    customer_id: str
    email: str | None


class Customer(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "CUSTOMER#{customer_id}")
    history = History("CUSTOMER#{customer_id}#v{version:06d}")
    events = Outbox(title="customer_id", days=None)
    tenant_id: str = FROM_SCOPE
    customer_id: str
    email: Annotated[str | None, Encrypted(keys, subject="customer_id")] = None
    notes: Annotated[list[str] | None, Encrypted(keys, subject="customer_id"), Attr("n")] = None
    tier: str = "free"
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def everyone(cls) -> Query[Self]:
        return cls.key.query()

    @pattern
    @classmethod
    def contacts(cls) -> Query[Contact]:
        return cls.key.query().select(Contact)


class Parcel(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "PARCEL#{number:04d}")
    by_state = Key("TENANT#{tenant_id}#PARCELS", "{state}", index="GSI1")
    tenant_id: str = FROM_SCOPE
    number: int
    state: str = "packed"
    customer_id: str | None
    clerk_id: UUID | None = None
    street: Annotated[str | None, Encrypted(keys, subject="customer_id")] = None
    remark: Annotated[str | None, Encrypted(staff, subject="clerk_id")] = None


class Notice(Entity, table=shop, scope="global"):
    key = Key("NOTICE#{notice_id}", "NOTICE")
    notice_id: str
    text: Annotated[str | None, Encrypted(keys, subject="notice_id")] = None


@pytest.fixture(autouse=True)
def _empty() -> Iterator[None]:
    """Give each test other keys."""
    yield
    store.close()
    keys._cache._clock = time.monotonic
    keys._cache.clear()
    staff._cache.clear()


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(shop)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme")


def forget(subject: object, tenant: str | None = "acme") -> Receipt:
    return keys.forget(subject, tenant=tenant)


def test_values_are_stored_encrypted_and_read_plain(opening: Opening, db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL, notes=["likes tea"]))
    found = db.require(Customer, customer_id="c1")
    assert (found.email, found.notes) == (EMAIL, ["likes tea"])
    assert EMAIL not in repr(found)
    (item,) = [each for each in opening.raw(shop) if each["SK"]["S"] == "CUSTOMER#c1"]
    assert set(item["email"]) == set(item["n"]) == {"B"}
    assert EMAIL not in str(opening.raw(shop))


def test_every_read_gives_none_for_a_forgotten_subject_and_others_stay(base: Database, db: Store) -> None:
    for number in range(4):
        db.put(Customer(customer_id=f"c{number}", email=f"{number}@example.org"))
    forget("c1")
    expected = ["0@example.org", None, "2@example.org", "3@example.org"]
    ids = [{"customer_id": f"c{number}"} for number in range(4)]
    one = db.require(Customer, customer_id="c1")
    assert (one.email, one.notes, one.tier) == (None, None, "free")
    assert [each.email for each in db.get_many(Customer, ids) if each] == expected
    assert [each.email for each in db.page(Customer.everyone(), limit=10)] == expected
    assert [each.email for each in db.page(Customer.contacts(), limit=10)] == expected
    assert sorted(str(each.email) for each in base.admin().scan(Customer, budget=100)) == sorted(
        map(str, expected)
    )


def test_personal_data_of_a_forgotten_subject_is_not_stored_and_other_data_is(db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL))
    receipt = forget("c1")
    known = db.require(Customer, customer_id="c1")
    with pytest.raises(SubjectForgotten, match="The customer 'c1' of tenant 'acme' was forgotten at") as put:
        db.put(known.model_copy(update={"email": EMAIL}))
    assert (put.value.tenant, put.value.subject) == ("acme", "c1")
    assert put.value.forgotten_at == receipt.forgotten_at
    with pytest.raises(SubjectForgotten):
        db.update(Customer, customer_id="c1", version=known.version, set={"email": EMAIL})
    with pytest.raises(SubjectForgotten):
        db.create(Parcel(number=1, customer_id="c1", street=STREET))
    with pytest.raises(SubjectForgotten), db.transaction() as tx:
        tx.create(Parcel(number=1, customer_id="c1", street=STREET))
    with pytest.raises(SubjectForgotten), db.batch() as batch:
        batch.put(Parcel(number=1, customer_id="c1", street=STREET))
    updated = db.update(Customer, customer_id="c1", version=known.version, set={"tier": "paid"})
    assert (updated.email, updated.tier) == (None, "paid")
    assert db.put(updated.model_copy(update={"tier": "gone"})).tier == "gone"
    assert (
        db.modify(Customer, lambda each: each.model_copy(update={"tier": "x"}), customer_id="c1").tier == "x"
    )
    assert db.create(Parcel(number=1, customer_id="c1")).street is None


def test_equal_ids_of_tenants_and_kinds_are_other_subjects(base: Database, db: Store) -> None:
    clerk = UUID(int=7)
    other = base.tenant("zeta")
    for each in (db, other):
        each.put(Customer(customer_id=str(clerk), email=EMAIL))
    base.put(Notice(notice_id=str(clerk), text=EMAIL))
    db.put(Parcel(number=1, customer_id=str(clerk), clerk_id=clerk, street=STREET, remark="wet"))
    forget(clerk)
    parcel = db.require(Parcel, number=1)
    assert (parcel.street, parcel.remark) == (None, "wet")
    assert db.require(Customer, customer_id=str(clerk)).email is None
    assert other.require(Customer, customer_id=str(clerk)).email == EMAIL
    assert base.require(Notice, notice_id=str(clerk)).text == EMAIL
    forget(clerk, tenant=None)
    assert base.require(Notice, notice_id=str(clerk)).text is None
    assert other.require(Customer, customer_id=str(clerk)).email == EMAIL
    staff.forget(clerk, tenant="acme")
    assert db.require(Parcel, number=1).remark is None


def test_a_subject_outside_the_key_is_changed_by_modify(db: Store) -> None:
    db.put(Parcel(number=1, customer_id="c1", street=STREET))
    with pytest.raises(
        DataError, match=r"Parcel\.street is encrypted for its customer_id, .* use modify\(\)"
    ):
        db.update(Parcel, number=1, set={"street": "elsewhere"})
    with pytest.raises(DataError, match=r"Parcel\.customer_id is the subject of encrypted fields"):
        db.update(Parcel, number=1, set={"customer_id": "c2"})
    with pytest.raises(DataError, match=r"use modify\(\)"):
        db.upsert(Parcel, number=1, set={"customer_id": "c2", "street": STREET})
    assert db.update(Parcel, number=1, set={"state": "sent"}).street == STREET
    assert db.update(Parcel, number=1, remove=["street"]).street is None
    with pytest.raises(DataError, match="set customer_id"):
        db.put(Parcel(number=2, customer_id=None, street=STREET))

    moved = db.put(Parcel(number=1, customer_id="c1", street=STREET))
    moved = db.modify(Parcel, lambda each: each.model_copy(update={"customer_id": "c2"}), number=1)
    forget("c1")
    assert db.require(Parcel, number=1).street == moved.street == STREET
    forget("c2")
    assert db.require(Parcel, number=1).street is None


def test_updates_upserts_transactions_and_batches_encrypt_for_the_subject(db: Store) -> None:
    db.put(Customer(customer_id="c1"))
    assert db.update(Customer, customer_id="c1", version=1, set={"email": EMAIL}).email == EMAIL
    assert db.upsert(Customer, customer_id="c2", set={"email": EMAIL}).email == EMAIL
    with db.transaction() as tx:
        tx.put(Customer(customer_id="c3", email=EMAIL))
    with db.batch() as batch:
        batch.put(Parcel(number=1, customer_id="c3", street=STREET))
    assert db.require(Parcel, number=1).street == STREET
    keys.forget_many(["c1", "c2", "c3"], tenant="acme")
    assert [each.email for each in db.page(Customer.everyone(), limit=9)] == [None] * 3
    assert db.require(Parcel, number=1).street is None


def test_history_and_changes_show_nothing_of_a_forgotten_subject(base: Database, db: Store) -> None:
    for number in range(2):
        stored = db.put(Customer(customer_id=f"c{number}", email=EMAIL))
        db.put(stored.model_copy(update={"email": f"new.{EMAIL}"}))
    forget("c0")
    for number, expected in enumerate(([None], [EMAIL])):
        old = db.history(Customer, customer_id=f"c{number}").get(1)
        assert old is not None
        assert [old.email] == expected
    changes = base.admin().changes(Customer, since="earliest")
    seen = [(each.current.customer_id, each.current.email) for each in changes]
    assert seen == [("c0", None), ("c0", None), ("c1", EMAIL), ("c1", f"new.{EMAIL}")]


def test_a_page_of_many_subjects_reads_the_keys_in_one_batch(db: Store) -> None:
    for number in range(40):
        db.put(Customer(customer_id=f"c{number:02}", email=EMAIL))
    keys._cache.clear()
    before = store.reads
    assert [each.email for each in db.page(Customer.everyone(), limit=40)] == [EMAIL] * 40
    assert store.reads == before + 1
    db.page(Customer.everyone(), limit=40)
    assert store.reads == before + 1, "cached keys are not read again"


def test_the_event_loop_does_not_wait_for_keys(opening: Opening, base: Database, db: Store) -> None:
    store.threads.clear()
    db.put(Customer(customer_id="c1", email=EMAIL))
    keys._cache.clear()
    db.update(Customer, customer_id="c1", version=1, set={"email": STREET})
    for read in (
        lambda: db.get(Customer, customer_id="c1"),
        lambda: db.get_many(Customer, [{"customer_id": "c1"}]),
        lambda: db.page(Customer.everyone(), limit=9),
        lambda: db.page(Customer.contacts(), limit=9),
        lambda: list(base.admin().scan(Customer, budget=9)),
        lambda: db.modify(Customer, lambda each: each, customer_id="c1"),
        lambda: db.history(Customer, customer_id="c1").list(),
        lambda: db.history(Customer, customer_id="c1").get(1),
        lambda: list(base.admin().changes(Customer, since="earliest")),
    ):
        keys._cache.clear()
        read()
    assert store.threads
    # The suite runs the loop in its own thread.
    assert (threading.get_ident() in store.threads) == (opening.runner is None)


def test_another_process_uses_a_key_for_cache_seconds_at_most(db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL))
    assert db.require(Customer, customer_id="c1").email == EMAIL
    elsewhere = SubjectKeys(store, keyring, kind="customer", cache_seconds=0)
    elsewhere.forget("c1", tenant="acme")
    assert db.require(Customer, customer_id="c1").email == EMAIL, "this process has the key in its cache"
    now = [0.0]
    keys._cache._clock = lambda: now[0]
    keys._cache.clear()
    elsewhere.ensure("acme", "c2")
    db.put(Customer(customer_id="c2", email=EMAIL))
    elsewhere.forget("c2", tenant="acme")
    now[0] = 29.9
    assert db.require(Customer, customer_id="c2").email == EMAIL
    now[0] = 30.0
    assert db.require(Customer, customer_id="c2").email is None


def test_forgetting_is_idempotent_and_reaches_subjects_without_a_key(db: Store) -> None:
    first = forget("ghost")
    assert (first.kind, first.had_key, first.warnings) == ("customer", False, ())
    assert forget("ghost") == first
    with pytest.raises(SubjectForgotten):
        db.put(Customer(customer_id="ghost", email=EMAIL))
    db.put(Customer(customer_id="c1", email=EMAIL))
    assert forget("c1").had_key
    assert [each.subject for each in keys.forgotten()] == ["ghost", "c1"]
    assert list(staff.forgotten()) == []


def test_every_subject_of_a_tenant_is_forgotten_at_once(base: Database, db: Store) -> None:
    for tenant in ("acme", "zeta"):
        for number in range(3):
            base.tenant(tenant).put(Customer(customer_id=f"c{number}", email=EMAIL))
    assert {each.subject for each in keys.forget_tenant("acme")} == {"c0", "c1", "c2"}
    assert len(list(keys.forgotten())) == 3
    assert [each.email for each in db.page(Customer.everyone(), limit=9)] == [None] * 3
    other = base.tenant("zeta")
    assert [each.email for each in other.page(Customer.everyone(), limit=9)] == [EMAIL] * 3


def test_receipts_are_replayed_after_an_older_key_store_was_restored(db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL))
    db.put(Customer(customer_id="c2", email=EMAIL))
    saved = list(store.all_records())
    rows = [forget("c1").row()]
    store.close()
    for record in saved:
        store.add(record)
    keys._cache.clear()
    assert db.require(Customer, customer_id="c1").email == EMAIL, "an old key store brings the key back"
    replayed = keys.replay(Receipt.of_row(each) for each in rows)
    assert [each.subject for each in replayed] == ["c1"]
    assert db.require(Customer, customer_id="c1").email is None
    assert db.require(Customer, customer_id="c2").email == EMAIL


@pytest.mark.parametrize("row", [{}, {"subject": 1}, {"kind": "k", "tenant": 1, "subject": "s"}], ids=str)
def test_other_json_is_not_a_receipt(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="not a receipt"):
        Receipt.of_row({"forgotten_at": "2026-01-01T00:00:00+00:00", **row})


def test_the_master_key_is_rotated_without_a_write_to_the_data() -> None:
    masters = {"m1": generate_key()}
    rotating = Keyring(lambda: masters)
    mine = SubjectKeys(store, rotating, kind="customer", cache_seconds=0)
    before = mine.encrypt(b"text", b"here", "acme", "c1")
    mine.forget("c2", tenant="acme")
    masters = {"m2": generate_key(), **masters}
    rotating.reload()
    assert (mine.rewrap(), mine.rewrap()) == (1, 0)
    del masters["m1"]
    rotating.reload()
    assert mine.decrypt(before, b"here", "acme") == b"text"
    record = mine.find("c1", tenant="acme")
    assert record is not None
    changed = KeyRecord(**{**_as_dict(record), "wrapped": b"other"})
    assert not store.rewrap(changed, b"mine"), "a record that has changed is not replaced"


def _as_dict(record: KeyRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in KeyRecord.__dataclass_fields__}


class PlainLetter(Entity, table=shop, tag="Letter"):
    key = Key("TENANT#{tenant_id}", "LETTER#{user_id}")
    tenant_id: str = FROM_SCOPE
    user_id: str
    text: Annotated[str | None, Encrypted(keyring)] = None


later = Table("Subjects", tenant="tenant_id", stream=True, indexes=[Index("GSI1")])


class Letter(Entity, table=later, tag="Letter"):
    key = Key("TENANT#{tenant_id}", "LETTER#{user_id}")
    tenant_id: str = FROM_SCOPE
    user_id: str
    text: Annotated[str | None, Encrypted(keys, subject="user_id")] = None


def test_a_backfill_gives_stored_values_their_subjects(opening: Opening, db: Store) -> None:
    for user in ("u1", "u2"):
        db.put(PlainLetter(user_id=user, text=EMAIL))
    after = opening(later)
    assert after.tenant("acme").require(Letter, user_id="u1").text == EMAIL
    forget("u2")
    if opening.runner is None:
        assert backfill(after.admin(), Letter, budget=1_000).tally.recoded == 2
        assert backfill(after.admin(), Letter, budget=1_000).tally.recoded == 0
        assert after.tenant("acme").require(Letter, user_id="u2").text is None
        assert after.tenant("acme").require(Letter, user_id="u1").text == EMAIL
        forget("u1")
        assert after.tenant("acme").require(Letter, user_id="u1").text is None


def test_an_upgrade_that_changes_the_subject_encrypts_again(opening: Opening) -> None:
    old, new = Table("Subjects"), Table("Subjects")

    class Before(Entity, table=old, tag="Note", schema_version=1):
        key = Key("NOTE#{note_id}", "NOTE")
        note_id: str
        user_id: str
        text: Annotated[str | None, Encrypted(keys, subject="user_id")] = None

    class Note(Entity, table=new, schema_version=2):
        key = Key("NOTE#{note_id}", "NOTE")
        note_id: str
        user_id: str
        text: Annotated[str | None, Encrypted(keys, subject="user_id")] = None

        @upgrade(to=2)
        @staticmethod
        def _rename(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, "user_id": "new"}

    opening(old).put(Before(note_id="1", user_id="old", text=EMAIL))
    db = opening(new)
    assert backfill(opening.beside(new).admin(), Note, budget=100).tally.upgraded == 1
    forget("old", tenant=None)
    assert db.require(Note, note_id="1").text == EMAIL
    forget("new", tenant=None)
    assert db.require(Note, note_id="1").text is None


def test_a_lost_or_damaged_key_is_an_error_and_not_a_forgotten_subject(db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL))
    (record,) = store.all_records()
    damaged = bytearray(record.wrapped or b"")
    damaged[-1] ^= 1
    assert store.rewrap(record, bytes(damaged))
    keys._cache.clear()
    with pytest.raises(StoredDataError, match=r"Customer\.email cannot decrypt .* key of its subject"):
        db.get(Customer, customer_id="c1")
    with pytest.raises(StoredDataError, match="Cannot use the key of customer 'c1'"):
        db.put(Parcel(number=1, customer_id="c1", street=STREET))
    store.close()
    keys._cache.clear()
    with pytest.raises(StoredDataError, match=r"is not in KeyTable\('sqlite://'\); restore the key store"):
        db.page(Customer.everyone(), limit=10)


def test_a_record_of_another_subject_is_an_error(db: Store) -> None:
    keys.ensure("acme", "c1")
    record = keys.find("c1", tenant="acme")
    assert record is not None
    store.close()
    store.add(KeyRecord(**{**_as_dict(record), "subject": "c2"}))
    keys._cache.clear()
    with pytest.raises(StoredDataError, match="is of another subject"):
        db.put(Customer(customer_id="c1", email=EMAIL))


def _declare(**fields: Any) -> None:
    type(
        "Wrong",
        (Entity,),
        {
            "__module__": __name__,
            "key": Key("U#{user_id}", "U"),
            "__annotations__": {"user_id": str, **fields},
        },
        table=Table("Wrong"),
    )


class NotNull(BaseModel):
    email: str


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "no subject": (lambda: Encrypted(keys), 'Encrypted(keys, subject="user_id")'),
    "a shared key": (lambda: Encrypted(keyring, subject="user_id"), "takes a SubjectKeys, got Keyring"),
    "another field": (
        lambda: _declare(a=Annotated[str | None, Encrypted(keys, subject="userid")]),
        "'userid', which is not a field of Wrong; did you mean 'user_id'?",
    ),
    "a list": (
        lambda: _declare(b=list[str], a=Annotated[str | None, Encrypted(keys, subject="b")]),
        "'b', which is not stored as a plain string or number",
    ),
    "itself": (
        lambda: _declare(a=Annotated[str | None, Encrypted(keys, subject="a")]),
        "'a', which is not stored as a plain string or number",
    ),
    "not optional": (
        lambda: _declare(a=Annotated[str, Encrypted(keys, subject="user_id")]),
        "declare it as optional, such as `str | None`",
    ),
    "unique": (
        lambda: _declare(a=Annotated[str | None, Encrypted(keys, subject="user_id"), Unique()]),
        "a lock item would hold its value",
    ),
    "a view": (lambda: Customer.key.query().select(NotNull), "NotNull.email is None after its subject"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_declaration_is_rejected(name: str) -> None:
    declare, message = WRONG[name]
    with pytest.raises(DeclarationError) as rejected:
        declare()
    assert message in str(rejected.value)


def test_a_key_must_not_contain_a_field_with_a_subject() -> None:
    with pytest.raises(DeclarationError, match="encrypted"):

        class Found(Entity, table=Table("Found")):
            key = Key("U#{email}", "U")
            user_id: str
            email: Annotated[str | None, Encrypted(keys, subject="user_id")] = None

    with pytest.raises(
        DeclarationError, match=r"Hashed\.domain is in a key and reads a field with a subject"
    ):

        class Hashed(Entity, table=Table("Hashed", indexes=[Index("GSI1")])):
            key = Key("U#{user_id}", "U")
            by_domain = Key("D#{domain}", "U#{user_id}", index="GSI1")
            user_id: str
            email: Annotated[str | None, Encrypted(keys, subject="user_id")] = None

            @computed_field  # type: ignore[prop-decorator]
            @property
            def domain(self) -> str:
                return (self.email or "@").split("@")[1]


def test_a_view_of_versions_must_accept_none(db: Store) -> None:
    db.put(Customer(customer_id="c1", email=EMAIL))
    with pytest.raises(DeclarationError, match=r"NotNull\.email is None after its subject"):
        db.history(Customer, customer_id="c1").views(NotNull)


def test_an_event_must_not_contain_a_field_with_a_subject() -> None:
    with pytest.raises(DeclarationError, match="an event would show its value"):

        class Loud(Entity, table=Table("Loud")):
            key = Key("U#{user_id}", "U")
            events = Outbox(snapshot=("email",), days=None)
            user_id: str
            version: Annotated[int, Version()] = 0
            email: Annotated[str | None, Encrypted(keys, subject="user_id")] = None


def test_subject_keys_take_a_key_store() -> None:
    url: Any = "sqlite:///keys.db"
    with pytest.raises(NotConfigured, match=r"SubjectKeys\(KeyTable\(url\), keyring\)"):
        SubjectKeys(url, keyring)


def test_receipts_survive_json() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC)
    receipt = Receipt(kind="customer", tenant=None, subject="c1", forgotten_at=at, had_key=True)
    assert Receipt.of_row(receipt.row()) == receipt
