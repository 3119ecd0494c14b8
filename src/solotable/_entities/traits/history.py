"""History: store former versions of an entity as snapshots in its partition, but in no index.

`_flows.traits.history` implements the writes. `bind` rejects a declaration that could lose or overwrite
snapshots.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Self

from solotable._entities.declare.table import HISTORY_TAG, suggestion
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.templates import Template, TemplateField
from solotable._values import AttributeValue, Item
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft

#: The most snapshots that one delete purges; its transaction also has other writes.
MOST_PURGED = 90
#: The attribute that holds the index keys and the time to live of the original item.
ASIDE = "_aside"
_DELETED = "DELETED"


class History(Trait):
    """Keep every version that a write replaces: `history = History("CONTENT#{node_id}#v{version:06d}")`.

    - The template is the snapshots' sort key.
    - `keep` is the number of snapshots to keep (None: all).
    - `on_delete="keep"` adds the deleted version to the history; "purge" deletes the history and needs
    `keep`.
    - `restored_from` names the field for the number of the version that was restored.
    """

    whole = True
    template: Template
    _sort: str
    _hidden: frozenset[str]
    _dropped: frozenset[str]
    _tag_name: str
    _tag_value: AttributeValue

    def __init__(
        self,
        template: str,
        *,
        keep: int | None = None,
        on_delete: Literal["keep", "purge"] = "keep",
        restored_from: str | None = None,
    ) -> None:
        self.text = template
        self.keep = keep
        self.on_delete = on_delete
        self.restored_from = restored_from

    def bind(self, draft: Draft) -> Self:
        """Check the declaration, and return the trait of the plan."""
        where = f"{draft.name}.{self.name}"
        primary, table = draft.keys["key"], draft.table
        if not isinstance(primary.sort, TemplateLayout):
            raise DeclarationError(
                f"{where}: snapshots are stored in the entity's partition under other sort keys, "
                f"so {draft.name}.key needs a sort template."
            )
        self._check_numbers(where)
        self._check_restored_from(where, draft)
        bound = copy(self)
        bound.template = Template.compile(
            self.text,
            draft.annotations,
            where=where,
            key_format=primary.sort.template.key_format,
            tenant=draft.tenant,
        )
        _check_fields(where, bound.template, primary, draft.version or "")
        if may_overlap(bound.template, primary.sort.template):
            raise DeclarationError(
                f"{where}: {self.text!r} can give the same key as {primary.sort.template.text!r} of the "
                f"entity itself; add a different literal, such as #v{{{draft.version}:06d}}."
            )
        bound._sort = primary.sort.attribute
        primary_names = {table.partition.name, primary.sort.attribute}
        indexed = {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
        bound._dropped = (
            frozenset(name for path in draft.keys.values() for name in path.derived) - primary_names
        )
        bound._hidden = (
            frozenset(indexed | ({table.ttl} if table.ttl else set())) - primary_names - bound._dropped
        )
        bound._tag_name, bound._tag_value = table.internal_tag, {"S": HISTORY_TAG + draft.tag}
        return bound

    @property
    def sort_templates(self) -> Iterable[Template]:
        """The sort key of the snapshots."""
        return (self.template,)

    @property
    def sort(self) -> str:
        """The name of the sort key attribute."""
        return self._sort

    @property
    def tag_value(self) -> AttributeValue:
        """The type tag of snapshots."""
        return self._tag_value

    def key_of(self, key: Item, values: Mapping[str, Any], version: int) -> Item:
        """Return the key of a version's snapshot, in the partition of the entity's key."""
        text = self.template.format({**values, self.template.fields[-1]: version})
        assert text is not None  # no part of a primary key is None
        return {**key, self._sort: {"S": text}}

    def marker_of(self, key: Item, values: Mapping[str, Any]) -> Item:
        """Return the key of the item that marks a deleted entity with a history."""
        return {**key, self._sort: {"S": self._prefix(values) + _DELETED}}

    def range_of(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Return the lowest and the highest sort key of the snapshots of one entity."""
        prefix = self._prefix(values)
        tail = self.template.parts[-1] if isinstance(self.template.parts[-1], str) else ""
        width = self._version_part().codec.width or 0
        return prefix + "0" * width + tail, prefix + "9" * width + tail

    def snapshot(self, item: Item, key: Item) -> Item:
        """Return the snapshot of a stored item under the snapshot's key, in no index and without a TTL."""
        snapshot = {name: value for name, value in item.items() if name not in self._dropped | self._hidden}
        aside = {name: item[name] for name in sorted(self._hidden) if name in item}
        if aside:
            snapshot[ASIDE] = {"M": aside}
        return {**snapshot, **key, self._tag_name: self._tag_value}

    def original(self, item: Item, identity: Item) -> Item:
        """Return the original item of a snapshot, without its derived keys."""
        found = {
            name: value for name, value in item.items() if name not in (ASIDE, self._sort, self._tag_name)
        }
        aside: Item = item.get(ASIDE, {}).get("M", {})
        return {**found, **aside, **identity}

    def _prefix(self, values: Mapping[str, Any]) -> str:
        known = {name: values[name] for name in self.template.fields[:-1]}
        return self.template.prefix(known)

    def _version_part(self) -> TemplateField:
        return next(part for part in reversed(self.template.parts) if isinstance(part, TemplateField))

    def _check_numbers(self, where: str) -> None:
        if self.keep is not None and self.keep < 1:
            raise DeclarationError(
                f"{where}: keep={self.keep} must be at least 1; remove the history to keep none."
            )
        if self.on_delete not in ("keep", "purge"):
            raise DeclarationError(f'{where}: on_delete is "keep" or "purge", not {self.on_delete!r}.')
        if self.on_delete == "purge" and not 0 < (self.keep or 0) <= MOST_PURGED:
            raise DeclarationError(
                f"{where}: on_delete='purge' deletes the snapshots in the transaction of the delete, which "
                f"needs keep= of at most {MOST_PURGED}; or use on_delete='keep', and call purge() later."
            )

    def _check_restored_from(self, where: str, draft: Draft) -> None:
        name = self.restored_from
        if name is None:
            return
        attribute = draft.attributes.get(name)
        if attribute is None:
            raise DeclarationError(
                f"{where}: restored_from={name!r} is not a field; {suggestion(name, draft.attributes)}"
            )
        if attribute.kind != "N" or not attribute.optional or name == draft.version:
            raise DeclarationError(
                f"{where}: restored_from={name!r} must be a field for a version or None; "
                f"declare it as `{name}: int | None = None`."
            )


def may_overlap(one: Template, other: Template) -> bool:
    """Return whether two templates can give the same key."""
    # Imported here, so that entities without a history do not load the linter.
    from solotable._entities.lint.segments import is_segmented, overlap, segments

    if not is_segmented(one) or not is_segmented(other):
        return True
    mine, theirs = segments(one), segments(other)
    return len(mine) == len(theirs) and all(
        overlap(*pair) is not None for pair in zip(mine, theirs, strict=True)
    )


def _check_fields(where: str, template: Template, primary: AccessPath, version: str) -> None:
    assert primary.sort is not None
    fields = template.fields
    if not fields or fields[-1] != version or version in fields[:-1]:
        raise DeclarationError(
            f"{where}: {template.text!r} must end with the version, so that snapshots sort by it; "
            f"write ...#v{{{version}:06d}}."
        )
    part = next(part for part in reversed(template.parts) if isinstance(part, TemplateField))
    if part.codec.kind != "digits" or part.spec.startswith("+"):
        raise DeclarationError(
            f"{where}: {{{version}}} in {template.text!r} needs a width, or v10 would sort before v9; "
            f"write {{{version}:06d}}."
        )
    missing = [name for name in primary.sort.fields if name in primary.fields and name not in fields]
    if missing:
        raise DeclarationError(
            f"{where}: {template.text!r} has no {{{missing[0]}}} of the primary key, "
            f"so two entities would share their snapshots; add it."
        )
    foreign = [name for name in fields[:-1] if name not in primary.fields]
    if foreign:
        raise DeclarationError(
            f"{where}: {{{foreign[0]}}} in {template.text!r} is not part of the primary key, "
            f"so its snapshots could not be found; remove it."
        )
