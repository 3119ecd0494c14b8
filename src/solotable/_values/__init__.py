"""DynamoDB's ten value types: canonical form, order, size, conversion from and to Python values.

All functions are pure. Values are DynamoDB's JSON, such as `{"S": "text"}`.
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
from .order import ORDERED, ordered_bytes, ordered_prefix, read_ordered, sort_key
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
    "read_ordered",
    "sort_key",
    "sort_members",
    "subtract",
    "text_size",
    "value_size",
]
