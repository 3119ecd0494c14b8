"""Surveys: create, read whole, change, share and delete them.

A survey's metadata and the access of each of its users are written in one transaction (S4.18). Deleting a
survey hides it at once; a purge removes it with its parts after the grace period.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar, cast

from solotable import ANY, AsyncStore, AsyncTransaction, Page
from solotable.errors import NotFound, SolotableError, VersionConflict
from solotable.flow import arun, get_items, key_of, query, scope_of
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.surveys.entities.access import Access, SurveyRole
from solotable.systems.surveys.entities.surveys import Part, SurveyMeta, SurveySummary
from solotable.systems.surveys.errors import missing_is_not_found
from solotable.systems.surveys.services.drafts import SurveyDraft, SurveyPatch
from solotable.systems.surveys.table import surveyor

from .tree import SurveyTree, build_tree

ResultT = TypeVar("ResultT")
#: Users that one survey can be shared with, and users whose role one call changes.
#: DynamoDB: a transaction has at most 100 actions, and one of them is the survey's.
MAX_USERS = 90
MAX_ACCESS_CHANGES = 95


class Surveys:
    """The surveys of one tenant."""

    def __init__(self, store: AsyncStore) -> None:
        self._store = store

    async def create(self, draft: SurveyDraft, *, owner: str, **fields: Any) -> SurveyMeta:
        """Create a survey, and the access of its owner."""
        survey = validate(SurveyMeta, **{**dict(draft), **fields}, owner=owner)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                created = tx.create(survey)
                tx.put(Access(user_id=owner, survey_id=survey.survey_id, role="owner"))
        return created

    async def get(self, survey_id: str, *, consistent: bool = False) -> SurveyMeta:
        """Return the metadata of a survey, or raise NotFound."""
        return await self._store.require(SurveyMeta, consistent=consistent, survey_id=survey_id)

    async def whole(self, survey_id: str, *, consistent: bool = False) -> SurveyTree:
        """Return a survey with all its parts, in order, however many pages they take (S4.22)."""
        pattern = SurveyMeta.whole(survey_id)
        read = query(scope_of(self._store), pattern.consistent() if consistent else pattern)
        found = await arun(read, self._store, subject=pattern)
        # The metadata sorts before all parts.
        survey = found[0] if found else None
        if not isinstance(survey, SurveyMeta):
            raise NotFound(f"Survey {survey_id!r} not found.")
        return build_tree(survey, cast(list[Part], found[1:]))

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[SurveySummary]:
        """Return the surveys of the tenant, newest first: metadata only (Q3, S4.38)."""
        return await self._store.page(SurveyMeta.listed(), limit=limit, cursor=cursor)

    async def list_of(self, user_id: str, *, limit: int = 100, cursor: str | None = None) -> Page[SurveyMeta]:
        """Return the surveys that a user may see."""
        found = await self._store.page(Access.of_user(user_id), limit=limit, cursor=cursor)
        surveys = await self._store.get_many(*(SurveyMeta.key(survey_id=each.survey_id) for each in found))
        there = [each for each in surveys if each is not None]
        return Page(there, found.cursor, found.scanned, previous=found.previous)

    async def role_of(self, user_id: str, survey_id: str) -> SurveyRole | None:
        """Return what a user may do with a survey: one small read."""
        found = await self._store.get(Access, user_id=user_id, survey_id=survey_id)
        return None if found is None else found.role

    async def update(self, survey_id: str, patch: SurveyPatch, *, version: int | None = None) -> SurveyMeta:
        """Change the given fields of the metadata (S4.23), if `version` is the stored one (S4.39)."""
        changes = patch.given()
        if not changes:
            return await self.get(survey_id)
        expected = ANY if version is None else version
        with missing_is_not_found("survey"):
            return await self._store.update(SurveyMeta, version=expected, set=changes, survey_id=survey_id)

    async def share(
        self,
        survey_id: str,
        *,
        owner: str | None = None,
        editors: Sequence[str] | None = None,
        viewers: Sequence[str] | None = None,
        version: int | None = None,
    ) -> SurveyMeta:
        """Change who may see and edit a survey: the metadata and each user's access, in one transaction."""

        async def attempt() -> SurveyMeta:
            current = await self.get(survey_id, consistent=True)
            before = _roles(current.owner, current.editors, current.viewers)
            chosen = current.owner if owner is None else owner
            after = _roles(
                chosen,
                current.editors if editors is None else editors,
                current.viewers if viewers is None else viewers,
            )
            changes = {
                "owner": chosen,
                "editors": sorted(user for user, role in after.items() if role == "editor"),
                "viewers": sorted(user for user, role in after.items() if role == "viewer"),
            }
            expected = current.version if version is None else version
            with unwrap_failure():
                async with self._store.transaction() as tx:
                    tx.update(SurveyMeta, version=expected, set=changes, survey_id=survey_id)
                    _write_access(tx, survey_id, before, after)
            return await self.get(survey_id, consistent=True)

        return await self._retry(attempt, version)

    async def delete(self, survey_id: str, *, version: int | None = None) -> None:
        """Delete a survey and all access to it; a purge removes its parts later."""

        async def attempt() -> None:
            current = await self.get(survey_id, consistent=True)
            before = _roles(current.owner, current.editors, current.viewers)
            with unwrap_failure():
                async with self._store.transaction() as tx:
                    expected = current.version if version is None else version
                    tx.delete(SurveyMeta, version=expected, survey_id=survey_id)
                    _write_access(tx, survey_id, before, {})

        await self._retry(attempt, version)

    async def restore(self, survey_id: str) -> SurveyMeta:
        """Restore a survey that was deleted less than 30 days ago, with the access of its users."""
        scope = scope_of(self._store)
        key = key_of(scope, SurveyMeta, survey_id=survey_id)
        (item,) = await arun(get_items(scope, surveyor, [key], consistent=True), self._store)
        with unwrap_failure():
            async with self._store.transaction() as tx:
                # It raises NotFound for a survey that is not deleted, or was purged.
                tx.undelete(SurveyMeta, survey_id=survey_id)
                if item is not None:
                    deleted: Any = SurveyMeta.plan().decode(item)
                    _write_access(tx, survey_id, {}, _roles(deleted.owner, deleted.editors, deleted.viewers))
        return await self.get(survey_id, consistent=True)

    async def _retry(self, attempt: Callable[[], Awaitable[ResultT]], version: int | None) -> ResultT:
        # A caller that names a version wants to see a conflict of that version.
        def may_retry(error: SolotableError) -> bool:
            return version is None and isinstance(error, VersionConflict)

        return await self._store.retry_conflicts(attempt, when=may_retry)


def _roles(owner: str, editors: Sequence[str], viewers: Sequence[str]) -> dict[str, SurveyRole]:
    """Return the highest role of each user."""
    roles: dict[str, SurveyRole] = dict.fromkeys(viewers, "viewer")
    roles |= dict.fromkeys(editors, "editor")
    roles[owner] = "owner"
    if len(roles) > MAX_USERS:
        raise InvalidInput(f"A survey has at most {MAX_USERS} users.")
    return roles


def _write_access(
    tx: AsyncTransaction, survey_id: str, before: dict[str, SurveyRole], after: dict[str, SurveyRole]
) -> None:
    changed = [(user_id, role) for user_id, role in after.items() if before.get(user_id) != role]
    removed = before.keys() - after.keys()
    if len(changed) + len(removed) > MAX_ACCESS_CHANGES:
        raise InvalidInput(
            f"One call changes the access of at most {MAX_ACCESS_CHANGES} users; got "
            f"{len(changed) + len(removed)}. Make several calls."
        )
    for user_id, role in changed:
        tx.put(Access(user_id=user_id, survey_id=survey_id, role=role))
    for user_id in sorted(removed):
        tx.delete(Access, user_id=user_id, survey_id=survey_id)
