"""Synced: replicate an entity to offline clients through the version log of its space.

`_flows.sync` writes the log in the transaction of every write; `solotable.sync` serves it to clients.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import quote, unquote

from solotable._entities.declare.table import suggestion
from solotable._entities.traits.trait import Trait
from solotable.errors import DataError, DeclarationError

if TYPE_CHECKING:
    from solotable._entities.codecs.field_codecs import Attribute
    from solotable._entities.declare.plan import Draft

#: The attribute with the version of the space at the item's last write.
SPACE_VERSION = "_sv"
#: Begins the names of spaces that belong to the sync itself. Values are quoted, so no field begins with it.
RESERVED = "%"
_PART = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


class NameTemplate:
    """A template of fields for names of spaces and keys of clients; `/` and `%` in a value are quoted."""

    def __init__(self, text: str, attributes: Mapping[str, Attribute]) -> None:
        self.text = text
        pieces = _PART.split(text)
        self._literals, self.fields = pieces[::2], tuple(pieces[1::2])
        self._attributes = attributes
        pattern = re.escape(self._literals[0])
        for literal in self._literals[1:]:
            pattern += "([^/]+)" + re.escape(literal)
        self._pattern = re.compile(pattern)

    def format(self, values: Mapping[str, Any]) -> str:
        """Return the name with the values of the fields."""
        text = self._literals[0]
        for name, literal in zip(self.fields, self._literals[1:], strict=True):
            encoded = self._attributes[name].encode(values[name])
            part = "" if encoded is None else next(iter(encoded.values()))
            if not isinstance(part, str) or not part:
                raise DataError(f"{self.text!r} needs a text or number for {name}, got {values[name]!r}.")
            text += quote(part, safe=" !#$&'()*+,:;=?@[]~|^`{}<>\"\\") + literal
        return text

    def parse(self, name: str) -> dict[str, Any] | None:
        """Return the values of a name's fields; None if it does not match the template."""
        match = self._pattern.fullmatch(name)
        if match is None:
            return None
        found: dict[str, Any] = {}
        for field, part in zip(self.fields, match.groups(), strict=True):
            attribute = self._attributes[field]
            try:
                found[field] = attribute.decode({attribute.kind or "S": unquote(part)})
            except (ValueError, ArithmeticError, DataError):
                return None
        return found


class Synced(Trait):
    """Replicate the entity to offline clients: `sync = Synced()`.

    - `space` is the template of the space that orders its writes; without one, it is the tenant's space. Its
      fields are parts of the primary key, and with the tenant they give the partition key.
    - `key` is the template of the client's key, by default the entity's name and the parts of its key.
    - `fields` or `exclude` choose what a client sees. Without them it is every field except the tenant,
      counters, and encrypted or offloaded fields.
    - `log_days` is how long a client may be offline before it loads the whole space again.
    """

    always = True

    def __init__(
        self,
        *,
        space: str = "",
        key: str | None = None,
        fields: Iterable[str] | None = None,
        exclude: Iterable[str] = (),
        log_days: int = 30,
    ) -> None:
        for name, given in (("fields", fields), ("exclude", exclude)):
            if isinstance(given, str):
                raise DeclarationError(f"Synced: {name} is a list of fields; write ({given!r},).")
        self.space = space
        self.key = key
        self.fields = None if fields is None else tuple(fields)
        self.exclude = tuple(exclude)
        self.log_days = log_days
        self.space_template: NameTemplate
        self.key_template: NameTemplate
        #: The names of the fields that a client sees.
        self.visible: frozenset[str] = frozenset()

    def bind(self, draft: Draft) -> Self:
        """Check that a space can be listed, and that no visible change happens without a write."""
        bound = copy.copy(self)
        where = f"{draft.name}.{self.name}"
        primary = draft.keys["key"]
        parts = [name for name in primary.parts if name != draft.tenant]
        default = "/".join((draft.name.lower(), *(f"{{{name}}}" for name in parts)))
        bound.space_template = NameTemplate(self.space, draft.attributes)
        bound.key_template = NameTemplate(default if self.key is None else self.key, draft.attributes)
        for what, template in (("space", bound.space_template), ("key", bound.key_template)):
            for name in template.fields:
                if name not in parts:
                    raise DeclarationError(
                        f"{where}: {what}={template.text!r} names {name!r}, which is not a part of the "
                        f"primary key, so a write could change it; {suggestion(name, parts)}"
                    )
        if not bound.key_template.text or bound.key_template.text.startswith("control/"):
            raise DeclarationError(f"{where}: key={self.key!r} is empty or begins with 'control/'.")
        if self.space.startswith(RESERVED):
            raise DeclarationError(
                f"{where}: space={self.space!r} begins with {RESERVED!r}, which is reserved."
            )
        self._check_table(draft, where)
        unknown = set(primary.partition.fields) - {draft.tenant, *bound.space_template.fields}
        if unknown or (primary.is_split and getattr(primary.partition, "bucket", None) is not None):
            shown = ", ".join(sorted(unknown)) or "a time bucket"
            raise DeclarationError(
                f"{where}: the partition key of {draft.name} has {shown}, which the space {self.space!r} "
                f"does not give, so a client's first load could not find its items; name it in space=..., "
                f"or leave it out of the partition key."
            )
        bound.visible = frozenset(self._visible(draft, where))
        return bound

    def _check_table(self, draft: Draft, where: str) -> None:
        table = draft.table
        if table.sort is None or (table.partition.kind, table.sort.kind) != ("S", "S"):
            raise DeclarationError(
                f"{where}: the version log is stored in the table itself, so table {table.name!r} needs a "
                f"partition key and a sort key of type S."
            )
        for attribute in draft.attributes.values():
            if attribute.ttl:
                raise DeclarationError(
                    f"{where}: items with a time to live ({attribute.field}) disappear without a write, and "
                    f"clients would keep them; delete them with a job instead."
                )
            if attribute.wire == SPACE_VERSION:
                raise DeclarationError(
                    f"{where} uses the attribute {SPACE_VERSION!r}; give {draft.name}.{attribute.field} "
                    f"another attribute name with Attr(...)."
                )
        if self.log_days < 1:
            raise DeclarationError(f"{where}: log_days={self.log_days}; keep the log for at least a day.")

    def _visible(self, draft: Draft, where: str) -> Iterable[str]:
        for name in (*(self.fields or ()), *self.exclude):
            if name not in draft.attributes:
                raise DeclarationError(
                    f"{where} names {name!r}, which is not a field; {suggestion(name, draft.attributes)}"
                )
        for name in self.fields or ():
            attribute = draft.attributes[name]
            if attribute.counter:
                raise DeclarationError(
                    f"{where}: fields= names the counter {name!r}, which changes without a write of "
                    f"{draft.name}; leave it out, and count in the client."
                )
            if attribute.encrypted is not None or attribute.offloaded is not None:
                raise DeclarationError(
                    f"{where}: fields= names {name!r}, which is {attribute.opaque}; clients get the stored "
                    f"entity as JSON, so leave it out."
                )
        if self.fields is not None:
            return [name for name in self.fields if name not in self.exclude]
        return [
            name
            for name, attribute in draft.attributes.items()
            if name not in (draft.tenant, *self.exclude)
            and not attribute.counter
            and attribute.encrypted is None
            and attribute.offloaded is None
        ]
