"""Models with personal data, whose keys are in `keys.db`."""

from __future__ import annotations

from typing import Annotated

from solotable import FROM_SCOPE, Encrypted, Entity, Key, Table
from solotable.encryption import Keyring, KeyTable, SubjectKeys

store = KeyTable("sqlite:///keys.db")
keyring = Keyring({"m1": b"1" * 32})
keys = SubjectKeys(store, keyring, kind="customer")
staff = SubjectKeys(store, keyring, kind="employee")
shop = Table("Shop", tenant="tenant_id")
board = Table("Board")


class Customer(Entity, table=shop):
    key = Key("TENANT#{tenant_id}", "CUSTOMER#{customer_id}")
    tenant_id: str = FROM_SCOPE
    customer_id: str
    email: Annotated[str | None, Encrypted(keys, subject="customer_id")] = None


class Notice(Entity, table=board):
    key = Key("NOTICE#{clerk_id}", "NOTICE")
    clerk_id: str
    text: Annotated[str | None, Encrypted(staff, subject="clerk_id")] = None
