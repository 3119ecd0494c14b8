"""Presets for tables of other libraries: what each writes besides the fields of its models, as data.

`tests/adoption` checks every value against the library itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import field
from datetime import datetime
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from solotable._entities.declare.annotations import arms_of, inner_metadata
from solotable._entities.declare.fields import TTL, Attr, Created, Epoch, Iso, Json, Updated
from solotable._entities.keys.key import KeyFormat
from solotable._values import Item
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DeclarationError

Library = Literal["electrodb", "onetable", "toolbox", "pynamodb"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """What one library writes."""

    #: The library's own name, for messages.
    library: str
    #: The attribute with an item's type, and whether every item has it.
    tag: str
    tag_required: bool
    key_format: KeyFormat
    #: The format of datetime fields without a marker; None for solotable's.
    time: Iso | Epoch | None = None
    #: The attributes of `Created()` and `Updated()` fields, and whether the library fails without them.
    created: str | None = None
    updated: str | None = None
    stamps_required: bool = False
    #: Attributes that every new item gets.
    constants: Item = field(default_factory=dict)

    def complete_model(self, entity: type[BaseModel]) -> None:
        """Add to an entity's fields the markers that the library implies and the model leaves out."""
        fields = entity.model_fields
        implied = {name: self._complete(info) for name, info in fields.items()}
        if any(implied[name] is not info for name, info in fields.items()):
            fields.update(implied)
            # A time format also validates: it truncates values to its precision.
            entity.model_rebuild(force=True)

    def _complete(self, info: FieldInfo) -> FieldInfo:
        given = {type(meta) for meta in (*info.metadata, *inner_metadata(info.annotation))}
        implied: list[Any] = []
        stamp = self.created if Created in given else self.updated if Updated in given else None
        if stamp is not None and Attr not in given:
            implied.append(Attr(stamp))
        is_time = [arm for arm in arms_of(info.annotation) if arm is not type(None)] == [datetime]
        if self.time is not None and is_time and not given & {Iso, Epoch, TTL, Json}:
            implied.append(self.time)
        if not implied:
            return info
        completed = copy(info)
        completed.metadata = [*info.metadata, *implied]
        return completed


PRESETS: Final[Mapping[Library, Preset]] = MappingProxyType(
    {
        # entity.js: keys are lower-cased; items have the entity's name and the version of its model. Queries
        # filter by both.
        "electrodb": Preset(
            library="ElectroDB",
            tag="__edb_e__",
            tag_required=True,
            key_format=KeyFormat(escape=False, case="lower"),
            constants={"__edb_v__": {"S": "1"}},
        ),
        # Model.js: dates are epoch milliseconds unless the schema has isoDates; stamps if it has timestamps.
        "onetable": Preset(
            library="DynamoDB OneTable",
            tag="_type",
            tag_required=True,
            key_format=KeyFormat(escape=False),
            time=Epoch("ms"),
            created="created",
            updated="updated",
        ),
        # buildEntitySchema: the stamps are required attributes, so that an item without them cannot be read.
        "toolbox": Preset(
            library="DynamoDB-Toolbox",
            tag="_et",
            tag_required=True,
            key_format=KeyFormat(escape=False),
            time=Iso("ms"),
            created="_ct",
            updated="_md",
            stamps_required=True,
        ),
        # attributes.py: UTCDateTimeAttribute; a discriminator only in models that declare one.
        "pynamodb": Preset(
            library="PynamoDB",
            tag="cls",
            tag_required=False,
            key_format=KeyFormat(escape=False),
            time=Iso("us", offset="+0000"),
        ),
    }
)


def preset_of(name: str, *, where: str) -> Preset:
    """Return the preset of a library, or raise DeclarationError with the names of all."""
    for each, preset in PRESETS.items():
        if each == name:
            return preset
    raise DeclarationError(
        f"{where}: adopt={name!r} is not a preset; use one of {', '.join(get_args(Library))}."
    )
