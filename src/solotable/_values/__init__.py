"""DynamoDB's ten value types: canonical form, order, size, and the way to and from Python.

Pure: no clock, no files, no requests. Values are DynamoDB's wire JSON throughout.
"""

from .canonical import (
    SETS,
    TYPES,
    AttributeValue,
    Item,
    canonical,
    canonical_item,
    check_name,
    kind_of,
    sort_members,
)
from .codec import dump, dump_item, load, load_item
from .number import add, canonical_number, subtract
from .order import ORDERED, ordered_bytes, ordered_prefix, sort_key
from .size import growth, item_size, levels, text_size, value_size

__all__ = [
    "ORDERED",
    "SETS",
    "TYPES",
    "AttributeValue",
    "Item",
    "add",
    "canonical",
    "canonical_item",
    "canonical_number",
    "check_name",
    "dump",
    "dump_item",
    "growth",
    "item_size",
    "kind_of",
    "levels",
    "load",
    "load_item",
    "ordered_bytes",
    "ordered_prefix",
    "sort_key",
    "sort_members",
    "subtract",
    "text_size",
    "value_size",
]
