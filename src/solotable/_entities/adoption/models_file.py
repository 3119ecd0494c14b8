"""Write the Python file that declares an inferred table, with one class for each entity."""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Sequence
from dataclasses import field
from typing import Final

from solotable._values.lazy_dataclass import dataclass

from .attribute_types import AttributeType
from .inference import IMPORTS, InferredEntity, InferredKey, InferredTable
from .key_inference import InferredTemplate
from .sample import SampledIndex, TableSample

_BUILTINS: Final = ("bool", "bytes", "dict", "int", "list", "set", "str", "table")
_WORDS: Final = re.compile(r"[A-Z]+(?![a-z])[0-9]*|[A-Z]?[a-z]+[0-9]*|[0-9]+")
_STAMPS: Final = {
    "onetable": {"created": "Created()", "updated": "Updated()"},
    "toolbox": {"_ct": "Created()", "_md": "Updated()"},
}
#: The formats of times that a preset implies.
_LIBRARY_TIMES: Final = {
    "onetable": 'Epoch("ms")',
    "toolbox": 'Iso("ms")',
    "pynamodb": 'Iso("us", offset="+0000")',
}
#: Better names for the fields of libraries' own attributes.
_FIELD_NAMES: Final = {"_ct": "created", "_md": "modified"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Field:
    """A field of a generated class."""

    name: str
    annotation: str
    default: str = ""
    comment: str = ""


def models_file(table: InferredTable, reserved: frozenset[str]) -> str:
    """Return the text of the models file; `reserved` are the names that a field cannot have."""
    body = [_table(table)]
    body += [_entity(each, table, reserved) for each in table.entities if each.declared]
    body += [_left_out(each) for each in table.entities if not each.declared]
    text = "\n\n\n".join(body)
    head = _docstring(table)
    return f"{head}\n\n{_imports(text)}\n\n{text}\n"


def _docstring(table: InferredTable) -> str:
    sample = table.sample
    return (
        f'"""The table {sample.name}, inferred from {_count(len(sample.items))} by `solotable adopt`.\n\n'
        "Read it, give the fields better types and names, and run `solotable lint` and your tests on it.\n"
        '"""'
    )


def _imports(text: str) -> str:
    used = {name for name in IMPORTS if re.search(rf"\b{name}\b", _without_strings(text))}
    lines: list[str] = []
    for module in ("datetime", "decimal", "typing", "solotable"):
        names = sorted((name for name in used if IMPORTS[name] == module), key=_isort)
        if names:
            blank = "\n" if module == "solotable" and lines else ""
            lines.append(f"{blank}from {module} import {', '.join(names)}")
    return "\n".join(lines)


def _isort(name: str) -> tuple[int, str]:
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"|#.*', "", text)


def _table(table: InferredTable) -> str:
    sample = table.sample
    arguments = [_quoted(sample.name), f"partition={_attribute(sample, sample.partition)}"]
    arguments.append(f"sort={_attribute(sample, sample.sort) if sample.sort else None}")
    arguments += _recognition(table)
    if sample.ttl is not None:
        arguments.append(f"ttl={_quoted(sample.ttl)}")
    if sample.stream:
        arguments.append("stream=True")
    indexes = [f"        {_index(sample, each)}," for each in sample.indexes]
    lines = ["table = Table(", *(f"    {each}," for each in arguments)]
    if indexes:
        lines += ["    indexes=[", *indexes, "    ],"]
    return "\n".join([*lines, ")"])


def _recognition(table: InferredTable) -> list[str]:
    """Return the arguments for the type attribute and the format of keys."""
    notation = table.notation
    if table.library is not None:
        found = [f"adopt={_quoted(table.library)}"]
        if table.library == "pynamodb" and table.tag != "cls":
            found.append(f"tag={_quoted(table.tag) if table.tag else None}")
        if notation.delimiter != "#":
            found.append(f"key_format=KeyFormat(delimiter={_quoted(notation.delimiter)}, escape=False)")
        return found
    found = []
    if table.tag != "_type":
        found.append(f"tag={_quoted(table.tag) if table.tag else None}")
    if table.tag is not None and not table.tag_required:
        found.append("tag_required=False")
    if not notation.escape:
        delimiter = "" if notation.delimiter == "#" else f"delimiter={_quoted(notation.delimiter)}, "
        found.append(f"key_format=KeyFormat({delimiter}escape=False)")
    return found


def _attribute(sample: TableSample, name: str) -> str:
    kind = sample.kinds[name]
    return _quoted(name if kind == "S" else f"{name}:{kind}")


def _index(sample: TableSample, index: SampledIndex) -> str:
    def names(attributes: Sequence[str]) -> str:
        written = [_attribute(sample, each) for each in attributes]
        return written[0] if len(written) == 1 else f"({', '.join(written)})"

    arguments = [_quoted(index.name)]
    if not index.local:
        arguments.append(f"partition={names(index.partition)}")
    arguments.append(f"sort={names(index.sort) if index.sort else None}")
    if index.projection == "KEYS_ONLY":
        arguments.append('projection="KEYS_ONLY"')
    elif index.projection != "ALL":
        arguments.append(f"projection=[{', '.join(map(_quoted, index.projection))}]")
    if index.local:
        arguments.append("local=True")
    return f"Index({', '.join(arguments)})"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """The field names of an entity: of its attributes, and of the values that only its key has."""

    reserved: frozenset[str]
    #: All attributes of the entity, whose names other fields must not have.
    attributes: frozenset[str]
    fields: dict[str, str] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    #: How many fields wanted a name: the next one begins with this number.
    wanted: dict[str, int] = field(default_factory=dict)

    def of(self, attribute: str, suggested: str = "") -> str:
        """Return the field of an attribute, or of a value with a suggested name."""
        found = self.fields.get(attribute)
        if found is None:
            plain = _identifier(suggested or _FIELD_NAMES.get(attribute, attribute))
            found, number = plain, self.wanted.get(plain, 2)
            while self._is_taken(found, attribute):
                found, number = f"{plain}_{number}" if number > 2 else f"{plain}_", number + 1
            self.wanted[plain] = number
            self.used.add(found)
            self.fields[attribute] = found
        return found

    def _is_taken(self, name: str, attribute: str) -> bool:
        is_other = name in self.attributes and name != attribute
        return is_other or name in self.used or name in self.reserved or keyword.iskeyword(name)

    def value(self, template: InferredTemplate, at: int) -> str:
        """Return the field of a value that only the key has."""
        return self.of(template.value_attribute(at), template.parts[at].key_only)


def _identifier(name: str) -> str:
    """Return a snake_case name for a field, which may still be taken.

    >>> _identifier("placedAt")
    'placed_at'
    """
    plain = "_".join(_WORDS.findall(name)).lower()
    # Pydantic warns of fields in these namespaces.
    if not plain or plain[0].isdigit() or plain.startswith(("model_dump", "model_validate")):
        plain = f"field_{plain}".rstrip("_")
    return plain


def _entity(entity: InferredEntity, table: InferredTable, reserved: frozenset[str]) -> str:
    # A field named as a type would hide it from the fields below.
    taken = {"key", *IMPORTS, *_BUILTINS, *(key_name(each) for each in entity.indexes)}
    names = _Names(reserved=reserved | taken, attributes=frozenset(each.name for each in entity.attributes))
    options = ["table=table"]
    if entity.tag is not None and entity.tag != entity.name:
        options.append(f"tag={_quoted(entity.tag)}")
    lines = [f"class {entity.name}(Entity, {', '.join(options)}):"]
    lines.append(f'    """{_count(len(entity.items))} of the sample, {entity.confidence} confidence."""')
    lines.append("")
    delimiter = table.notation.delimiter
    if entity.problem is not None:
        lines.append(f"    # {_one_line(f'The key is declared by its attributes: {entity.problem}')}")
    lines.append(f"    key = {_key(entity.key, names, delimiter)}")
    for each in entity.indexes:
        if each.problem is None:
            lines.append(f"    {key_name(each)} = {_key(each, names, delimiter)}")
        else:
            name = each.index.name if each.index else ""
            lines.append(f"    # {_one_line(f'The index {name} is not declared: {each.problem}')}")
    lines.append("")
    required: list[str] = []
    optional: list[str] = []
    for found in _fields(entity, table, names):
        default = f" = {found.default}" if found.default else ""
        comment = f"  # {found.comment}" if found.comment else ""
        written = f"    {found.name}: {found.annotation}{default}{comment}"
        (optional if found.default else required).append(written)
    return "\n".join([*lines, *required, *optional])


def _left_out(entity: InferredEntity) -> str:
    return f"# {_one_line(f'{entity.name} ({_count(len(entity.items))}) is not declared: {entity.problem}')}"


def _fields(entity: InferredEntity, table: InferredTable, names: _Names) -> list[_Field]:
    found = [
        _Field(name=names.value(template, at), annotation="Annotated[str, Attr(stored=False)]")
        for template in entity.key.templates
        for at, part in enumerate(template.parts)
        if part.is_key_only
    ]
    in_keys = {
        part.attribute: part.spec
        for every in (entity.key, *entity.indexes)
        if every.problem is None
        for each in every.templates
        for part in each.parts
        if part.attribute
    }
    primary = {name for each in entity.key.templates for name in (*each.attributes, each.attribute)}
    stamps = _STAMPS.get(table.library or "", {})
    hidden = {"__edb_v__"} if table.library == "electrodb" else set()
    found += [
        _field(each, names, in_keys.get(each.name), stamps, primary, table.library)
        for each in entity.attributes
        if each.name not in hidden
    ]
    return found


def _field(
    attribute: AttributeType,
    names: _Names,
    spec: str | None,
    stamps: dict[str, str],
    primary: set[str],
    library: str | None,
) -> _Field:
    name = names.of(attribute.name)
    annotation = attribute.annotation
    markers = []
    stamp = stamps.get(attribute.name)
    if stamp is not None and annotation == "datetime":
        markers.append(stamp)
    if spec is not None and attribute.time == "TTL()":
        annotation = "int"  # templates write a TTL() field as text, not as digits
    elif attribute.time is not None and attribute.time != _LIBRARY_TIMES.get(library or ""):
        markers.append(attribute.time)
    if (
        library == "pynamodb"
        and attribute.name == "version"
        and annotation == "int"
        and not attribute.optional
    ):
        markers.append("Version()")
    if name != attribute.name and stamp is None:
        markers.append(f"Attr({_quoted(attribute.name)})")
    optional = (attribute.optional or stamp is not None) and attribute.name not in primary
    default = ""
    if optional and annotation.startswith("set["):
        default = "set()"  # DynamoDB has no empty set: an absent set is the empty one
    elif optional:
        default = "None"
        annotation += "" if annotation == "Any" else " | None"
    if markers:
        annotation = f"Annotated[{annotation}, {', '.join(markers)}]"
    comments = []
    if attribute.count < attribute.items:
        comments.append(f"in {attribute.count:,} of {attribute.items:,}")
    if attribute.nulls:
        comments.append(f"NULL in {attribute.nulls:,}")
    if attribute.time is not None and attribute.time.endswith('offset="")'):
        comments.append("stored without an offset, read as UTC")
    return _Field(name=name, annotation=annotation, default=default, comment="; ".join(comments))


def _key(key: InferredKey, names: _Names, delimiter: str) -> str:
    arguments = [_side(key.partition, names, delimiter)]
    if key.sort:
        arguments.append(_side(key.sort, names, delimiter))
    if key.index is not None:
        arguments.append(f"index={_quoted(key.index.name)}")
    return f"Key({', '.join(arguments)})"


def _side(templates: tuple[InferredTemplate, ...], names: _Names, delimiter: str) -> str:
    if len(templates) > 1 or templates[0].native:
        fields = [_quoted(names.of(each.attribute)) for each in templates]
        return f"({', '.join(fields)},)" if len(fields) == 1 else f"({', '.join(fields)})"
    return _quoted(_text(templates[0], names, delimiter))


def _text(template: InferredTemplate, names: _Names, delimiter: str) -> str:
    """Return the text of a template."""
    segments = []
    for at, part in enumerate(template.parts):
        if part.attribute is not None:
            spec = f":{part.spec}" if part.spec else ""
            segments.append(f"{part.literal}{{{names.of(part.attribute)}{spec}}}")
        elif part.is_key_only:
            segments.append(f"{{{names.value(template, at)}}}")
        else:
            segments.append(part.literal)
    return delimiter.join(segments)


def key_name(key: InferredKey) -> str:
    """Return the name of a key in its class."""
    return f"by_{_identifier(key.index.name).removeprefix('by_')}" if key.index else "key"


def _count(items: int) -> str:
    return f"{items:,} item{'' if items == 1 else 's'}"


def _one_line(text: str) -> str:
    """Return a text for a comment: names in it come from the table and may contain anything."""
    return "".join(each if each.isprintable() else "?" for each in text)


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
