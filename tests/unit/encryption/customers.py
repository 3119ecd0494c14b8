"""A shop with personal data in `shop.db`, and the keys of its customers in `keys.db`."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Annotated

from solotable import FROM_SCOPE, Encrypted, Entity, History, Key, Table, Version
from solotable.encryption import KeyRecord, Keyring, KeyTable, SubjectKeys
from tests.killing import step, tell

URL = "sqlite:///keys.db"
keyring = Keyring({"m1": bytes(range(32))})
store = KeyTable(URL)
keys = SubjectKeys(store, keyring)
shop = Table("Shop", tenant="tenant_id", stream=True)


class Customer(Entity, table=shop):
    """A customer, who is the subject of the e-mail address."""

    key = Key("TENANT#{tenant_id}", "CUSTOMER#{customer_id}")
    history = History("CUSTOMER#{customer_id}#v{version:06d}")
    tenant_id: str = FROM_SCOPE
    customer_id: str
    email: Annotated[str | None, Encrypted(keys, subject="customer_id")] = None
    version: Annotated[int, Version()] = 0


class StoppingTable(KeyTable):
    """A key table that stops at each step until the test releases it."""

    def read(self, names: Sequence[str]) -> dict[str, KeyRecord]:
        """Read, and stop if nothing was found."""
        found = super().read(names)
        if not found:
            step("read")
        return found

    def forget(self, record: KeyRecord) -> KeyRecord:
        """Stop before and after the key is replaced."""
        step("forget")
        found = super().forget(record)
        step("forgotten")
        return found

    def scrub(self) -> tuple[str, ...]:
        """Stop after the file was rewritten."""
        found = super().scrub()
        step("scrubbed")
        return found


def fork(shared: SubjectKeys) -> str:
    """Use keys in a parent and a child at the same time; return the ids of the subjects."""
    before = shared.encrypt(b"text", b"here", "acme", "before")
    child = os.fork()
    mine = "child" if child == 0 else "parent"
    for number in range(20):
        ciphertext = shared.encrypt(b"text", b"here", "acme", f"{mine}{number}")
        assert shared.decrypt(ciphertext, b"here", "acme") == b"text"
    both = shared.encrypt(b"text", b"here", "acme", "both")
    assert shared.decrypt(before, b"here", "acme") == shared.decrypt(both, b"here", "acme") == b"text"
    if child == 0:
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0
    return " ".join(sorted(each.subject for each in shared.of_tenant("acme")))


if __name__ == "__main__":
    verb, folder = sys.argv[1:]
    mine = SubjectKeys(StoppingTable(f"sqlite:///{folder}/keys.db"), keyring)
    if verb == "encrypt":
        tell(mine.encrypt(b"text", b"here", "acme", "new").hex())
    elif verb == "fork":
        tell(fork(SubjectKeys(KeyTable(f"sqlite:///{folder}/keys.db"), keyring)))
    elif verb == "forget":
        mine.forget("c1", tenant="acme")
        tell("done")
    else:
        several = SubjectKeys(KeyTable(f"sqlite:///{folder}/keys.db"), keyring)
        for number in range(int(verb)):
            several.forget(f"c{number}", tenant="acme")
            tell(f"c{number}")
