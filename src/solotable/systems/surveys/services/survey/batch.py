"""Change many parts of a survey in one transaction: all of them or none (S4.24).

Every part must exist (C4.9) and have the version that the caller read, if it names one. The survey's
`changed` and its counters follow in the same transaction, without a lock (C4.20).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from pydantic import Field

from solotable import ANY, AsyncStore
from solotable.flow import scope_of
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.inputs import Input
from solotable.systems.surveys.entities.stored import Id
from solotable.systems.surveys.entities.surveys import (
    PARTS,
    Part,
    PartKind,
    SurveyMeta,
)
from solotable.systems.surveys.errors import missing_is_not_found
from solotable.systems.surveys.services.drafts import (
    ComponentPatch,
    ElementPatch,
    SectionPatch,
    SurveyPatch,
)

from .photos import add_uses, check_photos, remove_uses

#: DynamoDB: a transaction has at most 100 actions. One is the survey's, two are the sync's log.
MAX_CHANGES = 97
_PATCHES: dict[str, type[Input]] = {
    "survey": SurveyPatch,
    "section": SectionPatch,
    "element": ElementPatch,
    "component": ComponentPatch,
}


class BatchChange(Input):
    """A change of the survey's metadata or of one part; `version` is the one that the caller read."""

    kind: Literal["survey", "section", "element", "component"]
    id: Id
    version: int | None = None
    set: dict[str, Any] = Field(min_length=1)

    def patch(self) -> dict[str, Any]:
        """Return the changed fields, checked."""
        return validate(_PATCHES[self.kind], **self.set).given()


async def batch_update(
    store: AsyncStore, survey_id: str, changes: Sequence[BatchChange]
) -> list[SurveyMeta | Part]:
    """Change parts of a survey, and return them as stored; raise if one is missing or was changed."""
    _check(survey_id, changes)
    parts = [change for change in changes if change.kind != "survey"]
    shown = await _shown_photos(store, survey_id, parts)
    _check_actions(parts, shown)
    meta = next((change for change in changes if change.kind == "survey"), None)
    metadata = {} if meta is None else meta.patch()
    with missing_is_not_found("survey or a part of it"), unwrap_failure():
        async with store.transaction() as tx:
            for change in parts:
                patch = change.patch()
                version = ANY if change.version is None else change.version
                entity = PARTS[_kind(change)]
                tx.update(entity, version=version, set=patch, **_key(survey_id, change))
                if "photos" in patch:
                    photos, before = set(check_photos(patch["photos"])), shown[change.kind, change.id]
                    add_uses(tx, survey_id, _kind(change), change.id, sorted(photos - before))
                    remove_uses(tx, survey_id, _kind(change), change.id, sorted(before - photos))
            expected = ANY if meta is None or meta.version is None else meta.version
            tx.update(
                SurveyMeta,
                version=expected,
                set={**metadata, "changed": scope_of(store).now()},
                survey_id=survey_id,
            )
    return await _read(store, survey_id, changes)


def _check(survey_id: str, changes: Sequence[BatchChange]) -> None:
    if not changes:
        raise InvalidInput("changes: at least one change is needed.")
    if len(changes) > MAX_CHANGES:
        raise InvalidInput(
            f"changes: a batch is one transaction of at most {MAX_CHANGES} changes; "
            f"got {len(changes)}. Send several batches."
        )
    named = [(change.kind, change.id) for change in changes]
    if len(set(named)) < len(named):
        raise InvalidInput("changes: each part is changed once.")
    if any(change.kind == "survey" and change.id != survey_id for change in changes):
        raise InvalidInput("changes: all parts are of one survey.")


def _check_actions(parts: Sequence[BatchChange], shown: dict[tuple[str, str], set[str]]) -> None:
    """Raise InvalidInput if the photos of a batch make it larger than a transaction."""
    actions = len(parts) + 1
    for change in parts:
        if "photos" in change.set:
            photos, before = set(check_photos(change.patch()["photos"])), shown[change.kind, change.id]
            actions += 2 * len(photos - before) + len(before - photos)
    if actions > MAX_CHANGES + 1:
        raise InvalidInput(
            f"changes: with their photos, these need {actions} actions of one transaction, which has "
            f"{MAX_CHANGES + 1} for them; a new photo needs two. Send several batches."
        )


async def _shown_photos(
    store: AsyncStore, survey_id: str, changes: Sequence[BatchChange]
) -> dict[tuple[str, str], set[str]]:
    """Return the photos that parts have now; a change of photos requires the version that was read."""
    changed = [change for change in changes if "photos" in change.set]
    found: dict[tuple[str, str], set[str]] = {}
    for change in changed:
        part = await store.require(PARTS[_kind(change)], consistent=True, **_key(survey_id, change))
        found[change.kind, change.id] = set(part.photos)
        if change.version is None:
            change.version = part.version
    return found


async def _read(store: AsyncStore, survey_id: str, changes: Sequence[BatchChange]) -> list[SurveyMeta | Part]:
    keys: list[Any] = [
        SurveyMeta.key(survey_id=survey_id)
        if change.kind == "survey"
        else PARTS[_kind(change)].key(**_key(survey_id, change))
        for change in changes
    ]
    return [each for each in await store.get_many(*keys, consistent=True) if each is not None]


def _kind(change: BatchChange) -> PartKind:
    assert change.kind != "survey"
    return change.kind


def _key(survey_id: str, change: BatchChange) -> dict[str, Any]:
    return {"survey_id": survey_id, f"{change.kind}_id": change.id}
