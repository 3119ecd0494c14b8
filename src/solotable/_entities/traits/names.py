"""Names: rename entities that have a name in their key, and redirect from former names.

A name belongs to an entity, redirects to an entity's current name, or is free. An entity stores its former
names, and a rename updates all of their redirects, so redirects form no chains and no loops.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from solotable._entities.declare.table import REDIRECT_TAG, suggestion
from solotable._values import AttributeValue, Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.plan import Draft

EntityT = TypeVar("EntityT", bound="Entity")

#: A rename writes every former name in one transaction of 100 actions, together with other writes.
MOST_ALIASES = 95
#: The attribute with the former names of an entity, and the attribute with the target of a redirect.
ALIASES = "_aliases"
TO = "to"
_IS_REDIRECT = "IsRedirect"


@dataclass(frozen=True, slots=True, kw_only=True)
class Redirect(Generic[EntityT]):
    """A former name with its target name, and the target entity if it was requested."""

    name: str
    to: str
    entity: EntityT | None = None


class Names(Trait):
    """Let the entities of a class be renamed, with redirects from their former names.

    `names = Names("path", protected=("/", "/contact"))`: `path` is part of the entity's primary key.
    Protected names cannot be renamed or deleted. An entity has at most `most` former names.
    """

    carries = (ALIASES,)
    stands_in = True
    field: str
    version: str
    _tag_name: str
    _tag_value: AttributeValue

    def __init__(self, field: str, *, protected: Iterable[str] = (), most: int = 90) -> None:
        if isinstance(protected, str):
            raise DeclarationError(f"Names: protected= is a tuple of names; write ({protected!r},).")
        self.field = field
        self.protected = frozenset(protected)
        self.most = most

    def bind(self, draft: Draft) -> Self:
        """Check the declaration, and return the trait of the plan."""
        where = f"{draft.name}.{self.name}"
        attribute = draft.attributes.get(self.field)
        if attribute is None:
            raise DeclarationError(
                f"{where}: {self.field!r} is not a field; {suggestion(self.field, draft.attributes)}"
            )
        if self.field not in draft.keys["key"].fields or self.field == draft.tenant:
            raise DeclarationError(
                f"{where}: {self.field!r} is not part of {draft.name}.key; update it like any other field."
            )
        if not attribute.stored:
            raise DeclarationError(f"{where}: {self.field!r} has stored=False; a rename needs the attribute.")
        if attribute.kind != "S":
            raise DeclarationError(f"{where}: {self.field!r} is not a str, but a name must be a str.")
        if draft.version is None:
            raise DeclarationError(
                f"{where}: a rename needs the entity's version; "
                f"add a field: version: Annotated[int, Version()] = 0."
            )
        if not 1 <= self.most <= MOST_ALIASES:
            raise DeclarationError(
                f"{where}: most={self.most}; a rename writes every former name in one transaction, "
                f"which holds at most {MOST_ALIASES}."
            )
        bound = copy(self)
        bound.version = draft.version
        bound._tag_name, bound._tag_value = draft.table.internal_tag, {"S": REDIRECT_TAG + draft.tag}
        return bound

    @property
    def depends(self) -> tuple[str, ...]:
        """The version, which increases whenever the former names change."""
        return (self.version,)

    @property
    def tag_value(self) -> AttributeValue:
        """The type tag of redirects."""
        return self._tag_value

    def redirect(self, key: Item, to: str) -> Item:
        """Return the redirect item for a former name."""
        return {**key, self._tag_name: self._tag_value, _IS_REDIRECT: {"BOOL": True}, TO: {"S": to}}

    def is_redirect(self, item: Item) -> bool:
        """Return whether an item is a redirect to an entity of this class."""
        return item.get(self._tag_name) == self._tag_value

    def target(self, item: Item) -> str:
        """Return the target name of a redirect."""
        return str(item[TO]["S"])

    def aliases(self, item: Item) -> tuple[str, ...]:
        """Return the former names of a stored entity, the oldest first."""
        return tuple(str(each["S"]) for each in item.get(ALIASES, {}).get("L", ()))

    def with_aliases(self, item: Item, aliases: tuple[str, ...]) -> Item:
        """Return a stored entity with these former names."""
        rest = {name: value for name, value in item.items() if name != ALIASES}
        return {**rest, **self.aliases_attribute(aliases)}

    def aliases_attribute(self, aliases: tuple[str, ...]) -> Item:
        """Return the attribute with these former names; empty without names."""
        return {ALIASES: {"L": [{"S": each} for each in aliases]}} if aliases else {}

    def occupied(self, item: Item, values: Mapping[str, Any]) -> str | None:
        """Describe the redirect under an entity's key."""
        if not self.is_redirect(item):
            return None
        return (
            f"{values.get(self.field)!r} redirects to {self.target(item)!r}; "
            f"release() the redirect first, or use another name"
        )
