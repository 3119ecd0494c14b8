"""Records in the form of AT Protocol: a collection, a record key, a value and its content id.

Each change is a new version. `linked_record` is the content id of the version before, so that the versions of
a record are a chain. A deleted record can be restored for 30 days.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Annotated, Any

from pydantic import BaseModel, Field

from solotable import Created, Entity, History, Json, Key, Query, SoftDelete, Updated, Version, pattern
from solotable.systems.community.table import community
from solotable.systems.formats.json_sizes import max_json_bytes

from .values import Did, RecordKey, RecordType

DELETED_DAYS = 30
MAX_VALUE_BYTES = 100_000
ContentId = Annotated[str, Field(pattern=r"^b[a-z2-7]{50,80}$")]


class Record(Entity, table=community, tag="RECORD"):
    """A record of a user."""

    key = Key("USER#{did}", "RECORD#{type}#{rkey}")
    by_type = Key("USER#{did}", "{type}#{created_at:us}#{rkey}", index="GSI7")
    versions = History("RECORD#{type}#{rkey}#v{version:06d}")
    deletion = SoftDelete(grace=timedelta(days=DELETED_DAYS))

    did: Did
    type: RecordType
    rkey: RecordKey
    value: Annotated[dict[str, Any], Json(), max_json_bytes(MAX_VALUE_BYTES)]
    #: Of the value; see `formats.content_ids`.
    cid: ContentId
    #: The content id of the version before; None for the first.
    linked_record: ContentId | None = None
    created_at: Annotated[datetime | None, Created()] = None
    updated_at: Annotated[datetime | None, Updated()] = None
    version: Annotated[int, Version()] = 0

    @property
    def uri(self) -> str:
        """The address of the record in AT Protocol."""
        return f"at://{self.did}/{self.type}/{self.rkey}"

    @pattern
    @classmethod
    def of_user(cls, did: str) -> Query[RecordSummary]:
        """The records of a user without their values, by type, newest first."""
        return cls.by_type.query(did=did).descending().select(RecordSummary)

    @pattern
    @classmethod
    def of_type(cls, did: str, record_type: str) -> Query[RecordSummary]:
        """The records of a user in a collection, newest first."""
        return cls.by_type.query(did=did, type=record_type).descending().select(RecordSummary)


class RecordSummary(BaseModel):
    """A record in a list."""

    did: str
    type: str
    rkey: str
    cid: str
    linked_record: str | None = None
    created_at: datetime | None = None
    updated_at: datetime | None = None
    version: int = 0
