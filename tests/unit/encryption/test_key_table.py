"""The file of subject keys: races, kills, and what is left of a destroyed key."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from solotable._protocol.requests import Control
from solotable.backup import BackupFile
from solotable.encryption import Keyring, KeyTable, SubjectKeys, generate_key
from solotable.engines import dynamodb
from solotable.errors import Corrupt, EngineError, NotConfigured, SubjectForgotten
from tests.killing import Start
from tests.serving import served

from .customers import URL, keyring, shop

PROGRAM = ("-m", "tests.unit.encryption.customers")


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[KeyTable]:
    """A new key table."""
    monkeypatch.chdir(tmp_path)
    made = KeyTable.create(URL)
    yield made
    made.close()


@pytest.fixture
def keys(store: KeyTable) -> SubjectKeys:
    return SubjectKeys(store, keyring, cache_seconds=0)


def wrapped_key(keys: SubjectKeys, subject: str) -> bytes:
    record = keys.find(subject, tenant="acme")
    assert record is not None
    assert record.wrapped is not None
    return record.wrapped


def is_anywhere(secret: bytes, folder: Path) -> bool:
    """Return whether a file has these bytes, as such or in the form of an item's attribute."""
    contents = [path.read_bytes() for path in folder.rglob("*") if path.is_file()]
    return any(form in each for each in contents for form in (secret, b64encode(secret)))


def test_a_destroyed_key_is_in_no_byte_of_the_file_and_its_log(
    store: KeyTable, keys: SubjectKeys, tmp_path: Path
) -> None:
    # Enough records that pages split and leave copies of records in their free space.
    for number in range(200):
        keys.ensure("acme", f"c{number}")
    chosen = {number: wrapped_key(keys, f"c{number}") for number in (0, 57, 100, 199)}
    kept = wrapped_key(keys, "c1")
    assert all(is_anywhere(each, tmp_path) for each in chosen.values())
    (first, *_) = keys.forget_many([f"c{number}" for number in chosen], tenant="acme")
    assert first.warnings == ()
    # The table is open: its log is there.
    assert [number for number, each in chosen.items() if is_anywhere(each, tmp_path)] == []
    assert is_anywhere(kept, tmp_path)
    store.close()
    assert [number for number, each in chosen.items() if is_anywhere(each, tmp_path)] == []
    assert is_anywhere(kept, tmp_path)


def test_processes_that_create_the_first_key_of_a_subject_get_the_same(
    keys: SubjectKeys, tmp_path: Path, start: Start
) -> None:
    programs = [start(*PROGRAM, "encrypt", str(tmp_path)) for _ in range(3)]
    for each in programs:
        assert each.wait_for_lines(1) == ["read"], "each found no key"
    ciphertexts = [bytes.fromhex(each.end()[-1]) for each in programs]
    assert [keys.decrypt(each, b"here", "acme") for each in ciphertexts] == [b"text"] * 3
    keys.forget("new", tenant="acme")
    for ciphertext in ciphertexts:
        with pytest.raises(SubjectForgotten):
            keys.decrypt(ciphertext, b"here", "acme")


@pytest.mark.parametrize("at", ["forget", "forgotten", "scrubbed"])
def test_a_killed_call_is_ended_by_the_next_one(
    keys: SubjectKeys, tmp_path: Path, start: Start, at: str
) -> None:
    ciphertext = keys.encrypt(b"text", b"here", "acme", "c1")
    secret = wrapped_key(keys, "c1")
    program = start(*PROGRAM, "forget", str(tmp_path))
    for count in range(1, 4):
        lines = program.wait_for_lines(count)
        if lines[-1] == at:
            break
        program.release()
    assert program.kill()[-1] == at
    if at == "forget":
        assert keys.decrypt(ciphertext, b"here", "acme") == b"text", (
            "the key is there or gone, nothing between"
        )
    else:
        with pytest.raises(SubjectForgotten):
            keys.decrypt(ciphertext, b"here", "acme")
    receipt = keys.forget("c1", tenant="acme")
    assert (receipt.had_key, receipt.warnings) == (True, ())
    assert not is_anywhere(secret, tmp_path)
    with pytest.raises(SubjectForgotten):
        keys.decrypt(ciphertext, b"here", "acme")


def test_a_missing_table_is_an_error_and_not_an_empty_one(store: KeyTable, tmp_path: Path) -> None:
    with pytest.raises(NotConfigured, match="already has subject keys"):
        KeyTable.create(URL)
    store.close()
    for path in tmp_path.glob("keys.db*"):
        path.unlink()
    keys = SubjectKeys(store, keyring)
    with pytest.raises(
        NotConfigured, match=r"no table of subject keys; restore it, or call KeyTable\.create"
    ):
        keys.encrypt(b"text", b"here", None, "c1")
    assert not Path("keys.db").exists()
    (tmp_path / "keys.db").touch()
    with pytest.raises(NotConfigured, match="no table of subject keys"):
        keys.encrypt(b"text", b"here", None, "c1")


def test_a_damaged_record_is_an_error(store: KeyTable, keys: SubjectKeys, tmp_path: Path) -> None:
    ciphertext = keys.encrypt(b"text", b"here", "acme", "c1")
    secret = b64encode(wrapped_key(keys, "c1"))
    store.close()
    path = tmp_path / "keys.db"
    content = path.read_bytes()
    assert secret in content
    path.write_bytes(content.replace(secret, secret[:-8] + b"AAAA" + secret[-4:]))
    with pytest.raises((Corrupt, EngineError)):
        keys.decrypt(ciphertext, b"here", "acme")


def test_another_keyring_cannot_use_the_keys(store: KeyTable, keys: SubjectKeys) -> None:
    ciphertext = keys.encrypt(b"text", b"here", "acme", "c1")
    stranger = SubjectKeys(store, Keyring({"m1": generate_key()}))
    with pytest.raises(ValueError, match="the key of its subject cannot be decrypted"):
        stranger.decrypt(ciphertext, b"here", "acme")
    for tenant, context in (("acme", b"there"), ("acme", b"")):
        with pytest.raises(ValueError, match="copied from another item"):
            keys.decrypt(ciphertext, context, tenant)


def test_receipts_warn_of_backups_and_readers_that_keep_a_key(
    store: KeyTable, keys: SubjectKeys, tmp_path: Path
) -> None:
    keys.ensure("acme", "c1")
    with BackupFile(tmp_path / "keys.db") as file:
        file.enable("SubjectKeys")
        file.create("SubjectKeys", "before")
    first, second = keys.forget("c1", tenant="acme").warnings
    assert "SubjectKeys has point-in-time recovery, which keeps a key for 35 days" in first
    assert "SubjectKeys has backups on demand" in second


def test_a_forked_child_uses_and_creates_keys(keys: SubjectKeys, tmp_path: Path, start: Start) -> None:
    (line,) = start(*PROGRAM, "fork", str(tmp_path)).end()
    expected = {
        "before",
        "both",
        *(f"{each}{number}" for each in ("child", "parent") for number in range(20)),
    }
    assert set(line.split()) == expected


def test_keys_on_a_server_are_created_destroyed_listed_and_watched() -> None:
    with served("--memory") as running:
        url = f"{running.url}/ShopKeys"
        with pytest.raises(NotConfigured, match="no table of subject keys"):
            SubjectKeys(KeyTable(url), keyring).ensure(None, "c1")
        store = KeyTable.create(url)
        keys = SubjectKeys(store, keyring, cache_seconds=0)
        ciphertexts = [keys.encrypt(b"text", b"here", "acme", f"c{number}") for number in range(3)]
        assert keys.forget("c0", tenant="acme").warnings == ()
        assert [each.subject for each in keys.forgotten()] == ["c0"]
        assert keys.decrypt(ciphertexts[1], b"here", "acme") == b"text"
        with pytest.raises(SubjectForgotten):
            keys.decrypt(ciphertexts[0], b"here", "acme")
        with pytest.raises(NotConfigured, match="already has subject keys"):
            KeyTable.create(url)
        engine = dynamodb.open(endpoint_url=running.url)
        engine.handle(
            Control(
                operation="UpdateTable",
                members={
                    "TableName": "ShopKeys",
                    "StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"},
                },
            )
        )
        engine.close()
        (warning,) = keys.forget_tenant("acme")[0].warnings
        assert "ShopKeys has a stream, whose records keep a destroyed key for 24 hours" in warning
        store.close()


def test_keys_are_not_in_the_file_of_the_data(store: KeyTable, keys: SubjectKeys) -> None:
    shop.open("sqlite:///shop.db").close()
    with pytest.raises(NotConfigured, match=r"shop\.db has other tables \(Shop\).* use a separate file"):
        KeyTable.create("sqlite:///shop.db")
    shop.open(URL).close()
    (warning,) = keys.forget("c1", tenant="acme").warnings
    assert "keys.db has other tables (Shop)" in warning
