"""Encrypt and decrypt the fields of an item that are marked `Encrypted`.

A value is bound to its table, entity, primary key and attribute, so that it cannot be moved to another
item. Field codecs see plain values only. NULL and absent attributes stay as they are. A value whose subject
was forgotten is decrypted as NULL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from solotable._entities.codecs.containers import Codec, FieldSite
from solotable._entities.declare.field_storage import Encrypted
from solotable._expressions.ast import Action, Assign, Const, IfNotExists, SetOperand
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, StoredDataError, SubjectForgotten

from .frames import CIPHER, frame, pack, unframe, unpack

if TYPE_CHECKING:
    from solotable._entities.declare.field_storage import Cipher, SubjectCipher


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemCipher:
    """Encrypts and decrypts the attributes of one entity's items."""

    #: The entity's name in messages.
    owner: str
    #: The table and the tag that values are bound to.
    table: str
    tag: str
    key_names: tuple[str, ...]
    #: The markers by attribute name.
    markers: Mapping[str, Encrypted]
    #: Returns the tenant of an item.
    tenant_of: Callable[[Item], str | None]
    #: Returns the value of a subject field of an item, as text; None if the item does not have it.
    subject_of: Callable[[str, Item], str | None]

    @property
    def subjects(self) -> frozenset[str]:
        """The fields that name the subjects of encrypted fields."""
        return frozenset(each.subject for each in self.markers.values() if each.subject is not None)

    def subject_values(self, item: Item) -> Iterator[tuple[SubjectCipher, bytes]]:
        """Yield the ciphertexts of an item that have a subject's key, with their ciphers."""
        for wire, marker in self.markers.items():
            if marker.subject is not None and wire in item:
                framed = unframe(item[wire])
                if framed is not None and framed[0] == CIPHER:
                    yield cast("SubjectCipher", marker.keys), framed[1]

    def encrypt(self, item: Item) -> None:
        """Encrypt the marked attributes of an item that has its primary key."""
        for wire in self.markers:
            if wire in item:
                item[wire] = self.encrypt_value(wire, item[wire], item)

    def decrypt(self, item: Item) -> Item:
        """Return an item with plain values."""
        found = {
            wire: self._decrypted(wire, item[wire], item)
            for wire in self.markers
            if wire in item and "NULL" not in item[wire]
        }
        return {**item, **found} if found else item

    def encrypt_value(self, wire: str, value: AttributeValue, item: Item) -> AttributeValue:
        """Return the stored form of an attribute; `item` has the primary key and the tenant."""
        if "NULL" in value:
            return value
        marker = self.markers[wire]
        context = self._context(marker.name or wire, item)
        tenant = self.tenant_of(item)
        if marker.subject is None:
            return frame(CIPHER, cast("Cipher", marker.keys).encrypt(pack(value), context, tenant))
        subject = self.subject_of(marker.subject, item)
        if subject is None:
            raise DataError(
                f"{self.owner}.{wire} is encrypted for its {marker.subject}, which is not known here; set "
                f"{marker.subject}, or use modify() if the primary key does not contain it."
            )
        keys = cast("SubjectCipher", marker.keys)
        return frame(CIPHER, keys.encrypt(pack(value), context, tenant, subject))

    def encrypt_actions(self, actions: Iterable[Action], item: Item) -> tuple[Action, ...]:
        """Return the actions of an update with encrypted values."""
        return tuple(
            replace(each, operand=self._encrypt_operand(each.operand, str(each.path[0]), item))
            if isinstance(each, Assign) and each.path[0] in self.markers
            else each
            for each in actions
        )

    def _encrypt_operand(self, operand: SetOperand, wire: str, item: Item) -> SetOperand:
        match operand:
            case Const(value):
                return Const(self.encrypt_value(wire, value, item))
            case IfNotExists(path, Const(value)):
                return IfNotExists(path, Const(self.encrypt_value(wire, value, item)))
        raise DataError(f"{self.owner}.{wire} is encrypted and can only be set as a whole.")

    def outdated(self, item: Item) -> Item:
        """Return plain attributes, and those of former keys, encrypted with the first key."""
        plain = self.decrypt(item)
        found: Item = {}
        for wire, marker in self.markers.items():
            stored = item.get(wire)
            if stored is None or "NULL" in stored:
                continue
            framed = unframe(stored)
            if framed is None or framed[0] != CIPHER or not marker.keys.is_current(framed[1]):
                try:
                    found[wire] = self.encrypt_value(wire, plain[wire], item)
                except SubjectForgotten:
                    # The value was stored before the field had a subject.
                    found[wire] = {"NULL": True}
        return found

    def keep_unchanged(self, before: Item, after: Item) -> None:
        """Replace new ciphertexts of an item by stored ones that are equal to them and use the first key."""
        common = [wire for wire in self.markers if wire in before and wire in after]
        if not common:
            return
        outdated, old, new = self.outdated(before), self.decrypt(before), self.decrypt(after)
        for wire in common:
            if wire not in outdated and old[wire] == new[wire] and self._same_subject(wire, before, after):
                after[wire] = before[wire]

    def _same_subject(self, wire: str, before: Item, after: Item) -> bool:
        name = self.markers[wire].subject
        return name is None or self.subject_of(name, before) == self.subject_of(name, after)

    def _decrypted(self, wire: str, stored: AttributeValue, item: Item) -> AttributeValue:
        marker = self.markers[wire]
        framed = unframe(stored)
        try:
            if framed is None or framed[0] != CIPHER:
                if marker.allow_plaintext:
                    return stored
                raise ValueError("it is not encrypted; pass Encrypted(..., allow_plaintext=True) to read it")
            context = self._context(marker.name or wire, item)
            return unpack(marker.keys.decrypt(framed[1], context, self.tenant_of(item)))
        except SubjectForgotten:
            return {"NULL": True}
        except ValueError as error:
            raise StoredDataError(
                f"{self.owner}.{wire} cannot decrypt the stored value of {self._key(item)}: {error}."
            ) from None

    def _key(self, item: Item) -> Item:
        return {name: item[name] for name in self.key_names if name in item}

    def _context(self, name: str, item: Item) -> bytes:
        key = [[each, item.get(each)] for each in self.key_names]
        if any(value is None for _, value in key):
            raise DataError(
                f"{self.owner} has encrypted fields, which are bound to the primary key; "
                f"pass an item with {' and '.join(self.key_names)}."
            )
        # A list in JSON is injective: no two places have the same text.
        return json.dumps([self.table, self.tag, key, name], separators=(",", ":")).encode()


def secret_codec(site: FieldSite, codec: Codec) -> Codec:
    """Return a codec whose errors do not contain the value."""

    def encode(value: Any) -> AttributeValue | None:
        try:
            return codec.encode(value)
        except DataError as error:
            raise DataError(
                f"{site.where} cannot store the given value, which is not shown because it is encrypted.",
                public_message=error.public_message,
            ) from None

    def decode(value: AttributeValue) -> Any:
        try:
            return codec.decode(value)
        except DataError:
            raise StoredDataError(
                f"{site.where} cannot decode its stored value, which is not shown because it is encrypted; "
                f"correct the item or the field's type."
            ) from None

    # Without a kind, traits such as Counted reject the field: they would store its value elsewhere.
    return replace(codec, kind=None, encode=encode, decode=decode, scalar=None)
