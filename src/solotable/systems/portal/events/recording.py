"""Record events and list them. The server sets the time and the user; a client gives neither (C3.10)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Any

from pydantic import AfterValidator, Field

from solotable import AsyncDatabase, Page
from solotable.errors import AlreadyExists
from solotable.flow import scope_of
from solotable.systems.errors import InvalidInput, unwrap_failure, validate
from solotable.systems.formats.inputs import Input
from solotable.systems.portal.entities.aggregates import EventToken
from solotable.systems.portal.entities.events import ActivityEvent
from solotable.systems.portal.entities.values import ContentId

#: The events of one request: with the token they are one transaction.
MOST_EVENTS = 50
MOST_METADATA_BYTES = 4096
_DEEPEST_METADATA = 4
_TOKEN_LIFETIME = timedelta(days=1)


def _check_metadata(metadata: dict[str, Any]) -> dict[str, Any]:
    try:
        size = len(json.dumps(metadata, ensure_ascii=False, allow_nan=False).encode())
    except (TypeError, ValueError):
        raise ValueError("must be a JSON object") from None
    if size > MOST_METADATA_BYTES:
        raise ValueError(f"must have at most {MOST_METADATA_BYTES} bytes")
    _check_depth(metadata, _DEEPEST_METADATA)
    return metadata


def _check_depth(value: object, deepest: int) -> None:
    if not isinstance(value, dict | list):
        return
    if deepest == 0:
        raise ValueError(f"must have at most {_DEEPEST_METADATA} levels")
    for each in value.values() if isinstance(value, dict) else value:
        _check_depth(each, deepest - 1)


class EventDraft(Input):
    """What a client says of an event. A `timestamp` or `user_id` is rejected as an unknown field."""

    event_name: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.]{0,63}$")]
    content_id: ContentId | None = None
    metadata: Annotated[dict[str, Any], AfterValidator(_check_metadata)] = Field(default_factory=dict)


class EventLog:
    """Append-only events. An update, a replacement or a deletion raises Forbidden (S3.22)."""

    def __init__(self, db: AsyncDatabase) -> None:
        self._db = db
        self._clock = scope_of(db).clock

    async def record(
        self,
        event_name: str,
        *,
        user_id: str | None = None,
        content_id: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> ActivityEvent:
        """Record one event of the server, at the current time."""
        draft = validate(
            EventDraft, event_name=event_name, content_id=content_id, metadata=dict(metadata or {})
        )
        return await self._db.create(self._event(draft, user_id, self._now()))

    async def record_many(
        self, drafts: Sequence[EventDraft], *, user_id: str, token: str | None = None
    ) -> list[ActivityEvent]:
        """Record events of one user in one transaction, all or none.

        A client that may repeat a request gives a token: within a day, the same token records nothing and
        returns the events of the first request.
        """
        if not 1 <= len(drafts) <= MOST_EVENTS:
            raise InvalidInput(f"events: give 1 to {MOST_EVENTS} events.")
        now = self._now()
        made = [self._event(draft, user_id, now) for draft in drafts]
        claim = None if token is None else _claim(user_id, token, drafts, made)
        try:
            with unwrap_failure():
                async with self._db.transaction() as tx:
                    if claim is not None:
                        tx.create(claim)
                    made = [tx.create(event) for event in made]
        except AlreadyExists:
            if claim is None:
                raise
            return await self._repeated(claim)
        return made

    async def of_day(self, day: date, *, limit: int = 50, cursor: str | None = None) -> Page[ActivityEvent]:
        """Return the events of a day, newest first, over its shards (S3.20, C3.8)."""
        return await self._db.page(ActivityEvent.of_day(day), limit=limit, cursor=cursor)

    async def of_user(
        self, user_id: str, *, limit: int = 50, cursor: str | None = None
    ) -> Page[ActivityEvent]:
        """Return the events of a user, newest first, by the index and not by a scan (S3.21, C3.9)."""
        return await self._db.page(ActivityEvent.of_user(user_id), limit=limit, cursor=cursor)

    async def _repeated(self, claim: EventToken) -> list[ActivityEvent]:
        """Return the events that the first request with a token recorded."""
        first = await self._db.require(EventToken, user_id=claim.user_id, token=claim.token, consistent=True)
        if first.digest != claim.digest:
            raise InvalidInput("token: another request has used it; give a new one.")
        keys = [{"timestamp": first.timestamp, "event_id": each} for each in first.event_ids]
        found = await self._db.get_many(ActivityEvent, keys, consistent=True)
        return [each for each in found if each is not None]

    def _event(self, draft: EventDraft, user_id: str | None, now: datetime) -> ActivityEvent:
        return validate(ActivityEvent, **dict(draft), user_id=user_id, timestamp=now)

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._clock(), UTC)


def _claim(
    user_id: str, token: str, drafts: Sequence[EventDraft], made: Sequence[ActivityEvent]
) -> EventToken:
    asked = json.dumps([draft.model_dump(mode="json") for draft in drafts], sort_keys=True)
    return validate(
        EventToken,
        user_id=user_id,
        token=token,
        digest=sha256(asked.encode()).hexdigest(),
        timestamp=made[0].timestamp,
        event_ids=[event.event_id for event in made],
        expires_at=made[0].timestamp + _TOKEN_LIFETIME,
    )
