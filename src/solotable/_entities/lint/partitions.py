"""Hot partitions: constant, of few values, or of the current time (ST201, ST202).

DynamoDB gives each partition key 1,000 write and 3,000 read units a second. A key with `shards=` is not
checked. A time bucket alone only moves the traffic. A tenant in the key distributes the traffic, so a
finding is then a note; a key of the tenant alone is the usual design and is not reported.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.choose_codec import choose_codec
from solotable._entities.keys.codecs import PartCodec
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.templates import TemplateField
from solotable.errors import DeclarationError

from .findings import Finding, found

_EACH = "1,000 WCU and 3,000 RCU a second"
#: With this many partitions, choices are not a bottleneck.
_MANY = 100


def check_partitions(plan: Plan) -> Iterator[Finding]:
    """Check the number of partitions of each key of an entity."""
    for path in plan.keys.values():
        if isinstance(path.partition, TemplateLayout) and path.partition.sharding is not None:
            continue
        codecs = _codecs(plan, path)
        rest = {name: codec for name, codec in codecs.items() if name != plan.tenant}
        has_tenant = len(rest) < len(codecs)
        if not rest and has_tenant:
            continue
        if all(codec is not None and codec.choices is not None for codec in rest.values()):
            count = prod(len(codec.choices or ()) for codec in rest.values() if codec is not None)
            if count < _MANY:
                yield _few(plan, path, count, sorted(rest), has_tenant=has_tenant)
        elif all(
            codec is not None and codec.kind in ("timestamp", "date", "bucket") for codec in rest.values()
        ):
            yield _moving(plan, path, sorted(rest), has_tenant=has_tenant)


def _few(plan: Plan, path: AccessPath, count: int, fields: list[str], *, has_tenant: bool) -> Finding:
    partitions = "one partition" if count == 1 else f"{count} partitions"
    by = f" by {' and '.join(fields)}" if fields else ""
    each = " of each tenant" if has_tenant else ""
    return found(
        "ST201",
        "note" if has_tenant else "warning",
        f"{plan.name}.{path.name} puts all items{each} into {partitions}{by}, and a partition has {_EACH}; "
        f"shard it with shards=8, add a time bucket such as {{at:day}}, or add a field with many "
        f"values to the partition key.",
        plan=plan,
    )


def _moving(plan: Plan, path: AccessPath, fields: list[str], *, has_tenant: bool) -> Finding:
    each = " of each tenant" if has_tenant else ""
    return found(
        "ST202",
        "note" if has_tenant else "warning",
        f"{plan.name}.{path.name} puts all items{each} of one time into the partition of "
        f"{' and '.join(fields)}, so the current one takes every write ({_EACH}); shard it "
        f"with shards=8, or add a field with many values.",
        plan=plan,
    )


def _codecs(plan: Plan, path: AccessPath) -> dict[str, PartCodec | None]:
    """Return the codec of every field of the partition key; None for an attribute without one."""
    layout = path.partition
    if isinstance(layout, TemplateLayout):
        return {part.field: part.codec for part in layout.template.parts if isinstance(part, TemplateField)}
    found_: dict[str, PartCodec | None] = {}
    for field in layout.fields:
        try:
            found_[field] = choose_codec(
                plan.entity.model_fields[field].annotation, where=plan.name, field=field
            )
        except DeclarationError:  # a number without a width, which an attribute key allows
            found_[field] = None
    return found_
