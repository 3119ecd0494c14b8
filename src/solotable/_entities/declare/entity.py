"""Entity: a Pydantic model with a table and keys. It has no client and no save()."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Self, cast

from pydantic import BaseModel, ConfigDict

from solotable._entities.keys.key import Key
from solotable._entities.patterns.pattern import Pattern
from solotable._entities.schema.upgrades import Downgrade, Newer, Upgrade
from solotable._entities.traits.trait import Trait
from solotable.errors import DataError, DeclarationError, StoredDataError

from .fields import is_from_scope
from .table import Table

if TYPE_CHECKING:
    from solotable._values import Item

    from .plan import Plan


class Declaration(NamedTuple):
    """The class arguments of an entity."""

    table: Table
    tag: str = ""
    abstract: bool = False
    is_global: bool = False
    flat: bool = False
    by_alias: bool = False
    schema_version: int | None = None
    newer: Newer = "raise"


class Entity(BaseModel):
    """The base class of all models that are stored in a table.

    `class User(Entity, table=shop)` binds the class to a table. A class without a table, also
    in its base classes, only provides fields and keys to its subclasses.

    `class Admin(User)` has the table and the keys of User and its own tag. Reads of User return both, each as
    an instance of its class.

    - `tag` is the type tag of its items; the default is the class's name.
    - `abstract=True` declares a base class of which no items exist.
    - `scope="global"` declares an entity that belongs to no tenant.
    - `flat=True` rejects nested values.
    - `by_alias=True` stores fields under their aliases, such as those of an `alias_generator`. `Attr` wins.
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
    _declared: ClassVar[Declaration | None] = None

    # Python calls this hook with all class arguments; Pydantic calls the hook below, which uses them. This
    # signature keeps them from BaseModel, which would treat them as settings of the model.
    def __init_subclass__(  # noqa: PLR0913 - the class arguments, each by name
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        abstract: bool = False,
        scope: Literal["tenant", "global"] | None = None,
        flat: bool | None = None,
        by_alias: bool | None = None,
        schema_version: int | None = None,
        newer: Newer = "raise",
        **settings: Any,
    ) -> None:
        super().__init_subclass__(**settings)

    @classmethod
    def __pydantic_init_subclass__(  # noqa: PLR0913 - the class arguments, each by name
        cls,
        *,
        table: Table | None = None,
        tag: str | None = None,
        abstract: bool = False,
        scope: Literal["tenant", "global"] | None = None,
        flat: bool | None = None,
        by_alias: bool | None = None,
        schema_version: int | None = None,
        newer: Newer = "raise",
        **settings: Any,
    ) -> None:
        super().__pydantic_init_subclass__(**settings)
        cls._plan = None
        cls._declared = None
        inherited = next((each for base in cls.__mro__[1:] if (each := vars(base).get("_declared"))), None)
        if table is None and inherited is None:
            return
        if tag == "":
            raise DeclarationError(
                f"{cls.__name__}: tag= must not be empty; leave it out for {cls.__name__!r}."
            )
        if (tag or cls.__name__).startswith("_"):
            raise DeclarationError(
                f"{cls.__name__}: tags that begin with _ are reserved for the store; give another tag=."
            )
        cls._declared = _declaration(table, inherited, scope, flat, by_alias)._replace(
            tag=tag or cls.__name__, abstract=abstract, schema_version=schema_version, newer=newer
        )
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
            if cls._declared.table.preset is not None:
                cls._declared.table.preset.complete_model(cls)
            # Imported here, so that a program that only imports Entity does not load the codecs.
            from .build import build_plan

            declared = cls._declared
            cls._plan = build_plan(cls, declared)
            declared.table.register(cls._plan)
        return cast("Plan", cls._plan)

    @classmethod
    def from_item(cls, item: Item) -> Self:
        """Return the entity of an item in wire form, such as an image of a stream record in a Lambda event.

        An item of another entity, or whose fields derive another key, raises StoredDataError. No scope checks
        the entity: it may belong to any tenant, and may be deleted or expired.
        """
        from solotable._entities.codecs.item_decoder import STORED
        from solotable._values.codec import is_wire_value

        if not isinstance(item, Mapping):
            raise DataError(
                f"{cls.__name__}.from_item() takes an item in wire form, got {type(item).__name__}."
            )
        for name, value in item.items():
            if not is_wire_value(value):
                raise DataError(
                    f"{cls.__name__}.from_item() takes an item in wire form, as "
                    f'{{"name": {{"S": "text"}}}}, but {name!r} has a value without a type.'
                )
        plan = cls.plan()
        found = plan.table.recognise(item)
        if found is None or not plan.covers(found):
            key = {name: item.get(name) for name in plan.table.key_names}
            what = "no entity of its table" if found is None else found.name
            raise StoredDataError(f"{cls.__name__}.from_item() got the item {key}, which is {what}.")
        entity = found.decode(item, STORED)
        found.check_key(item, entity)
        return cast("Self", entity)

    def to_item(self) -> Item:
        """Return the item of the entity in wire form, with its keys and its type tag.

        The version and the timestamps are those of the entity; only a store sets them.
        """
        plan, values = self.plan(), self.__dict__
        if plan.tenant is not None and is_from_scope(values[plan.tenant]):
            raise DataError(
                f"{plan.name}.to_item() needs {plan.tenant}, which only a store fills in; set it."
            )
        item = plan.encode(values, self.unknown_attributes)
        if plan.blobs is not None:
            plan.blobs.check_stored(item)
        return item

    @property
    def unknown_attributes(self) -> Item:
        """The attributes of the stored item for which the model has no field; a put writes them back.

        Returns a copy; `keep_unknown` changes them.
        """
        private = self.__pydantic_private__
        return dict(private["unknown"]) if private and "unknown" in private else {}

    def keep_unknown(self, attributes: Item) -> None:
        """Set the unknown attributes of the entity; raise DataError for the name of a key or a field."""
        plan = self.plan()
        if not plan.reserved.isdisjoint(attributes):
            names = ", ".join(sorted(plan.reserved.intersection(attributes)))
            raise DataError(
                f"keep_unknown() of {plan.name} takes attributes that no field and no key uses, got {names}; "
                f"set the field, or leave the attribute to the store."
            )
        set_private(self, "unknown", dict(attributes))


def set_private(entity: Entity, name: str, value: Any) -> None:
    """Keep a value of the store in an entity; an empty one removes it."""
    # Pydantic copies, pickles and compares its private attributes. A declared one would cost every instance
    # an initialiser, and hardly any item has unknown attributes. Names that a model declares begin with _.
    private = {**(entity.__pydantic_private__ or {}), name: value}
    if not value:
        del private[name]
    declares = bool(entity.__private_attributes__)
    object.__setattr__(entity, "__pydantic_private__", private if private or declares else None)


def copy_entity(entity: Entity, changes: Mapping[str, Any]) -> Entity:
    """Return a copy with changed fields, as `model_copy(update=)` does, in a third of its time."""
    copied = entity.__class__.__new__(entity.__class__)
    put, private = object.__setattr__, entity.__pydantic_private__
    put(copied, "__dict__", {**entity.__dict__, **changes})
    put(copied, "__pydantic_fields_set__", entity.__pydantic_fields_set__ | changes.keys())
    # Entities have no extra fields.
    put(copied, "__pydantic_extra__", None)
    put(copied, "__pydantic_private__", None if private is None else dict(private))
    return copied


# Pydantic loads its plugins when it builds the first schema. Entity needs no schema, because it has no fields
# and no instances. Subclasses build their schemas when they are defined.
del Entity.model_config["defer_build"]


def _declaration(
    table: Table | None,
    inherited: Declaration | None,
    scope: Literal["tenant", "global"] | None,
    flat: bool | None,
    by_alias: bool | None,
) -> Declaration:
    """Return the settings of a class that it inherits unless it has its own."""
    if inherited is None or (table is not None and table is not inherited.table):
        assert table is not None
        inherited = Declaration(table, flat=table.flat)
    return Declaration(
        inherited.table,
        is_global=inherited.is_global if scope is None else scope == "global",
        flat=inherited.flat if flat is None else flat,
        by_alias=inherited.by_alias if by_alias is None else by_alias,
    )
