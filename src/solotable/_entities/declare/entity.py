"""Entity: a Pydantic model with a table and keys. It has no client and no save()."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast

from pydantic import BaseModel, ConfigDict

from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import Pattern
from solotable._entities.schema.upgrades import Downgrade, Newer, Upgrade
from solotable._entities.traits.trait import Trait
from solotable.errors import DataError, DeclarationError

from .table import Table

if TYPE_CHECKING:
    from solotable._values import Item

    from .plan import Plan


class Entity(BaseModel):
    """The base class of all models that are stored in a table.

    `class User(Entity, table=shop)` binds the class to a table. A subclass without `table=` is abstract:
    its subclasses inherit its fields and keys.

    - `tag` is the type tag of its items; the default is the class's name.
    - `scope="global"` declares an entity that belongs to no tenant.
    - `flat=True` rejects nested values.
    - `schema_version` is the version of its stored items, with an `@upgrade` to each. Reading an item of a
      newer version raises NewerSchemaVersion; with `newer="read"` the store decodes it without a change.
    """

    # Decoding uses the fields' names, also if a field has an alias for JSON.
    model_config = ConfigDict(
        ignored_types=(Key, Pattern, Trait, Upgrade, Downgrade),
        extra="forbid",
        validate_assignment=True,
        populate_by_name=True,
        # For this class only, see below.
        defer_build=True,
    )

    #: The compiled entity; None until it is needed. Any, because `typing.get_type_hints` cannot import Plan.
    _plan: ClassVar[Any] = None
    _declared: ClassVar[tuple[Table, str, bool, bool, int | None, Newer] | None] = None

    # Python calls this hook with all class arguments; Pydantic calls the hook below, which uses them. This
    # signature keeps them from BaseModel, which would treat them as settings of the model.
    def __init_subclass__(
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        scope: Literal["tenant", "global"] = "tenant",
        flat: bool | None = None,
        schema_version: int | None = None,
        newer: Newer = "raise",
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
        schema_version: int | None = None,
        newer: Newer = "raise",
        **settings: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**settings)
        cls._plan = None
        cls._declared = None
        if table is None:
            return
        if (tag or cls.__name__).startswith("_"):
            raise DeclarationError(
                f"{cls.__name__}: tags that begin with _ are reserved for the store; give another tag=."
            )
        is_flat = table.flat if flat is None else flat
        cls._declared = (table, tag or cls.__name__, is_flat, scope == "global", schema_version, newer)
        if cls.__pydantic_complete__:
            cls.plan()

    @classmethod
    def plan(cls) -> Plan:
        """Return the compiled class: its attributes, keys and traits."""
        if cls._plan is None:
            if cls._declared is None:
                raise DeclarationError(
                    f"{cls.__name__} is not bound to a table; write class {cls.__name__}(..., table=...)."
                )
            if not cls.__pydantic_complete__:
                cls.model_rebuild()
            # Imported here, so that a program that only imports Entity does not load the codecs.
            from .build import build_plan

            table, tag, flat, is_global, schema_version, newer = cls._declared
            cls._plan = build_plan(
                cls,
                table,
                tag=tag,
                flat=flat,
                is_global=is_global,
                schema_version=schema_version,
                newer=newer,
            )
            table.register(cls._plan)
        return cast("Plan", cls._plan)

    @property
    def unknown_attributes(self) -> Item:
        """The attributes of the stored item for which the model has no field; a put writes them back."""
        private = self.__pydantic_private__
        return cast("Item", private.get("unknown", {})) if private else {}

    def keep_unknown(self, attributes: Item) -> None:
        """Set the unknown attributes of the entity; raise DataError for the name of a key or a field."""
        plan = self.plan()
        if not plan.reserved.isdisjoint(attributes):
            names = ", ".join(sorted(plan.reserved.intersection(attributes)))
            raise DataError(
                f"keep_unknown() of {plan.name} takes attributes that no field and no key uses, got {names}; "
                f"set the field, or leave the attribute to the store."
            )
        set_private(self, "unknown", attributes)


def set_private(entity: Entity, name: str, value: Any) -> None:
    """Keep a value of the store in an entity; an empty one removes it."""
    # Pydantic copies, pickles and compares its private attributes. A declared one would cost every instance
    # an initialiser, and hardly any item has unknown attributes. Names that a model declares begin with _.
    private = {**(entity.__pydantic_private__ or {}), name: value}
    if not value:
        del private[name]
    declares = bool(entity.__private_attributes__)
    object.__setattr__(entity, "__pydantic_private__", private if private or declares else None)


# Pydantic loads its plugins when it builds the first schema. Entity needs no schema, because it has no fields
# and no instances. Subclasses build their schemas when they are defined.
del Entity.model_config["defer_build"]
