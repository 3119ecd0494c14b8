"""Weaker declarations for what is rejected: keys by their attributes, indexes or entities left out."""

from __future__ import annotations

from dataclasses import replace

from .attribute_types import infer_type
from .inference import InferredEntity, InferredKey, InferredTable
from .key_inference import InferredTemplate


def without(table: InferredTable, entity: str, key: str | None, reason: str) -> InferredTable:
    """Return the table with a weaker declaration of one entity.

    `key` is the name of the rejected index; without it, the entity's primary key is declared by its
    attributes and, if it already is, the entity is left out.
    """
    return replace(
        table,
        entities=tuple(
            each if each.name != entity else _weaker(each, table, key, reason) for each in table.entities
        ),
    )


def _weaker(entity: InferredEntity, table: InferredTable, key: str | None, reason: str) -> InferredEntity:
    if key is not None:
        indexes = tuple(
            replace(each, problem=reason) if each.index and each.index.name == key else each
            for each in entity.indexes
        )
        # A key attribute of the table can be a field only while a key consists of it.
        native = {
            template.attribute
            for each in (entity.key, *indexes)
            if each.problem is None
            for template in each.templates
            if template.native
        }
        composed = table.sample.key_names - native
        attributes = tuple(each for each in entity.attributes if each.name not in composed)
        return replace(entity, indexes=indexes, attributes=attributes)
    if all(each.native for each in entity.key.templates):
        return replace(entity, declared=False, problem=reason)
    known = {each.name for each in entity.attributes}
    names = [each.attribute for each in entity.key.templates if each.attribute not in known]
    attributes = (*(infer_type(name, entity.items) for name in names), *entity.attributes)
    return replace(
        entity,
        key=_native(entity.key),
        attributes=attributes,
        problem=reason,
        # Fields that only the templates of the primary key had may be missing in an index key.
        indexes=entity.indexes,
    )


def _native(key: InferredKey) -> InferredKey:
    def plain(templates: tuple[InferredTemplate, ...]) -> tuple[InferredTemplate, ...]:
        return tuple(replace(each, parts=(), native=True) for each in templates)

    return replace(key, partition=plain(key.partition), sort=plain(key.sort))
