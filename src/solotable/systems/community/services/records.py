"""Records of a user in the form of AT Protocol: versions by content id, soft delete, lists by type."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from solotable import AsyncDatabase, Page
from solotable.errors import AlreadyExists, TransactionFailed
from solotable.systems.community.entities.records import Record, RecordSummary
from solotable.systems.community.entities.users import User
from solotable.systems.community.formats.content_ids import content_id
from solotable.systems.community.formats.record_keys import new_record_key
from solotable.systems.community.roles import Caller
from solotable.systems.errors import first_error, unwrap_failure, validate

from .drafts import RecordDraft, utc_now

#: Two processes may draw the same key in one microsecond.
_ATTEMPTS = 5


class Records:
    """The records of the caller; a caller changes their own only."""

    def __init__(self, db: AsyncDatabase, *, now: Callable[[], datetime] = utc_now) -> None:
        self._db = db
        self._now = now

    async def create(self, caller: Caller, draft: RecordDraft) -> Record:
        """Create a record, or raise AlreadyExists for a given record key that is in use."""
        did = caller.require_user()
        for attempt in range(_ATTEMPTS):
            record = validate(
                Record,
                did=did,
                type=draft.type,
                rkey=draft.rkey or new_record_key(),
                value=draft.value,
                cid=content_id(draft.value),
            )
            try:
                async with self._db.transaction() as tx:
                    tx.check(User, did=did)
                    return tx.create(record)
            except TransactionFailed as failed:
                cause = first_error(failed)
                is_drawn = draft.rkey is None and isinstance(cause, AlreadyExists)
                if not is_drawn or attempt + 1 == _ATTEMPTS:
                    raise cause from failed
        raise AssertionError("the last attempt returns or raises")

    async def get(self, did: str, record_type: str, rkey: str) -> Record:
        """Return a record with one GetItem, or raise NotFound; records are public."""
        return await self._db.require(Record, did=did, type=record_type, rkey=rkey)

    async def list(
        self, did: str, *, record_type: str | None = None, limit: int = 50, cursor: str | None = None
    ) -> Page[RecordSummary]:
        """Return the records of a user without their values, of one type or of all, newest first."""
        query = Record.of_user(did) if record_type is None else Record.of_type(did, record_type)
        return await self._db.page(query, limit=limit, cursor=cursor, unknown="skip")

    async def update(
        self,
        caller: Caller,
        record_type: str,
        rkey: str,
        value: dict[str, Any],
        *,
        version: int | None = None,
    ) -> Record:
        """Store a new version, which names the version before; the same value changes nothing."""
        did = caller.require_user()
        draft = validate(RecordDraft, type=record_type, rkey=rkey, value=value)
        found = await self._db.require(Record, did=did, type=record_type, rkey=rkey, consistent=True)
        cid = content_id(draft.value)
        if cid == found.cid and version is None:
            return found
        changes: dict[str, Any] = {"value": draft.value, "cid": cid, "linked_record": found.cid}
        if version is not None:
            changes["version"] = version
        with unwrap_failure():
            return await self._db.put(found.model_copy(update=changes))

    async def versions(
        self, did: str, record_type: str, rkey: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[Record]:
        """Return the versions before the current one, newest first."""
        history = self._db.history(Record, did=did, type=record_type, rkey=rkey)
        return await history.list(limit=limit, cursor=cursor)

    async def delete(self, caller: Caller, record_type: str, rkey: str) -> None:
        """Delete a record, or raise NotFound; it can be restored for 30 days."""
        did = caller.require_user()
        found = await self._db.require(Record, did=did, type=record_type, rkey=rkey, consistent=True)
        with unwrap_failure():
            await self._db.delete(found)

    async def restore(self, caller: Caller, record_type: str, rkey: str) -> Record:
        """Undo the deletion of a record within 30 days, or raise NotFound."""
        return await self._db.undelete(Record, did=caller.require_user(), type=record_type, rkey=rkey)
