"""History as it is declared: where the former versions of an entity lie, and how many are kept.

A snapshot is the stored item as it was, in the entity's own partition and in no index. What is written
when is in `flows`; here a declaration that could lose or overwrite a snapshot is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import copy
from typing import TYPE_CHECKING, Any, Literal, Self

from solotable._entities.declare.table import suggestion
from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.layout import TemplateLayout
from solotable._entities.keys.templates import Template, TemplateField
from solotable._values import AttributeValue, Item
from solotable.errors import DeclarationError

from .trait import Trait

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Draft

#: With purge, this many snapshots at most go in the transaction of the delete; others need room in it too.
MOST_PURGED = 90
_TAG = "_history:"
#: Holds what would put a snapshot into an index, or let it expire, but is part of the entity.
ASIDE = "_aside"
_DELETED = "DELETED"


class History(Trait):
    """Keep every version that a write replaces: `history = History("CONTENT#{node_id}#v{version:06d}")`.

    The template is the snapshots' sort key. `keep` is how many are kept (None: all). `on_delete` says
    what a delete does: "keep" the history and add the last version to it, or "purge" it, which takes a
    `keep`. `restored_from` names a field that tells which version a restored one was.
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
        """Check the declaration, and return it as the entity keeps it."""
        where = f"{draft.name}.{self.name}"
        primary, table = draft.keys["key"], draft.table
        if not isinstance(primary.sort, TemplateLayout):
            raise DeclarationError(
                f"{where}: snapshots lie beside the entity under sort keys of their own, "
                f"so {draft.name}.key needs a sort template."
            )
        self._judge_numbers(where)
        self._judge_restored_from(where, draft)
        bound = copy(self)
        bound.template = Template.compile(self.text, draft.annotations, where=where)
        _check_fields(where, bound.template, primary, draft.version or "")
        if could_equal(bound.template, primary.sort.template):
            raise DeclarationError(
                f"{where}: {self.text!r} can be the same key as {primary.sort.template.text!r} of the "
                f"entity itself; add a text that tells them apart, as in #v{{{draft.version}:06d}}."
            )
        bound._sort = primary.sort.attribute
        own = {table.partition.name, primary.sort.attribute}
        indexed = {each.name for index in table.indexes.values() for each in (*index.partition, *index.sort)}
        bound._dropped = frozenset(name for path in draft.keys.values() for name in path.derived) - own
        bound._hidden = frozenset(indexed | ({table.ttl} if table.ttl else set())) - own - bound._dropped
        bound._tag_name, bound._tag_value = table.tag, {"S": _TAG + draft.tag}
        return bound

    @property
    def sort_templates(self) -> Iterable[Template]:
        """The sort key of the snapshots."""
        return (self.template,)

    @property
    def sort(self) -> str:
        """The name of the attribute that tells snapshots apart."""
        return self._sort

    @property
    def tag_value(self) -> AttributeValue:
        """The type tag of snapshots."""
        return self._tag_value

    def key_of(self, key: Item, values: Mapping[str, Any], version: int) -> Item:
        """Return the key of the snapshot of one version, beside the entity's own key."""
        text = self.template.format({**values, self.template.fields[-1]: version})
        assert text is not None  # no part of a table's own key is None
        return {**key, self._sort: {"S": text}}

    def marker_of(self, key: Item, values: Mapping[str, Any]) -> Item:
        """Return the key of the item that says: deleted, and its history is kept."""
        return {**key, self._sort: {"S": self._prefix(values) + _DELETED}}

    def range_of(self, values: Mapping[str, Any]) -> tuple[str, str]:
        """Return the least and the greatest sort key of the snapshots of one entity."""
        prefix = self._prefix(values)
        tail = self.template.parts[-1] if isinstance(self.template.parts[-1], str) else ""
        width = self._version_part().codec.width or 0
        return prefix + "0" * width + tail, prefix + "9" * width + tail

    def snapshot(self, item: Item, key: Item) -> Item:
        """Return a stored item as it is kept: under the snapshot's key, in no index, without an end."""
        kept = {name: value for name, value in item.items() if name not in self._dropped | self._hidden}
        aside = {name: item[name] for name in sorted(self._hidden) if name in item}
        if aside:
            kept[ASIDE] = {"M": aside}
        return {**kept, **key, self._tag_name: self._tag_value}

    def original(self, item: Item, tag_value: AttributeValue) -> Item:
        """Return the stored item that a snapshot was made of; its derived keys are not among it."""
        found = {name: value for name, value in item.items() if name not in (ASIDE, self._sort)}
        aside: Item = item.get(ASIDE, {}).get("M", {})
        return {**found, **aside, self._tag_name: tag_value}

    def _prefix(self, values: Mapping[str, Any]) -> str:
        known = {name: values[name] for name in self.template.fields[:-1]}
        return self.template.prefix(known)

    def _version_part(self) -> TemplateField:
        return next(part for part in reversed(self.template.parts) if isinstance(part, TemplateField))

    def _judge_numbers(self, where: str) -> None:
        if self.keep is not None and self.keep < 1:
            raise DeclarationError(f"{where}: keep={self.keep} keeps nothing; leave the history out instead.")
        if self.on_delete not in ("keep", "purge"):
            raise DeclarationError(f'{where}: on_delete is "keep" or "purge", not {self.on_delete!r}.')
        if self.on_delete == "purge" and not 0 < (self.keep or 0) <= MOST_PURGED:
            raise DeclarationError(
                f"{where}: on_delete='purge' removes the snapshots in the delete's own transaction, which "
                f"takes keep= of at most {MOST_PURGED}; or keep them, and purge() when it suits you."
            )

    def _judge_restored_from(self, where: str, draft: Draft) -> None:
        name = self.restored_from
        if name is None:
            return
        attribute = draft.attributes.get(name)
        if attribute is None:
            raise DeclarationError(
                f"{where}: restored_from={name!r} is no field; {suggestion(name, draft.attributes)}"
            )
        if attribute.kind != "N" or not attribute.optional or name == draft.version:
            raise DeclarationError(
                f"{where}: restored_from={name!r} holds a version or nothing; "
                f"declare it as `{name}: int | None = None`."
            )


def could_equal(one: Template, other: Template) -> bool:
    """Whether two templates could give the same key."""
    # The linter's proofs, which nobody needs who declares no history.
    from solotable._entities.lint.segments import meet, segments

    mine, theirs = segments(one), segments(other)
    return len(mine) == len(theirs) and all(
        meet(*pair) is not None for pair in zip(mine, theirs, strict=True)
    )


def _check_fields(where: str, template: Template, primary: AccessPath, version: str) -> None:
    assert primary.sort is not None
    fields = template.fields
    if not fields or fields[-1] != version or version in fields[:-1]:
        raise DeclarationError(
            f"{where}: {template.text!r} ends with the version, so that snapshots sort by its number; "
            f"write ...#v{{{version}:06d}}."
        )
    part = next(part for part in reversed(template.parts) if isinstance(part, TemplateField))
    if part.codec.kind != "digits" or part.spec.startswith("+"):
        raise DeclarationError(
            f"{where}: {{{version}}} in {template.text!r} needs a width, or v10 comes before v9; "
            f"write {{{version}:06d}}."
        )
    missing = [name for name in primary.sort.fields if name not in fields]
    if missing:
        raise DeclarationError(
            f"{where}: {template.text!r} has no {{{missing[0]}}} of the entity's own key, "
            f"so two entities would share their snapshots; add it."
        )
    foreign = [name for name in fields[:-1] if name not in primary.fields]
    if foreign:
        raise DeclarationError(
            f"{where}: {{{foreign[0]}}} in {template.text!r} is no part of the entity's own key, "
            f"so its snapshots could not be found; leave it out."
        )
