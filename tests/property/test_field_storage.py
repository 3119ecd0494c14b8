"""Compressed and encrypted values come back as they were, whatever they are."""

from __future__ import annotations

from typing import Annotated, Any

from hypothesis import given
from hypothesis import strategies as st

from solotable import Compressed, Encrypted, Entity, Key, Table
from solotable.encryption import Keyring

table = Table("Opaque")
keyring = Keyring({"k": bytes(32)})
leaves = (
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | st.text(max_size=40) | st.binary(max_size=40)
)
trees = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(min_size=1, max_size=5), inner, max_size=4)
    ),
    max_leaves=20,
)
#: Bytes that may look like a frame.
framed = st.builds(lambda form, rest: b"\xd5ZS" + form + rest, st.binary(max_size=1), st.binary(max_size=200))


class Opaque(Entity, table=table):
    key = Key("OPAQUE#{name}", "OPAQUE")
    name: str
    text: Annotated[str, Compressed()]
    raw: Annotated[bytes, Compressed()]
    tree: Annotated[dict[str, Any], Compressed()]
    secret: Annotated[str, Encrypted(keyring)]
    secret_raw: Annotated[bytes, Encrypted(keyring), Compressed()]


@given(
    text=st.text() | st.text(min_size=1).map(lambda text: text * 50),
    raw=st.binary() | framed,
    tree=st.dictionaries(st.text(min_size=1, max_size=5), trees, max_size=4),
)
def test_every_value_comes_back(text: str, raw: bytes, tree: dict[str, Any]) -> None:
    plan = Opaque.plan()
    entity = Opaque(name="n", text=text, raw=raw, tree=tree, secret=text, secret_raw=raw)
    item = plan.encode(entity.__dict__)
    found = plan.decode(item)
    assert isinstance(found, Opaque)
    assert (found.text, found.raw, found.secret, found.secret_raw) == (text, raw, text, raw)
    assert found.tree == tree
    assert "S" not in item["secret"]
