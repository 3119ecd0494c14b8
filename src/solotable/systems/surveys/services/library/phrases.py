"""Phrases and their associations with elements, components and materials, in one transaction (C4.19)."""

from __future__ import annotations

from collections.abc import Mapping

from solotable import AsyncStore, AsyncTransaction, Page
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.surveys.entities.library import Phrase, PhraseKind, PhraseLink, TargetKind
from solotable.systems.surveys.services.drafts import PhraseDraft, PhrasePatch

#: DynamoDB: a transaction has at most 100 actions; two of them are the phrase's, if its kind changes.
MAX_LINK_CHANGES = 95
_TARGETS: Mapping[str, TargetKind] = {
    "element_ids": "ELEMENT",
    "component_ids": "COMPONENT",
    "material_ids": "MATERIAL",
}


class Phrases:
    """The phrases of a tenant, with their associations."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def create(self, draft: PhraseDraft) -> Phrase:
        """Create a phrase and its associations."""
        phrase = validate(Phrase, **dict(draft))
        with unwrap_failure():
            async with self._store.transaction() as tx:
                created = tx.create(phrase)
                _link(tx, _links(phrase), {})
        return created

    async def get(self, kind: PhraseKind, phrase_id: str, *, consistent: bool = False) -> Phrase:
        """Return a phrase, or raise NotFound."""
        return await self._store.require(Phrase, kind=kind, phrase_id=phrase_id, consistent=consistent)

    async def update(
        self, kind: PhraseKind, phrase_id: str, patch: PhrasePatch, *, version: int | None = None
    ) -> Phrase:
        """Change a phrase and its associations; a new kind moves it, in one transaction."""
        current = await self.get(kind, phrase_id, consistent=True)
        expected = current.version if version is None else version
        changed = validate(Phrase, **{**dict(current), **patch.given()})
        with unwrap_failure():
            async with self._store.transaction() as tx:
                if changed.kind == kind:
                    tx.update(Phrase, kind=kind, phrase_id=phrase_id, version=expected, set=patch.given())
                else:
                    tx.delete(Phrase, kind=kind, phrase_id=phrase_id, version=expected)
                    tx.create(changed.model_copy(update={"version": 0}))
                _link(tx, _links(changed), _links(current))
        return await self.get(changed.kind, phrase_id, consistent=True)

    async def delete(self, kind: PhraseKind, phrase_id: str, *, version: int | None = None) -> None:
        """Delete a phrase and its associations; surveys keep the text in their configuration."""
        current = await self.get(kind, phrase_id, consistent=True)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                expected = current.version if version is None else version
                tx.delete(Phrase, kind=kind, phrase_id=phrase_id, version=expected)
                _link(tx, {}, _links(current))

    async def of_kind(self, kind: PhraseKind, *, limit: int = 100, cursor: str | None = None) -> Page[Phrase]:
        """Return the phrases of a kind, by name (Q5)."""
        return await self._store.page(Phrase.of_kind(kind), limit=limit, cursor=cursor)

    async def of_target(self, target_kind: TargetKind, target_id: str) -> list[Phrase]:
        """Return the phrases of an element, a component or a material (Q6)."""
        links = [link async for link in self._store.all(PhraseLink.of_target(target_kind, target_id))]
        found = await self._store.get_many(
            *(Phrase.key(kind=link.kind, phrase_id=link.phrase_id) for link in links)
        )
        return [phrase for phrase in found if phrase is not None]


def _links(phrase: Phrase) -> dict[tuple[str, str], PhraseLink]:
    """Return the associations of a phrase."""
    return {
        (kind, target_id): PhraseLink(
            target_kind=kind, target_id=target_id, phrase_id=phrase.phrase_id, kind=phrase.kind
        )
        for field, kind in _TARGETS.items()
        for target_id in getattr(phrase, field)
    }


def _link(
    tx: AsyncTransaction,
    after: Mapping[tuple[str, str], PhraseLink],
    before: Mapping[tuple[str, str], PhraseLink],
) -> None:
    changed = [link for target, link in after.items() if before.get(target) != link]
    removed = [link for target, link in before.items() if target not in after]
    if len(changed) + len(removed) > MAX_LINK_CHANGES:
        raise InvalidInput(
            f"One call changes at most {MAX_LINK_CHANGES} associations of a phrase; got "
            f"{len(changed) + len(removed)}. Make several calls."
        )
    for link in changed:
        tx.put(link)
    for link in removed:
        tx.delete(
            PhraseLink, target_kind=link.target_kind, target_id=link.target_id, phrase_id=link.phrase_id
        )
