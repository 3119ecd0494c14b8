"""Load the keys of data subjects before items are decoded or encoded, in few requests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from solotable._entities.declare.plan import Plan
from solotable._entities.declare.table import Table
from solotable._values import Item

from .retry import Flow, LoadKeys

if TYPE_CHECKING:
    from solotable._entities.declare.field_storage import SubjectCipher


def load_keys(plan: Plan, items: Iterable[Item | None]) -> Flow[None]:
    """Load the keys that decoding these items needs; `plan` is their entity, or its base class."""
    ciphers = [
        each.cipher
        for each in (plan, *plan.subclasses.values())
        if each.loads_keys and each.cipher is not None
    ]
    found: dict[int, tuple[SubjectCipher, list[bytes]]] = {}
    for item in items:
        if item is not None:
            for cipher in ciphers:
                for keys, ciphertext in cipher.subject_values(item):
                    found.setdefault(id(keys), (keys, []))[1].append(ciphertext)
    loads = [
        partial(keys.load, names)
        for keys, ciphertexts in found.values()
        if (names := keys.not_cached(ciphertexts))
    ]
    if loads:
        yield LoadKeys(tuple(loads))


def load_keys_of_table(table: Table, items: Sequence[Item | None]) -> Flow[None]:
    """Load the keys that decoding these items needs; they are of any entities of a table."""
    for plan in table.plans.values():
        if plan.loads_keys:
            yield from load_keys(plan, items)


def ensure_keys(plan: Plan, values: Mapping[str, Any], changed: Iterable[str] | None = None) -> Flow[None]:
    """Load or create the keys that encoding these values needs; `changed` are the fields that are written."""
    if plan.cipher is None or not plan.loads_keys:
        return
    wanted: dict[tuple[int, str], Any] = {}
    tenant = None if plan.tenant is None else values.get(plan.tenant)
    for attribute in plan.attributes.values():
        marker, name = attribute.encrypted, attribute.field
        if marker is None or marker.subject is None or (changed is not None and name not in changed):
            continue
        if changed is None and values.get(name) is None:
            continue
        subject = values.get(marker.subject)
        encoded = None if subject is None else plan.attributes[marker.subject].encode(subject)
        if encoded is None:
            # The encoder raises the error, or the write sets the field to None.
            continue
        keys, text = cast("SubjectCipher", marker.keys), str(next(iter(encoded.values())))
        if not keys.is_cached(tenant, text):
            wanted[id(keys), text] = partial(keys.ensure, tenant, text)
    if wanted:
        yield LoadKeys(tuple(wanted.values()))
