"""Compile and check the declared keys of an entity: templates, shards and time buckets."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from solotable._entities.codecs.computed_fields import ComputedField
from solotable._entities.codecs.field_codecs import Attribute
from solotable._entities.declare.table import Index, KeyAttribute, Table, suggestion
from solotable._values import AttributeValue
from solotable.errors import DataError, DeclarationError

from .access_path import MOST_BUCKETS, AccessPath
from .key import Key
from .layout import AttributeLayout, KeyLayout, TemplateLayout, bucket_fields
from .parts.choose_codec import NATIVE
from .sharding import Sharding, check_shard_counts
from .templates import Template


def compile_key(
    key: Key,
    *,
    owner: str,
    table: Table,
    attributes: Mapping[str, Attribute],
    annotations: Mapping[str, Any],
    computed: Mapping[str, ComputedField],
) -> AccessPath:
    """Check a key against its table and entity, and return its access path."""
    where = f"{owner}.{key.name}"
    attributes = {**attributes, **{name: each.attribute for name, each in computed.items()}}
    annotations = {**annotations, **{name: each.annotation for name, each in computed.items()}}
    index = None if key.index is None else table.index(key.index, where=where)
    primary = (table.partition,), ((table.sort,) if table.sort else ())
    roles: tuple[tuple[KeyAttribute, ...], ...] = primary if index is None else (index.partition, index.sort)
    if key.sort is None and roles[1]:
        raise DeclarationError(f"{where} needs a sort template: {_describe(table, index)} has a sort key.")
    if key.sort is not None and not roles[1]:
        raise DeclarationError(f"{where} has a sort template, but {_describe(table, index)} has no sort key.")

    compiled = partial(
        Template.compile,
        annotations=annotations,
        where=where,
        key_format=key.format or table.key_format or NATIVE,
        tenant=table.tenant,
    )

    def layout(
        given: str | tuple[str, ...], key_attributes: tuple[KeyAttribute, ...], role: Any
    ) -> KeyLayout:
        if isinstance(given, tuple):
            for name in (name for name in given if name in computed):
                raise DeclarationError(
                    f"{where}: {name!r} is a computed field and is not stored, so it cannot be an attribute "
                    f'of a key; write a template such as "{{{name}}}" instead of a tuple.'
                )
            return _attribute_layout(given, key_attributes, role, attributes, where)
        return _template_layout(compiled(given), key_attributes, role, where, attributes)

    partition = layout(key.partition, roles[0], "partition")
    sort = None if key.sort is None else layout(key.sort, roles[1], "sort")
    fields = frozenset((*partition.fields, *(sort.fields if sort else ())))
    for name in sorted(fields):
        if attributes[name].opaque is not None:
            raise DeclarationError(
                f"{where}: {name!r} is {attributes[name].opaque} and cannot be part of a key; "
                f"use another field."
            )
    if index is None:
        for name in fields:
            if attributes[name].optional:
                raise DeclarationError(
                    f"{where}: {name!r} may be None, but a field of a primary key must not be None."
                )
    when = _condition(key, index, attributes, where)
    named = fields | {attribute.field for attribute, _ in when}
    used = tuple(each for name, each in computed.items() if name in named)
    sources = (named - computed.keys()).union(*(each.sources for each in used))
    if index is None and used:
        _check_identity(used, fields - computed.keys(), where)
        fields -= computed.keys()
    return AccessPath(
        key.name,
        owner,
        index,
        partition,
        sort,
        fields,
        key.most_buckets or MOST_BUCKETS,
        when=when,
        shared=frozenset() if index is None else frozenset(table.key_names),
        sources=sources,
        computed=used,
    )


def _check_identity(computed: Sequence[ComputedField], fields: frozenset[str], where: str) -> None:
    """Reject a computed part of a primary key that an update could change."""
    for each in computed:
        if not each.is_exact:
            raise DeclarationError(
                f"{where}: {each.name!r} is computed, and its code does not show from which fields; in it, "
                f"use the entity only to read fields, such as self.name."
            )
        if changing := sorted(each.sources - fields):
            raise DeclarationError(
                f"{where}: {each.name!r} is computed from {', '.join(changing)}, which an update can change, "
                f"but a primary key cannot change; add {{{changing[0]}}} to the key, or use an index key."
            )


def _condition(
    key: Key, index: Index | None, attributes: Mapping[str, Attribute], where: str
) -> tuple[tuple[Attribute, tuple[AttributeValue | None, ...]], ...]:
    """Return the condition of a key, with its values as they are stored."""
    if key.when is None:
        return ()
    if index is None or isinstance(key.partition, tuple) or isinstance(key.sort, tuple):
        raise DeclarationError(f"{where}: when= is for index keys of templates; remove it.")
    found = []
    for name, given in key.when.items():
        attribute = attributes.get(name)
        if attribute is None:
            raise DeclarationError(
                f"{where}: when= names {name!r}, which is not a field; {suggestion(name, attributes)}"
            )
        values = tuple(given) if isinstance(given, (set, frozenset, tuple, list)) else (given,)
        try:
            allowed = tuple(attribute.encode(value) for value in values)
        except (DataError, TypeError) as error:
            raise DeclarationError(f"{where}: when={{{name!r}: {given!r}}}: {error}") from None
        found.append((attribute, allowed))
    return tuple(found)


def _attribute_layout(
    fields: tuple[str, ...],
    key_attributes: tuple[KeyAttribute, ...],
    role: Any,
    attributes: Mapping[str, Attribute],
    where: str,
) -> AttributeLayout:
    if len(fields) != len(key_attributes):
        wanted = ", ".join(each.name for each in key_attributes)
        raise DeclarationError(
            f"{where} names {len(fields)} {role} fields; the key has {len(key_attributes)}: {wanted}."
        )
    found = []
    for field, attribute in zip(fields, key_attributes, strict=True):
        known = attributes.get(field)
        if known is None:
            raise DeclarationError(f"{where}: {field!r} is not a field; {suggestion(field, attributes)}")
        if not known.stored:
            raise DeclarationError(
                f"{where}: {field!r} has stored=False, so items have no attribute for the key; remove it."
            )
        if known.wire != attribute.name:
            raise DeclarationError(
                f"{where}: the field {field!r} is stored as {known.wire!r}, but the key attribute is "
                f"{attribute.name!r}; rename one with Attr({attribute.name!r})."
            )
        if known.kind != attribute.kind:
            raise DeclarationError(
                f"{where}: {field!r} is stored as {known.kind or 'no single type'}, but the key attribute is "
                f"{attribute.kind}; {_kind_advice(attribute, known)}"
            )
        found.append(known)
    return AttributeLayout(tuple(found), role)


def _kind_advice(attribute: KeyAttribute, known: Attribute) -> str:
    if known.kind is None:
        return "use a plain type without a serializer; for a time, datetime with Iso(...) or Epoch(...)."
    return f'write "{attribute.name}:{known.kind}" in the index.'


def _template_layout(
    template: Template,
    key_attributes: tuple[KeyAttribute, ...],
    role: Any,
    where: str,
    attributes: Mapping[str, Attribute],
) -> TemplateLayout:
    if len(key_attributes) != 1 or key_attributes[0].kind != "S":
        wanted = ", ".join(f"{each.name}:{each.kind}" for each in key_attributes)
        raise DeclarationError(
            f"{where}: a template fills one string attribute; the key has {wanted}. Use a tuple."
        )
    name = key_attributes[0].name
    for attribute in attributes.values():
        if attribute.wire == name:
            raise DeclarationError(
                f"{where}: the field {attribute.field!r} is stored as the key attribute {name!r}; "
                f"write ({attribute.field!r},) instead of a template, or rename the field with Attr()."
            )
    for field in template.fields:
        if field in attributes and attributes[field].counter:
            raise DeclarationError(
                f"{where}: {field!r} is a Counter(), which changes with other entities and leaves the text "
                f"of a key behind; write a tuple of attributes, ({field!r},), in an index of the type N."
            )
    bucket = next((part.field for part in bucket_fields(template)), None)
    return TemplateLayout(name, template, role, bucket=bucket)


def _describe(table: Table, index: Index | None) -> str:
    return f"index {index.name!r}" if index else f"table {table.name!r}"


def join_alternatives(keys: Mapping[str, AccessPath]) -> dict[str, AccessPath]:
    """Give all keys of an index the same sources, so that a change of one recomputes all."""
    sources: dict[str, frozenset[str]] = {}
    for path in keys.values():
        if path.index is not None:
            sources[path.index.name] = sources.get(path.index.name, frozenset()) | path.sources
    return {
        name: path if path.index is None else replace(path, sources=sources[path.index.name])
        for name, path in keys.items()
    }


def check_alternatives(one: AccessPath, other: AccessPath, attribute: str) -> None:
    """Reject two keys that fill one attribute, unless at most one applies and no query reads both."""
    both = f"{one.owner}.{other.name} and {one.owner}.{one.name}"
    if one.index is not other.index or not (one.excludes(other) or other.excludes(one)):
        raise DeclarationError(
            f"{both} both fill {attribute!r}; use another index for one of them, or add when= to both so "
            f"that at most one applies, such as when={{'status': 'open'}}."
        )
    layouts = zip((one.partition, one.sort), (other.partition, other.sort), strict=True)
    starts = [
        (mine.template.first_literal, theirs.template.first_literal)
        for mine, theirs in layouts
        if isinstance(mine, TemplateLayout) and isinstance(theirs, TemplateLayout)
    ]
    if not any(not mine.startswith(theirs) and not theirs.startswith(mine) for mine, theirs in starts):
        raise DeclarationError(
            f"{both} are alternatives of one index, and a query of one could return the entities of the "
            f"other; begin their partition keys or their sort keys with different literals."
        )


def check_shared(path: AccessPath, primary: AccessPath) -> None:
    """Reject an index key that fills an attribute of the primary key with another template."""
    if path.index is None:
        return
    own = {layout.attribute: layout for layout in _templates(primary)}
    for layout in _templates(path):
        known = own.get(layout.attribute)
        if known is None:
            if layout.attribute in path.shared:
                raise DeclarationError(
                    f"{path.owner}.{path.name} fills {layout.attribute!r} with {layout.template.text!r}, but "
                    f"it is a field in {path.owner}.key; write the field as a tuple."
                )
            continue
        mine, theirs = layout.template, known.template
        if (mine.text, mine.key_format) != (theirs.text, theirs.key_format):
            reason = "is local and uses that of" if path.index.local else f"shares {layout.attribute!r} with"
            raise DeclarationError(
                f"{path.owner}.{path.name} has the {layout.role} key {mine.text!r}, but index "
                f"{path.index.name!r} {reason} {path.owner}.key, which is {theirs.text!r}; write "
                f"{theirs.text!r}."
            )


def _templates(path: AccessPath) -> list[TemplateLayout]:
    return [each for each in (path.partition, path.sort) if isinstance(each, TemplateLayout)]


def shard_keys(declared: Mapping[str, Key], keys: Mapping[str, AccessPath]) -> dict[str, AccessPath]:
    """Add the declared shards to an entity's keys, or raise DeclarationError."""
    for path in keys.values():
        _check_buckets(path)
    primary = _shard(declared["key"], keys["key"], None)
    return {
        name: primary if name == "key" else _shard(declared[name], path, primary)
        for name, path in keys.items()
    }


def _check_buckets(path: AccessPath) -> None:
    where = f"{path.owner}.{path.name}"
    if path.most_buckets < 1:
        raise DeclarationError(f"{where}: most_buckets={path.most_buckets} must be at least 1.")
    for layout in (path.partition, path.sort):
        buckets = bucket_fields(layout.template) if isinstance(layout, TemplateLayout) else []
        if not buckets or not isinstance(layout, TemplateLayout):
            continue
        field, slot = buckets[0].field, buckets[0].codec.slot
        if layout.role == "sort":
            raise DeclarationError(
                f"{where}: {slot} in the sort key loses the exact time; write {{{field}}} there and "
                f"use the bucket in the partition key only."
            )
        if len(buckets) > 1:
            raise DeclarationError(f"{where}: {layout.template.text!r} has two time buckets; remove one.")
        if not isinstance(path.sort, TemplateLayout) or field not in path.sort.fields:
            raise DeclarationError(
                f"{where}: {slot} is a time bucket, which many times share; add {{{field}}} to the sort "
                f"key's template."
            )


def _shard(key: Key, path: AccessPath, primary: AccessPath | None) -> AccessPath:
    where = f"{path.owner}.{path.name}"
    local = path.index is not None and path.index.local
    if local and primary is not None:
        shared = primary.partition.sharding if isinstance(primary.partition, TemplateLayout) else None
        if key.shards != (shared and shared.shards) or key.shard_by is not None or key.was is not None:
            raise DeclarationError(
                f"{where}: a local index has the shards of {path.owner}.key; "
                f"{f'write only shards={shared.shards}' if shared else 'remove shards='}."
            )
        return path if shared is None else _with_sharding(path, shared)
    split = None if primary is None else primary.partition
    if isinstance(split, TemplateLayout) and split.sharding and split.attribute in path.names:
        raise DeclarationError(
            f"{where}: {split.attribute!r} is the partition key of {path.owner}.key, which has shards; "
            f"use an index with another attribute."
        )
    if key.shards is None:
        if key.shard_by is not None or key.was is not None:
            raise DeclarationError(f"{where}: shard_by= and was= need shards=; add it.")
        return path
    check_shard_counts(where, key.shards, key.was)
    if path.index is not None and path.shared.intersection(path.partition.names):
        raise DeclarationError(
            f"{where}: the partition key belongs to {path.owner}.key; remove shards=, or use an index with "
            f"another attribute."
        )
    if not isinstance(path.partition, TemplateLayout) or isinstance(path.sort, AttributeLayout):
        raise DeclarationError(f"{where}: a sharded key needs templates; write templates instead of tuples.")
    if not path.partition.template.key_format.escape:
        raise DeclarationError(
            f"{where}: a sharded key needs escaped values; write format=KeyFormat(), or remove shards=."
        )
    if primary is None and key.was is not None:
        raise DeclarationError(
            f"{where}: was= works only for index keys: the shard is part of the primary key and cannot "
            f"change; "
            f"rewrite the items under another literal, or shard an index."
        )
    by = _shard_fields(key, path, primary, where)
    return _with_sharding(path, Sharding(where=where, shards=key.shards, was=key.was, by=by))


def _with_sharding(path: AccessPath, sharding: Sharding) -> AccessPath:
    assert isinstance(path.partition, TemplateLayout)
    return replace(path, partition=replace(path.partition, sharding=sharding))


def _shard_fields(
    key: Key, path: AccessPath, primary: AccessPath | None, where: str
) -> tuple[tuple[str, Callable[[Any], str]], ...]:
    """Return the fields that choose the shard: the declared ones, or the fields that identify an item."""
    layouts = [path.sort, path.partition]
    if primary is not None:
        primary_layouts = [primary.sort, primary.partition]
        # Every write knows the primary key of its item.
        layouts = primary_layouts if key.shard_by is None else layouts + primary_layouts
    if key.shard_by is not None:
        names = key.shard_by
    elif primary is not None:
        names = primary.parts
    else:
        names = () if path.sort is None else path.sort.fields
    if not names or (key.shard_by is not None and set(names) <= set(path.partition.fields)):
        raise DeclarationError(
            f"{where}: the fields of shard_by are equal for all items of a partition, so all items would "
            f"share "
            f"one shard; name a field of the sort key."
        )
    return tuple((name, _encoder(name, layouts, where)) for name in names)


def _encoder(name: str, layouts: list[KeyLayout | None], where: str) -> Callable[[Any], str]:
    for layout in layouts:
        if isinstance(layout, TemplateLayout) and name in layout.fields and name != layout.bucket:
            return partial(layout.template.encode, name)
        if isinstance(layout, AttributeLayout) and name in layout.fields:
            return partial(_attribute_text, layout, name)
    known = tuple(dict.fromkeys(field for layout in layouts if layout is not None for field in layout.fields))
    raise DeclarationError(
        f"{where}: shard_by names {name!r}, which is not part of this key or of the primary key; "
        f"{suggestion(name, known)}"
    )


def _attribute_text(layout: AttributeLayout, name: str, value: Any) -> str:
    attribute = next(each for each in layout.attributes if each.field == name)
    encoded = attribute.encode(value)
    if encoded is None:
        raise DataError(f"The key part {name!r} is missing, and it chooses the shard.")
    return str(next(iter(encoded.values())))
