"""Compressed and encrypted fields: what is stored, what is readable, and what is rejected."""

from __future__ import annotations

import base64
import traceback
import zlib
from collections.abc import Callable
from datetime import timedelta
from typing import Annotated, Any, Self

import pytest
from pydantic import BaseModel, Field, SecretStr, field_validator, model_validator

from solotable import (
    ANY,
    FROM_SCOPE,
    Actor,
    Attr,
    Compressed,
    Counted,
    Counter,
    Database,
    Encrypted,
    Entity,
    History,
    Index,
    Json,
    Key,
    Names,
    Outbox,
    SoftDelete,
    Store,
    Table,
    Unique,
    Version,
    contains,
    exists,
    missing,
    size,
    upgrade,
)
from solotable.encryption import Keyring, generate_key
from solotable.errors import DataError, DeclarationError, NotConfigured, StoredDataError
from solotable.jobs.backfill import backfill

from .opening import Opening

records = Table("Records", tenant="tenant_id", ttl="expires", stream=True, indexes=[Index("GSI1")])
keyring = Keyring({"k1": bytes(range(32))})
PROSE = "The quick brown fox jumps over the lazy dog. " * 40


class Block(BaseModel):
    title: str
    lines: list[str]


class Note(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    tenant_id: str = FROM_SCOPE
    note_id: str
    body: Annotated[str, Compressed()] = ""
    blocks: Annotated[list[Block], Compressed()] = Field(default_factory=list)
    facts: Annotated[dict[str, int] | None, Compressed(), Attr("f")] = None
    raw: Annotated[bytes, Compressed()] = b""
    document: Annotated[dict[str, Any], Json(), Compressed()] = Field(default_factory=dict)


class PlainNote(Entity, table=Table("Records", tenant="tenant_id"), tag="Note"):
    key = Key("TENANT#{tenant_id}", "NOTE#{note_id}")
    tenant_id: str = FROM_SCOPE
    note_id: str
    body: str = ""
    raw: bytes = b""


class Patient(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "PATIENT#{patient_id}")
    by_name = Key("TENANT#{tenant_id}#PATIENTS", "{name}", index="GSI1")
    history = History("PATIENT#{patient_id}#v{version:06d}")
    events = Outbox(title="name")
    tenant_id: str = FROM_SCOPE
    patient_id: str
    name: str
    ssn: Annotated[str, Encrypted(keyring), Field(min_length=3)]
    notes: Annotated[list[str], Encrypted(keyring), Compressed()] = Field(default_factory=list)
    pin: Annotated[SecretStr | None, Encrypted(keyring)] = None
    version: Annotated[int, Version()] = 0


class Vault(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "VAULT#{vault_id}")
    deletion = SoftDelete(grace=timedelta(days=30))
    tenant_id: str = FROM_SCOPE
    vault_id: str
    code: Annotated[str, Encrypted(keyring)]


class Locker(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "LOCKER#{locker_id}")
    tenant_id: str = FROM_SCOPE
    locker_id: str
    code: Annotated[str, Encrypted(keyring)]


class Tree(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "TREE#{tree_id}")
    tenant_id: str = FROM_SCOPE
    tree_id: str
    nodes: Annotated[dict[str, Any], Compressed()]


class PatientName(BaseModel):
    patient_id: str
    ssn: str


@pytest.fixture
def base(opening: Opening) -> Database:
    return opening(records)


@pytest.fixture
def db(base: Database) -> Store:
    return base.tenant("acme").acting(Actor(id="u1"))


def item_of(opening: Opening, tag: str, tenant: str = "acme") -> dict[str, Any]:
    (found,) = [
        each
        for each in opening.raw(records)
        if each["_type"] == {"S": tag} and each["tenant_id"] == {"S": tenant}
    ]
    return found


def recode(opening: Opening, entity: type[Entity]) -> int:
    db = opening.beside(entity.plan().table)
    return backfill(db.admin(), entity, budget=1_000).tally.recoded


def stored_bytes(value: dict[str, Any]) -> bytes:
    return base64.b64decode(value["B"])


def binary(content: bytes) -> dict[str, str]:
    return {"B": base64.b64encode(content).decode()}


def test_a_compressed_field_is_smaller_and_comes_back(db: Store, opening: Opening) -> None:
    note = Note(
        note_id="n1",
        body=PROSE,
        blocks=[Block(title="a", lines=["b"] * 200)],
        facts={"one": 1},
        raw=b"\x00" * 5_000,
        document={"a": ["b"] * 100},
    )
    db.put(note)
    item = item_of(opening, "Note")
    assert len(stored_bytes(item["body"])) < len(PROSE) / 10
    assert len(stored_bytes(item["blocks"])) < 100
    assert len(stored_bytes(item["document"])) < 100
    assert item["f"] == {"M": {"one": {"N": "1"}}}, "not smaller, so stored plain"
    assert db.get(Note, note_id="n1") == note.model_copy(update={"tenant_id": "acme"})


def test_a_value_stored_before_the_marker_is_readable(db: Store, opening: Opening) -> None:
    opening(PlainNote.plan().table).tenant("acme").put(PlainNote(note_id="n1", body=PROSE, raw=b"plain" * 50))
    found = db.require(Note, note_id="n1")
    assert (found.body, found.raw) == (PROSE, b"plain" * 50)


def test_bytes_that_look_like_a_frame_come_back(db: Store) -> None:
    for raw in (b"\xd5ZS\x01", b"\xd5ZS\x00" + b"x" * 20, b"\xd5ZS\x02" + bytes(range(256)), b"\xd5ZS"):
        db.put(Note(note_id="n1", raw=raw))
        assert db.require(Note, note_id="n1").raw == raw


def test_a_stored_bomb_is_not_expanded(db: Store, opening: Opening) -> None:
    db.put(Note(note_id="n1", body=PROSE))
    item = item_of(opening, "Note")
    item["body"] = binary(b"\xd5ZS\x01" + zlib.compress(b"S" + b"0" * 5_000_000))
    opening.plant(records, item)
    with pytest.raises(StoredDataError, match="expands to more than max_bytes"):
        db.get(Note, note_id="n1")
    with pytest.raises(DataError, match="before compression, but max_bytes is 4,194,304"):
        db.put(Note(note_id="n1", body="0" * 5_000_000))


def test_an_unknown_format_or_a_cut_value_is_an_error(db: Store, opening: Opening) -> None:
    db.put(Note(note_id="n1", body=PROSE))
    whole = stored_bytes(item_of(opening, "Note")["body"])
    for damaged, reason in (
        (whole[:3] + b"\x09" + whole[4:], "format 9"),
        (whole[:-6], "cut short"),
        (whole[:8], "cut short"),
    ):
        item = item_of(opening, "Note")
        item["body"] = binary(damaged)
        opening.plant(records, item)
        with pytest.raises(StoredDataError, match=reason):
            db.get(Note, note_id="n1")


@pytest.mark.parametrize(
    "content",
    [
        b"J[1]",
        b"Jnull",
        b"J{}",
        b'J{"L":[],"S":""}',
        b'J{"X":"a"}',
        b'J{"L":[1]}',
        b'J{"L":5}',
        b'J{"L":[null]}',
        b'J{"L":[{}]}',
        b'J{"L":[{"M":{"title":{"S":5}}}]}',
        b'J{"L":[{"M":5}]}',
        b'J{"N":"x"}',
        b"Sx",
        b"J{",
    ],
)
def test_a_frame_without_a_value_of_the_field_is_an_error(
    db: Store, opening: Opening, content: bytes
) -> None:
    db.put(Note(note_id="n1"))
    item = item_of(opening, "Note")
    for name, wire in (("blocks", "blocks"), ("facts", "f")):
        opening.plant(records, {**item, wire: binary(b"\xd5ZS\x00" + content)})
        with pytest.raises(StoredDataError, match=f"Note.{name}"):
            db.get(Note, note_id="n1")


def test_a_compressed_field_is_set_and_removed_as_a_whole(db: Store) -> None:
    db.put(Note(note_id="n1", blocks=[Block(title="a", lines=[])]))
    assert db.update(Note, note_id="n1", set={"body": PROSE}).body == PROSE
    assert db.update(Note, note_id="n1", remove=["body"], where=lambda n: exists(n.body)).body == ""
    assert db.update(Note, note_id="n1", set={"facts": {"a": 1}}, where=lambda n: missing(n.facts)).facts
    wrong: list[dict[str, Any]] = [
        {"set": {"blocks[0].title": "b"}},
        {"append": {"blocks": []}},
        {"add": {"facts": 1}},
    ]
    for changes in wrong:
        with pytest.raises(DeclarationError, match="is compressed, so DynamoDB cannot change"):
            db.update(Note, note_id="n1", **changes)
    conditions: list[Any] = [
        lambda n: n.body == "x",
        lambda n: n.body.startswith("x"),
        lambda n: contains(n.body, "x"),
        lambda n: size(n.body) > 3,
        lambda n: n.blocks[0].title == "x",
    ]
    for where in conditions:
        with pytest.raises(DeclarationError, match=r"Note\.b.* is compressed, so"):
            db.update(Note, note_id="n1", set={"body": ""}, where=where)


def test_a_backfill_compresses_stored_values(base: Database, db: Store, opening: Opening) -> None:
    opening(PlainNote.plan().table).tenant("acme").put(PlainNote(note_id="n1", body=PROSE))
    assert recode(opening, Note) == 1
    assert len(stored_bytes(item_of(opening, "Note")["body"])) < 200
    assert db.require(Note, note_id="n1").body == PROSE
    assert recode(opening, Note) == 0


def test_opaque_fields_are_rejected_in_keys_and_unique_locks() -> None:
    table = Table("Wrong")
    with pytest.raises(DeclarationError, match="'body' is compressed and cannot be part of a key"):

        class InKey(Entity, table=table):
            key = Key("A#{body}", "B")
            body: Annotated[str, Compressed()]

    with pytest.raises(DeclarationError, match="Encrypted and Unique"):

        class Locked(Entity, table=table):
            key = Key("A#{name}", "B")
            name: str
            ssn: Annotated[str, Encrypted(keyring), Unique()]

    with pytest.raises(DeclarationError, match="marked Encrypted and Version"):

        class Counted(Entity, table=table):
            key = Key("A#{name}", "B")
            name: str
            version: Annotated[int, Encrypted(keyring), Version()] = 0

    class Inner(BaseModel):
        ssn: Annotated[str, Encrypted(keyring)]

    with pytest.raises(DeclarationError, match="mark a field of the entity instead"):

        class Nested(Entity, table=table):
            key = Key("A#{name}", "B")
            name: str
            inner: Inner

    with pytest.raises(DeclarationError, match="takes a Keyring"):
        Encrypted("secret")  # type: ignore[arg-type]  # the mistake under test


def test_an_encrypted_field_is_stored_as_ciphertext(db: Store, opening: Opening) -> None:
    patient = Patient(
        patient_id="p1", name="Ada", ssn="078-05-1120", notes=["flu"] * 50, pin=SecretStr("1234")
    )
    stored = db.put(patient)
    assert stored.ssn == "078-05-1120"
    found = db.require(Patient, patient_id="p1")
    assert (found.ssn, found.notes) == ("078-05-1120", ["flu"] * 50)
    assert found.pin == SecretStr("1234")
    assert found == stored
    everything = repr(opening.raw(records))
    assert "078-05" not in everything
    assert b"078-05" not in stored_bytes(item_of(opening, "Patient")["ssn"])
    assert len(stored_bytes(item_of(opening, "Patient")["notes"])) < 100, "compressed, then encrypted"
    assert "078-05" not in repr(found)
    assert db.put(found.model_copy(update={"pin": None})).pin is None
    assert "pin" not in item_of(opening, "Patient")


def test_updates_views_history_and_changes_decrypt(db: Store, base: Database, opening: Opening) -> None:
    db.put(Patient(patient_id="p1", name="Ada", ssn="first"))
    assert (
        db.update(Patient, patient_id="p1", version=ANY, set={"ssn": "second", "notes": ["n"]}).ssn
        == "second"
    )
    assert db.get(Patient, patient_id="p1").ssn == "second"  # type: ignore[union-attr]  # it exists
    view = db.page(Patient.by_name.query().select(PatientName), limit=5)
    assert [each.ssn for each in view] == ["second"]
    handle = db.history(Patient, patient_id="p1")
    assert [each.ssn for each in handle.list(limit=5)] == ["first"]
    assert {each.field: each.after for each in handle.diff(1, 2)} == {"ssn": "second", "notes": ["n"]}
    assert handle.restore(1).ssn == "first"
    changed = db.modify(Patient, lambda p: p.model_copy(update={"notes": [*p.notes, "m"]}), patient_id="p1")
    assert changed.notes == ["m"]
    assert "first" not in repr(opening.raw(records))
    assert "second" not in repr(opening.raw(records))


def test_events_have_no_encrypted_values(db: Store, opening: Opening) -> None:
    db.put(Patient(patient_id="p1", name="Ada", ssn="078-05-1120"))
    db.update(Patient, patient_id="p1", version=ANY, set={"ssn": "078-05-1121", "name": "Ada L"})
    events = [each["event"]["M"] for each in opening.raw(records) if each["_type"] == {"S": "_outbox"}]
    assert len(events) == 2
    for event in events:
        assert "ssn" not in event["snapshot"]["M"]
        assert "ssn" not in event.get("changes", {"M": {}})["M"]
    with pytest.raises(DeclarationError, match="'ssn', which is encrypted"):

        class Shown(Entity, table=records):
            key = Key("TENANT#{tenant_id}", "SHOWN#{name}")
            events = Outbox(title="ssn")
            tenant_id: str = FROM_SCOPE
            name: str
            ssn: Annotated[str, Encrypted(keyring)]
            version: Annotated[int, Version()] = 0


def test_a_ciphertext_cannot_be_moved(db: Store, base: Database, opening: Opening) -> None:
    db.put(Patient(patient_id="p1", name="Ada", ssn="078-05-1120", pin=SecretStr("1234")))
    db.put(Patient(patient_id="p2", name="Bob", ssn="078-05-1121"))
    base.tenant("zeta").acting(Actor(id="u1")).put(Patient(patient_id="p1", name="Eve", ssn="000-00-0000"))
    items = {
        (each["tenant_id"]["S"], each["patient_id"]["S"]): each
        for each in opening.raw(records)
        if each["_type"] == {"S": "Patient"}
    }
    ada = items["acme", "p1"]
    for wrong in (
        {**items["acme", "p2"], "ssn": ada["ssn"]},
        {**items["zeta", "p1"], "ssn": ada["ssn"]},
        {**ada, "ssn": ada["pin"]},
        {**ada, "ssn": binary(stored_bytes(ada["ssn"])[:-1] + b"\x00")},
        {**ada, "ssn": {"S": "plain"}},
        {**ada, "ssn": binary(b"\xd5ZS\x02\x01")},
    ):
        opening.plant(records, wrong)
        store = base.tenant(wrong["tenant_id"]["S"])
        with pytest.raises(StoredDataError, match=r"Patient\.ssn cannot decrypt the stored value") as caught:
            store.get(Patient, patient_id=wrong["patient_id"]["S"])
        assert "078-05" not in "".join(traceback.format_exception(caught.value))
        opening.plant(records, ada)


def test_errors_do_not_show_an_encrypted_value(db: Store) -> None:
    db.put(Patient(patient_id="p1", name="Ada", ssn="078-05-1120"))
    wrong = Patient.model_construct(
        tenant_id="acme", patient_id="p1", name="A", ssn="zq", notes=[], version=1
    )
    attempts: list[Callable[[], object]] = [
        lambda: db.put(wrong),
        lambda: db.put(wrong.model_copy(update={"ssn": 990_017})),
        lambda: db.update(Patient, patient_id="p1", version=ANY, set={"ssn": "zq"}),
        lambda: db.update(Patient, patient_id="p1", version=ANY, set={"ssn": 990_017}),  # type: ignore[typeddict-item]  # what the test is about
    ]
    for attempt in attempts:
        with pytest.raises(DataError) as caught:
            attempt()
        shown = "".join(traceback.format_exception_only(caught.value))
        assert "zq" not in shown
        assert "990017" not in shown
        assert caught.value.__suppress_context__, "Pydantic's error contains the value"


def test_a_retried_transaction_with_an_encrypted_field_runs_once(db: Store) -> None:
    for _ in range(2):
        with db.transaction(token="import-1") as tx:
            tx.create(Patient(patient_id="p1", name="Ada", ssn="078-05-1120"))
    for _ in range(2):
        with db.transaction(token="import-2") as tx:
            tx.update(Patient, patient_id="p1", version=ANY, set={"ssn": "078-05-1121"})
    assert db.require(Patient, patient_id="p1").version == 2


def test_a_snapshot_of_a_removed_key_names_the_key(opening: Opening) -> None:
    held = {"old": b"o" * 32}
    rotating = Keyring(lambda: held)
    table = Table("Dossiers")

    class Dossier(Entity, table=table):
        key = Key("DOSSIER#{number}", "DOSSIER")
        history = History("v{version:06d}")
        number: str
        text: Annotated[str, Encrypted(rotating)]
        version: Annotated[int, Version()] = 0

    db = opening(table)
    first = db.put(Dossier(number="1", text="a"))
    held = {"new": b"n" * 32, **held}
    rotating.reload()
    db.update(first, set={"text": "b"})
    del held["old"]
    rotating.reload()
    assert db.require(Dossier, number="1").text == "b"
    with pytest.raises(StoredDataError) as caught:
        db.history(Dossier, number="1").get(1)
    assert "Version 1 of Dossier number='1' cannot be decoded with the current model and keys" in str(
        caught.value
    )
    assert "the key 'old', which the keyring does not have; add it again." in str(caught.value)


def test_keys_rotate_by_backfill(opening: Opening) -> None:
    old, new = generate_key(), generate_key()
    held = {"old": old}
    rotating = Keyring(lambda: held, per_tenant=True)
    table = Table("Records", tenant="tenant_id", ttl="expires", stream=True, indexes=[Index("GSI1")])

    class Card(Entity, table=table):
        key = Key("TENANT#{tenant_id}", "CARD#{card_id}")
        tenant_id: str = FROM_SCOPE
        card_id: str
        number: Annotated[str, Encrypted(rotating)]

    cards = opening(table)
    cards.tenant("acme").put(Card(card_id="c1", number="4111"))
    assert b"old" in stored_bytes(item_of(opening, "Card")["number"])
    assert recode(opening, Card) == 0
    held = {"new": new, "old": old}
    rotating.reload()
    assert recode(opening, Card) == 1
    assert b"new" in stored_bytes(item_of(opening, "Card")["number"])
    assert recode(opening, Card) == 0
    held = {"new": new}
    rotating.reload()
    assert cards.tenant("acme").require(Card, card_id="c1").number == "4111"
    held = {"newest": generate_key()}
    rotating.reload()
    with pytest.raises(StoredDataError, match="the key 'new', which the keyring does not have"):
        cards.tenant("acme").get(Card, card_id="c1")


def test_a_field_is_encrypted_on_a_live_table(opening: Opening) -> None:
    plain, table = Table("Records"), Table("Records")

    class Before(Entity, table=plain, tag="Login"):
        key = Key("LOGIN#{name}", "LOGIN")
        name: str
        secret: str

    class Login(Entity, table=table):
        key = Key("LOGIN#{name}", "LOGIN")
        name: str
        secret: Annotated[str, Encrypted(keyring, allow_plaintext=True)]

    opening(plain).put(Before(name="ada", secret="hunter2"))
    db = opening(table)
    assert db.require(Login, name="ada").secret == "hunter2"
    assert recode(opening, Login) == 1
    assert "hunter2" not in repr(opening.raw(table))
    assert db.require(Login, name="ada").secret == "hunter2"


def test_a_renamed_entity_is_encrypted_for_its_new_key(opening: Opening) -> None:
    table = Table("Records", stream=True)

    class Route(Entity, table=table):
        key = Key("ROUTE#{slug}", "ROUTE")
        names = Names("slug")
        slug: str
        secret: Annotated[str, Encrypted(keyring)]
        version: Annotated[int, Version()] = 0

    db = opening(table)
    db.put(Route(slug="old", secret="hunter2"))
    db.names(Route).rename("old", to="new", version=ANY)
    assert db.require(Route, slug="new").secret == "hunter2"


def test_a_keyring_rejects_wrong_keys() -> None:
    for keys in ({}, {"": bytes(32)}, {"k": bytes(16)}, {"k" * 65: bytes(32)}):
        with pytest.raises(NotConfigured):
            Keyring(keys)
    wrong: Any
    for wrong in ({"k": "a" * 32}, {5: bytes(32)}, ["k"]):
        with pytest.raises(NotConfigured, match="Keyring takes"):
            Keyring(wrong)
    assert repr(Keyring({"k1": generate_key()})) == "Keyring(1 keys)"


def test_tenants_have_different_keys() -> None:
    ring = Keyring({"k": bytes(32)}, per_tenant=True)
    sealed = ring.encrypt(b"x", b"place", "acme")
    assert ring.decrypt(sealed, b"place", "acme") == b"x"
    for context, tenant in ((b"place", "zeta"), (b"place", None), (b"other", "acme")):
        with pytest.raises(ValueError, match="changed, copied"):
            ring.decrypt(sealed, context, tenant)
    assert not Keyring({"k": bytes(32)}).is_current(sealed)
    assert Keyring({"k": bytes(32)}).decrypt(sealed, b"place", "acme") == b"x"


def test_a_new_key_of_another_process_is_loaded_once() -> None:
    first, second = generate_key(), generate_key()
    held, calls = {"k1": first}, 0

    def provider() -> dict[str, bytes]:
        nonlocal calls
        calls += 1
        return held

    ring = Keyring(provider)
    ring.encrypt(b"x", b"place", None)
    held = {"k2": second, "k1": first}
    assert ring.decrypt(Keyring(held).encrypt(b"y", b"place", None), b"place", None) == b"y"
    for _ in range(3):
        with pytest.raises(ValueError, match="the key 'k3'"):
            ring.decrypt(Keyring({"k3": generate_key()}).encrypt(b"y", b"place", None), b"place", None)
    assert calls == 2, "values with unknown keys do not call the provider each time"


def test_encrypted_fields_in_batches_transactions_and_scans(db: Store, base: Database) -> None:
    with db.batch(overwrite=True) as batch:
        batch.put(Locker(locker_id="1", code="c1"))
    assert db.require(Locker, locker_id="1").code == "c1"
    with db.transaction() as tx:
        for number in range(4):
            tx.put(Vault(vault_id=str(number), code=f"c{number}"))
    keys = [{"vault_id": str(number)} for number in range(4)]
    assert [each and each.code for each in db.get_many(Vault, keys)] == ["c0", "c1", "c2", "c3"]
    assert {each.code for each in base.admin().scan(Vault, budget=100)} == {"c0", "c1", "c2", "c3"}
    assert [each.code for each in db.all(Vault.key.query())] == ["c0", "c1", "c2", "c3"]
    db.delete(Vault, vault_id="1")
    assert db.get(Vault, vault_id="1") is None
    assert db.undelete(Vault, vault_id="1").code == "c1"


def test_an_upgrade_keeps_an_unchanged_ciphertext(opening: Opening) -> None:
    old, new = Table("Records"), Table("Records")

    class Before(Entity, table=old, tag="Safe", schema_version=1):
        key = Key("SAFE#{name}", "SAFE")
        name: str
        code: Annotated[str, Encrypted(keyring)]

    class Safe(Entity, table=new, schema_version=2):
        key = Key("SAFE#{name}", "SAFE")
        name: str
        code: Annotated[str, Encrypted(keyring)]
        colour: str = "grey"

        @upgrade(to=2)
        @staticmethod
        def _paint(record: dict[str, Any]) -> dict[str, Any]:
            return {**record, "colour": "red"}

    opening(old).put(Before(name="a", code="1234"))
    (before,) = opening.raw(old)
    db = opening(new)
    assert backfill(opening.beside(new).admin(), Safe, budget=100).tally.upgraded == 1
    assert opening.only(Safe)["code"] == before["code"]
    assert db.update(Safe, name="a", set={"code": "5678"}).code == "5678"
    assert opening.only(Safe)["code"] != before["code"]
    found = db.require(Safe, name="a")
    assert (found.code, found.colour) == ("5678", "red")


def test_a_deep_compressed_value_is_rejected_in_both_directions(db: Store, opening: Opening) -> None:
    deep: Any = "x" * 100
    for _ in range(40):
        deep = {"a": deep}
    with pytest.raises(DataError, match="more than 31 levels deep"):
        db.put(Tree(tree_id="t", nodes=deep))
    db.put(Tree(tree_id="t", nodes={"a": "b" * 200}))
    item = opening.only(Tree)
    item["nodes"] = binary(b"\xd5ZS\x01" + zlib.compress(b'J{"L":' + b"[" * 100_000))
    opening.plant(records, item)
    with pytest.raises(StoredDataError, match=r"Tree\.nodes cannot decode"):
        db.get(Tree, tree_id="t")


def test_an_encrypted_amount_is_not_added_to_a_counter() -> None:
    table = Table("Wrong")

    class Account(Entity, table=table):
        key = Key("ACCOUNT#{account_id}", "ACCOUNT")
        account_id: str
        total: Annotated[int, Counter()] = 0

    with pytest.raises(DeclarationError, match="amount"):

        class Payment(Entity, table=table):
            key = Key("ACCOUNT#{account_id}", "PAYMENT#{payment_id}")
            total = Counted(Account, "total", amount="amount")
            account_id: str
            payment_id: str
            amount: Annotated[int, Encrypted(keyring)]


class Badge(Entity, table=records):
    key = Key("TENANT#{tenant_id}", "BADGE#{badge_id}")
    tenant_id: str = FROM_SCOPE
    badge_id: str
    title: str = ""
    mail: Annotated[str, Encrypted(keyring)] = ""
    shown: Annotated[str, Encrypted(keyring)] = ""

    @field_validator("mail")
    @classmethod
    def _lower(cls, value: str) -> str:
        return value.lower()

    @model_validator(mode="after")
    def _show(self) -> Self:
        self.__dict__["shown"] = f"badge of {self.title}"
        return self


def test_what_a_validator_changes_is_encrypted_too(db: Store, opening: Opening) -> None:
    db.put(Badge(badge_id="b", title="Ada", mail="ADA@EXAMPLE.COM"))
    updated = db.update(Badge, badge_id="b", set={"title": "Eve", "mail": "EVE@EXAMPLE.COM"})
    assert db.require(Badge, badge_id="b") == updated
    assert (updated.mail, updated.shown) == ("eve@example.com", "badge of Eve")
    item = opening.only(Badge)
    assert {"B"} == set(item["mail"]) == set(item["shown"])
