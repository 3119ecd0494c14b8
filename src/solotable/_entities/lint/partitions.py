"""Find hot partitions: one constant, a few values, or the current time (ST201, ST202).

DynamoDB gives each partition key 1,000 write and 3,000 read units a second. The linter skips keys with
`shards=`, and keys of the tenant alone, which are the usual design. A time bucket alone only moves the
traffic to the next partition. If the key contains the tenant, the traffic is distributed, so a finding is a
note.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from solotable._entities.declare.plan import Plan
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.parts.choose_codec import choose_codec
from solotable._entities.keys.parts.codecs import PartCodec
from solotable._entities.keys.templates import TemplateField
from solotable.errors import DeclarationError

from .findings import Finding, make_finding

_EACH = "1,000 WCU and 3,000 RCU a second"
#: A key with this many partitions is not reported.
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
            codec is not None and codec.kind in ("timestamp", "epoch", "date", "bucket")
            for codec in rest.values()
        ):
            yield _current_time(plan, path, sorted(rest), has_tenant=has_tenant)


def _few(plan: Plan, path: AccessPath, count: int, fields: list[str], *, has_tenant: bool) -> Finding:
    partitions = "one partition" if count == 1 else f"{count} partitions"
    by = f" by {' and '.join(fields)}" if fields else ""
    each = " of each tenant" if has_tenant else ""
    return make_finding(
        "ST201",
        "note" if has_tenant else "warning",
        f"{plan.name}.{path.name} puts all items{each} into {partitions}{by}, and each takes {_EACH}; "
        f"shard it with shards=8, add a time bucket such as {{at:day}}, or add a field with many "
        f"values to the partition key.",
        plan=plan,
    )


def _current_time(plan: Plan, path: AccessPath, fields: list[str], *, has_tenant: bool) -> Finding:
    each = " of each tenant" if has_tenant else ""
    return make_finding(
        "ST202",
        "note" if has_tenant else "warning",
        f"{plan.name}.{path.name} puts all items{each} with the same {' and '.join(fields)} into one "
        f"partition, so the current partition takes every write ({_EACH}); shard it with shards=8, or add "
        f"a field with many values.",
        plan=plan,
    )


def _codecs(plan: Plan, path: AccessPath) -> dict[str, PartCodec | None]:
    """Return the codec of every field of the partition key; None for an attribute without one."""
    layout = path.partition
    if isinstance(layout, TemplateLayout):
        return {part.field: part.codec for part in layout.template.parts if isinstance(part, TemplateField)}
    codecs: dict[str, PartCodec | None] = {}
    for field in layout.fields:
        try:
            codecs[field] = choose_codec(
                plan.entity.model_fields[field].annotation, where=plan.name, field=field
            )
        except DeclarationError:  # for example a number without a width, which attribute keys allow
            codecs[field] = None
    return codecs
