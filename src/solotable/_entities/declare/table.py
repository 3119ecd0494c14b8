"""Declarations of tables and indexes: key attributes, entities and the CreateTable request."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal

from solotable._values.lazy_dataclass import dataclass
from solotable._values.limits import LONGEST_TABLE_NAME, SHORTEST_TABLE_NAME
from solotable.errors import DeclarationError

if TYPE_CHECKING:
    from solotable._entities.adoption.presets import Preset
    from solotable._entities.keys.key import KeyFormat
    from solotable._values import Item

    from .plan import Plan

KeyType = Literal["S", "N", "B"]
Projected = Literal["ALL", "KEYS_ONLY"]
_TABLE_NAME = re.compile(rf"[a-zA-Z0-9_.-]{{{SHORTEST_TABLE_NAME},{LONGEST_TABLE_NAME}}}")
_TYPES: tuple[KeyType, ...] = ("S", "N", "B")
#: The stream specification of CreateTable and UpdateTable.
STREAM: Mapping[str, Any] = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}
#: The attribute with the type tag, also of internal items in a table whose entities have no tag.
_TAG = "_type"
#: The start of the type tags of snapshots and of redirects; the tag of their entity follows.
HISTORY_TAG = "_history:"
REDIRECT_TAG = "_redirect:"
#: First segments of the partition keys of internal items, such as locks and tokens.
INTERNAL_KINDS = frozenset(
    {
        "AUDIT",
        "BACKFILL",
        "CHECKPOINT",
        "COUNTER",
        "DEAD",
        "LEASE",
        "OUTBOX",
        "PURGE",
        "RECEIPT",
        "SYNC",
        "TOKEN",
        "UNIQUE",
    }
)
#: The longest part of a name that an error quotes.
_LONGEST_SHOWN = 40
#: DynamoDB: the most attributes of an index's partition key, and of its sort key.
_MOST_ATTRIBUTES = 4


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """One attribute of a key and its type."""

    name: str
    kind: KeyType = "S"

    @classmethod
    def parse(cls, text: str, *, where: str) -> KeyAttribute:
        """Parse `"name"` (a string) or `"name:N"`."""
        name, colon, kind = text.rpartition(":")
        if not colon:
            return cls(_named(text, where))
        for known in _TYPES:
            if kind == known:
                return cls(_named(name, where), known)
        raise DeclarationError(f"{where}: {text!r} has the type {kind!r}; a key attribute is S, N or B.")


class Index:
    """A secondary index: `Index("GSI1")` has the string keys GSI1PK and GSI1SK.

    - `partition` and `sort` name other attributes, or up to four each for multi-attribute keys. A type other
      than S follows a colon (`"order:N"`). `sort=None` declares an index without a sort key.
    - `projection` is "ALL", "KEYS_ONLY" or the attributes to include.
    - `local=True` makes it a local index, which shares the table's partition key.
    """

    def __init__(
        self,
        name: str,
        *,
        partition: str | Iterable[str] | None = None,
        sort: str | Iterable[str] | None = "",
        projection: Projected | Iterable[str] = "ALL",
        local: bool = False,
    ) -> None:
        where = f"Index {name!r}"
        self.name = _named(name, "Index")
        if local and partition is not None:
            raise DeclarationError(f"{where} is local and uses the table's partition key; remove partition=.")
        self.partition = _attributes(f"{name}PK" if partition is None else partition, where)
        self.sort = () if sort is None else _attributes(f"{name}SK" if sort == "" else sort, where)
        if not self.partition:
            raise DeclarationError(f"{where} has no partition key; name at least one attribute.")
        if local and len(self.sort) != 1:
            raise DeclarationError(f"{where} is local and needs exactly one sort attribute.")
        if isinstance(projection, str) and projection not in ("ALL", "KEYS_ONLY"):
            raise DeclarationError(f'{where}: projection is "ALL", "KEYS_ONLY" or a list of attributes.')
        self.projection: Projected | tuple[str, ...] = (
            projection if projection in ("ALL", "KEYS_ONLY") else tuple(projection)
        )
        self.local = local

    def __repr__(self) -> str:
        return f"Index({self.name!r})"


class Table:
    """One DynamoDB table and its entities; `solotable.Table` describes the arguments."""

    def __init__(  # noqa: PLR0913 - the settings of a table, each by name
        self,
        name: str,
        *,
        partition: str = "PK",
        sort: str | None = "SK",
        tag: str | None = _TAG,
        tag_required: bool = True,
        indexes: Iterable[Index] = (),
        tenant: str | None = None,
        ttl: str | None = None,
        flat: bool = False,
        stream: bool = False,
        schema_version: str = "_shape",
        key_format: KeyFormat | None = None,
        adopt: Literal["electrodb", "onetable", "toolbox", "pynamodb"] | None = None,
    ) -> None:
        where = f"Table {name!r}"
        # The rule of CreateTable; other requests also accept a table's ARN.
        if not _TABLE_NAME.fullmatch(name) and not name.startswith("arn:"):
            shown = name if len(name) <= _LONGEST_SHOWN else name[:_LONGEST_SHOWN] + "..."
            raise DeclarationError(
                f"Table {shown!r}: a table's name has {SHORTEST_TABLE_NAME} to {LONGEST_TABLE_NAME} "
                f"characters, each a letter (a-z, A-Z), a digit, or one of _ . -"
            )
        self.name = name
        self.partition = KeyAttribute.parse(partition, where=where)
        self.sort = None if sort is None else KeyAttribute.parse(sort, where=where)
        #: What the library that wrote the table stores; None for a table of solotable's own.
        self.preset: Preset | None = None
        if adopt is not None:
            # Imported here, so that other tables do not load it.
            from solotable._entities.adoption.presets import preset_of

            self.preset = preset_of(adopt, where=where)
            tag = self.preset.tag if tag == _TAG else tag
            tag_required = tag_required and self.preset.tag_required
            key_format = key_format or self.preset.key_format
        self.tag = None if tag is None else _named(tag, where)
        self.tag_required = tag_required and tag is not None
        #: The attribute with the tag of internal items, which entities without a tag need too.
        self.internal_tag = self.tag or _TAG
        self.tenant = tenant
        self.ttl = ttl
        self.flat = flat
        self.stream = stream
        self.schema_version = _named(schema_version, where)
        self.key_format = key_format
        self.indexes: Mapping[str, Index] = {index.name: self._bind(index) for index in indexes}
        self._plans: dict[str, Plan] = {}
        taken = [self.partition.name, self.internal_tag, *([self.sort.name] if self.sort else [])]
        if len(set(taken)) < len(taken):
            raise DeclarationError(f"{where} uses one attribute twice among its keys and tag: {taken}.")

    def _bind(self, index: Index) -> Index:
        if index.local:
            if self.sort is None:
                raise DeclarationError(
                    f"Table {self.name!r} has no sort key, so {index.name!r} cannot be local."
                )
            index.partition = (self.partition,)
        return index

    @property
    def key_names(self) -> tuple[str, ...]:
        """The attributes of the primary key: the partition key, and the sort key if registered is one."""
        return (self.partition.name,) if self.sort is None else (self.partition.name, self.sort.name)

    @property
    def plans(self) -> Mapping[str, Plan]:
        """The compiled entities of this table by tag, in the order of their definition."""
        return self._plans

    def recognise(self, item: Item) -> Plan | None:
        """Return the compiled entity of an item, by its type tag or by its primary key.

        None: an internal item of the store, or an item of no declared entity.
        """
        # Imported here, so that a declaration does not load the codecs.
        from .recognition import recognise

        return recognise(self, item)

    def index(self, name: str, *, where: str) -> Index:
        """Return an index by its name, or raise DeclarationError with the names of all indexes."""
        index = self.indexes.get(name)
        if index is None:
            raise DeclarationError(
                f"{where}: table {self.name!r} has no index {name!r}; {suggestion(name, self.indexes)}"
            )
        return index

    def register(self, plan: Plan) -> None:
        """Add an entity; a second definition of a class in the same module replaces the first."""
        registered = self._plans.get(plan.tag)
        if registered is not None and not _same_name(registered.entity, plan.entity):
            raise DeclarationError(
                f"{plan.name}: {registered.entity.__module__}.{registered.entity.__qualname__} already has "
                f"the tag "
                f"{plan.tag!r} in table {self.name!r}; give this entity another tag=."
            )
        from .recognition import bases_of, check_distinct

        if not self.tag_required and not plan.abstract:
            check_distinct(self, plan)
        for base in bases_of(plan):
            base.add_subclass(plan)
        if not plan.abstract:
            self._plans[plan.tag] = plan

    def definition(self, name: str | None = None) -> dict[str, Any]:
        """Return the members of the table's CreateTable request."""
        used: dict[str, KeyType] = {}
        keys = _schema((self.partition,), (self.sort,) if self.sort else (), used)
        indexes_by_kind: dict[str, list[dict[str, Any]]] = {
            "LocalSecondaryIndexes": [],
            "GlobalSecondaryIndexes": [],
        }
        for index in self.indexes.values():
            indexes_by_kind["LocalSecondaryIndexes" if index.local else "GlobalSecondaryIndexes"].append(
                {
                    "IndexName": index.name,
                    "KeySchema": _schema(index.partition, index.sort, used),
                    "Projection": self.projection(index),
                }
            )
        attributes = [{"AttributeName": name, "AttributeType": kind} for name, kind in used.items()]
        return {
            "TableName": name or self.name,
            "AttributeDefinitions": attributes,
            "KeySchema": keys,
            "BillingMode": "PAY_PER_REQUEST",
            **{kind: indexes for kind, indexes in indexes_by_kind.items() if indexes},
            **({"StreamSpecification": dict(STREAM)} if self.stream else {}),
        }

    def projection(self, index: Index) -> dict[str, Any]:
        """Return an index's Projection; an INCLUDE always has the type tag and the time to live."""
        if isinstance(index.projection, str):
            return {"ProjectionType": index.projection}
        keys = {self.partition.name, *([self.sort.name] if self.sort else [])}
        keys |= {attribute.name for attribute in (*index.partition, *index.sort)}
        named = [name for name in (self.tag, self.ttl) if name]
        wanted = dict.fromkeys((*named, *index.projection))
        return {
            "ProjectionType": "INCLUDE",
            "NonKeyAttributes": [attribute for attribute in wanted if attribute not in keys],
        }

    def __repr__(self) -> str:
        return f"Table({self.name!r}, {len(self._plans)} entities)"


def suggestion(name: str, known: Iterable[str]) -> str:
    """Return "did you mean" with the closest name, or the list of all names.

    >>> suggestion("GSI22", ["GSI2", "GSI4"])
    "did you mean 'GSI2'?"
    """
    # Imported here, because only error messages need it.
    import difflib

    names = [str(each) for each in known]
    close = difflib.get_close_matches(name, names, n=1)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"declared: {', '.join(names)}." if names else "none is declared."


def _same_name(one: type, other: type) -> bool:
    return (one.__module__, one.__qualname__) == (other.__module__, other.__qualname__)


def _named(name: str, where: str) -> str:
    if not name:
        raise DeclarationError(f"{where}: a name must not be empty, got {name!r}.")
    return name


def _attributes(given: str | Iterable[str], where: str) -> tuple[KeyAttribute, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    if len(names) > _MOST_ATTRIBUTES:
        raise DeclarationError(
            f"{where}: a partition key and a sort key have at most {_MOST_ATTRIBUTES} attributes each."
        )
    return tuple(KeyAttribute.parse(name, where=where) for name in names)


def _schema(
    partition: Iterable[KeyAttribute], sort: Iterable[KeyAttribute], used: dict[str, KeyType]
) -> list[dict[str, str]]:
    schema = []
    for role, attributes in (("HASH", partition), ("RANGE", sort)):
        for attribute in attributes:
            if used.setdefault(attribute.name, attribute.kind) != attribute.kind:
                raise DeclarationError(
                    f"The key attribute {attribute.name!r} is declared both {used[attribute.name]} "
                    f"and {attribute.kind}."
                )
            schema.append({"AttributeName": attribute.name, "KeyType": role})
    return schema
