"""Models for a sampled table: infer them, weaken what is rejected, check them, and report."""

from __future__ import annotations

import re
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from solotable._entities.adoption.fallback import without
from solotable._entities.adoption.inference import InferredEntity, InferredKey, InferredTable, infer_table
from solotable._entities.adoption.key_inference import KeyPart
from solotable._entities.adoption.models_file import key_name, models_file
from solotable._entities.adoption.round_trip import RoundTrip, check_items
from solotable._entities.adoption.sample import TableSample
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import Table
from solotable._entities.lint import ON_REQUEST, Finding, lint
from solotable.cli.output import on_one_line, plural
from solotable.errors import DeclarationError

_REJECTED = re.compile(r"(\w+)(?:\.(\w+))?")
#: The end of a field's name that another name was taken for.
_RENAMED = re.compile(r"_[0-9]*$")
_QUOTED = re.compile(r"['`](\w+)['`]")
_LIBRARIES = {
    "electrodb": "ElectroDB",
    "onetable": "DynamoDB OneTable",
    "toolbox": "DynamoDB-Toolbox",
    "pynamodb": "PynamoDB",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """The models of a sampled table, and how they fit its items."""

    inferred: InferredTable
    #: The models file.
    text: str
    check: RoundTrip
    findings: list[Finding]

    @property
    def is_complete(self) -> bool:
        """Whether the models read every sampled item and would write it back unchanged."""
        return self.check.unchanged + self.inferred.internal == self.check.items


def adopt(sample: TableSample) -> Adoption:
    """Infer the models of a sample, declare them, and check them against its items."""
    inferred = infer_table(sample)
    reserved = frozenset(dir(Entity))
    # Every attempt renames a field, leaves out an index, or weakens an entity; each entity twice at most.
    left = sum(3 + len(each.indexes) + len(each.attributes) for each in inferred.entities)
    while True:
        text = models_file(inferred, reserved)
        try:
            table = _declare(text)
        except DeclarationError as error:
            if left == 0:
                raise
            left -= 1
            # A field that has another name already is rejected for another reason.
            names = {
                each for each in _rejected_fields(inferred, error) if _RENAMED.sub("", each) not in reserved
            }
            if names:
                reserved |= names  # the next file has other names for them
            else:
                inferred = _weaken(inferred, error)
        else:
            check = check_items(table, sample.items)
            return Adoption(inferred=inferred, text=text, check=check, findings=_findings(table))


def _findings(table: Table) -> list[Finding]:
    return [each for each in lint(table) if each.code not in ON_REQUEST]


def _declare(text: str) -> Table:
    """Run a models file that was just written, and return its table."""
    module = ModuleType("adopted_models")
    exec(compile(text, "models.py", "exec", dont_inherit=True), vars(module))  # noqa: S102 - our own text
    table: Table = module.table
    return table


def _rejected_fields(inferred: InferredTable, error: DeclarationError) -> frozenset[str]:
    """Return the names that may be a rejected field: after the entity, or in quotes; none for a key."""
    text = str(error)
    found = _REJECTED.match(text)
    keys = {"key", *(key_name(each) for entity in inferred.entities for each in entity.indexes)}
    if found is None or found[2] in keys:
        return frozenset()
    return frozenset([found[2]] if found[2] else _QUOTED.findall(text))


def _weaken(inferred: InferredTable, error: DeclarationError) -> InferredTable:
    """Return a declaration without what was rejected, or raise the error if it names no entity."""
    found = _REJECTED.match(str(error))
    named = {each.name: each for each in inferred.entities if each.declared}
    if found is None or found[1] not in named:
        raise error
    indexes = {key_name(each): each for each in named[found[1]].indexes if each.problem is None}
    key = indexes.get(found[2] or "")
    index = None if key is None or key.index is None else key.index.name
    return without(inferred, found[1], index, on_one_line(str(error)))


def text_report(adoption: Adoption) -> list[str]:
    """Return the report for a reader."""
    inferred, check = adoption.inferred, adoption.check
    sample = inferred.sample
    library = _LIBRARIES.get(inferred.library or "")
    lines = [
        f"Table {sample.name}: {plural(len(sample.items), 'item')} sampled of about "
        f"{max(sample.item_count, len(sample.items)):,}.",
        f"Written by {library}." if library else "No library recognised.",
        f"Type attribute: {_tag(inferred)}.",
        "",
    ]
    for entity in inferred.entities:
        lines += [*_entity_lines(entity, inferred), ""]
    if inferred.internal:
        lines.append(f"{plural(inferred.internal, 'item')} of solotable itself, such as locks.")
    lines.append(
        f"The models read {plural(check.unchanged, 'item')} of {check.items - inferred.internal:,} and would "
        "write them back unchanged."
    )
    lines += [f"  {on_one_line(each)}" for each in check.problems]
    lines += [f"  no entity matches {on_one_line(each)}" for each in check.unknown[: _shown(inferred)]]
    lines += [f"{each.code} {each.severity}: {on_one_line(each.message)}" for each in adoption.findings]
    return lines


def _shown(inferred: InferredTable) -> int:
    # Internal items match no entity either.
    return 0 if inferred.internal else 20


def _tag(inferred: InferredTable) -> str:
    if inferred.tag is None:
        return "none; keys tell the entities apart"
    return inferred.tag if inferred.tag_required else f"{inferred.tag}, which some items lack"


def _entity_lines(entity: InferredEntity, inferred: InferredTable) -> list[str]:
    share = 100 * len(entity.items) // max(1, len(inferred.sample.items) - inferred.internal)
    lines = [
        f"{entity.name}: {plural(len(entity.items), 'item')} ({share} %), {entity.average_bytes:,} bytes on "
        f"average, {entity.largest_bytes:,} at most; {entity.confidence} confidence",
        f"  key  {_shown_key(entity.key, inferred)}",
        f"  for example {_example(entity, inferred)}",
    ]
    if entity.problem is not None:
        lines.append(
            f"  {'not declared' if not entity.declared else 'declared by attributes'}: {entity.problem}"
        )
    for each in entity.indexes:
        name = each.index.name if each.index else ""
        problem = f"; not declared: {each.problem}" if each.problem else ""
        lines.append(f"  {name}  {_shown_key(each, inferred)}; {each.count:,} items{problem}")
    for attribute in entity.attributes:
        share = 100 * attribute.count // attribute.items
        optional = f", in {share} %" if attribute.count < attribute.items else ""
        time = f" {attribute.time}" if attribute.time else ""
        lines.append(f"  - {on_one_line(attribute.name)}: {attribute.annotation}{time}{optional}")
    return lines


def _example(entity: InferredEntity, inferred: InferredTable) -> str:
    sample = inferred.sample
    names = [name for name in (sample.partition, sample.sort) if name is not None]
    values = [f"{name} = {next(iter(entity.items[0][name].values()))}" for name in names]
    return on_one_line(", ".join(values))


def _shown_key(key: InferredKey, inferred: InferredTable) -> str:
    texts = []
    for template in key.templates:
        if template.native:
            texts.append(f"{template.attribute} as it is")
            continue
        parts = [f"{part.literal}{_shown_value(part)}" for part in template.parts]
        texts.append(f"{template.attribute} = {inferred.notation.delimiter.join(parts)}")
    return on_one_line(", ".join(texts))


def _shown_value(part: KeyPart) -> str:
    # The name of a value that only the primary key has ends with the suggested one.
    name = part.key_only or (part.attribute or "").rpartition(" ")[2]
    return f"{{{name}}}" if name else ""


def as_json_report(adoption: Adoption) -> dict[str, Any]:
    """Return the report as JSON values."""
    inferred, check = adoption.inferred, adoption.check
    return {
        "table": inferred.sample.name,
        "sampled": len(inferred.sample.items),
        "item_count": inferred.sample.item_count,
        "library": inferred.library,
        "tag": inferred.tag,
        "tag_required": inferred.tag_required,
        "entities": [_entity_json(each, inferred) for each in inferred.entities],
        "internal_items": inferred.internal,
        "unchanged": check.unchanged,
        "recognised": dict(check.recognised),
        "unknown": list(check.unknown),
        "problems": list(check.problems),
        "findings": [
            {"code": each.code, "severity": each.severity, "entity": each.entity, "message": each.message}
            for each in adoption.findings
        ],
        "models": adoption.text,
    }


def _entity_json(entity: InferredEntity, inferred: InferredTable) -> dict[str, Any]:
    return {
        "name": entity.name,
        "tag": entity.tag,
        "items": len(entity.items),
        "declared": entity.declared,
        "problem": entity.problem,
        "confidence": entity.confidence,
        "average_bytes": entity.average_bytes,
        "largest_bytes": entity.largest_bytes,
        "key": _shown_key(entity.key, inferred),
        "example": _example(entity, inferred),
        "indexes": [
            {
                "index": each.index.name if each.index else None,
                "key": _shown_key(each, inferred),
                "items": each.count,
                "problem": each.problem,
            }
            for each in entity.indexes
        ],
        "attributes": [
            {
                "name": each.name,
                "type": each.annotation,
                "time": each.time,
                "items": each.count,
                "nulls": each.nulls,
            }
            for each in entity.attributes
        ],
    }
