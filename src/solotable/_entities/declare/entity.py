"""Entity: a Pydantic model that knows its table and its keys, and nothing that could send them.

There is no save() and no client in it; a store takes it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict

from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import Pattern
from solotable._entities.schema.upgrades import Downgrade, Newer, Upgrade
from solotable._entities.traits.trait import Trait
from solotable.errors import DeclarationError

from .table import Table

if TYPE_CHECKING:
    from solotable._values import Item

    from .plan import Plan


class Entity(BaseModel):
    """The base of everything kept in a table.

    `class User(Entity, table=shop)` binds the class to a table; `tag` is its type tag (the class's
    name unless given), `scope="global"` says that it belongs to no tenant, `flat=True` refuses nested
    values. `shape` counts the shapes that its stored items have had, with an `@upgrade` to each; items of
    a newer one are refused, or read as they are with `newer="read"`. A subclass without `table=` is
    abstract: it only lends its fields and keys.
    """

    # Stored items are read by the fields' own names, also where a field has an alias for JSON.
    model_config = ConfigDict(
        ignored_types=(Key, Pattern, Trait, Upgrade, Downgrade),
        extra="forbid",
        validate_assignment=True,
        populate_by_name=True,
        # Of this class only, see below.
        defer_build=True,
    )

    #: The compiled entity; None until it is first needed. `typing.get_type_hints` cannot import Plan here.
    _plan: ClassVar[Any] = None
    _declared: ClassVar[tuple[Table, str, bool, bool, int | None, Newer] | None] = None

    def __init_subclass__(
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        scope: Literal["tenant", "global"] = "tenant",
        flat: bool | None = None,
        shape: int | None = None,
        newer: Newer = "refuse",
        **settings: Any,
    ) -> None:
        super().__init_subclass__(**settings)

    @classmethod
    def __pydantic_init_subclass__(
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        scope: Literal["tenant", "global"] = "tenant",
        flat: bool | None = None,
        shape: int | None = None,
        newer: Newer = "refuse",
        **settings: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**settings)
        cls._plan = None
        cls._declared = None
        if table is None:
            return
        if (tag or cls.__name__).startswith("_"):
            raise DeclarationError(
                f"{cls.__name__}: tags that begin with _ are the store's own; give it a tag=."
            )
        is_flat = table.flat if flat is None else flat
        cls._declared = (table, tag or cls.__name__, is_flat, scope == "global", shape, newer)
        if cls.__pydantic_complete__:
            cls.plan()

    @classmethod
    def plan(cls) -> Plan:
        """Return what the class was compiled to."""
        if cls._plan is None:
            if cls._declared is None:
                raise DeclarationError(
                    f"{cls.__name__} is bound to no table; write class {cls.__name__}(..., table=...)."
                )
            if not cls.__pydantic_complete__:
                cls.model_rebuild()
            # A program that only imports Entity does not load the codecs.
            from .build import build_plan

            table, tag, flat, is_global, shape, newer = cls._declared
            cls._plan = build_plan(
                cls, table, tag=tag, flat=flat, is_global=is_global, shape=shape, newer=newer
            )
            table.register(cls._plan)
        return cast("Plan", cls._plan)

    @property
    def unknown_attributes(self) -> Item:
        """The attributes of the stored item that this model has no field for; a put keeps them."""
        kept = self.__pydantic_private__
        return cast("Item", kept.get("unknown", {})) if kept else {}

    def keep_unknown(self, attributes: Item) -> None:
        """Keep attributes that the model has no field for."""
        # Pydantic copies, pickles and compares its private attributes; a declared one would cost
        # every instance an initialiser, and hardly any item has unknown attributes.
        object.__setattr__(self, "__pydantic_private__", {"unknown": attributes} if attributes else None)


# Pydantic loads its plugins when it builds the first schema. Entity itself has no fields and no instances:
# entities build theirs when they are defined.
del Entity.model_config["defer_build"]
