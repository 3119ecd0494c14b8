"""Every error that solotable raises, by cause.

    SolotableError
    ├── DeclarationError            a schema, key or expression is invalid
    ├── DataError                   a value cannot be stored or queried; `public_message` is for clients
    │   ├── DamagedBackup           a file of a shipped backup is damaged or missing; `file`
    │   ├── DamagedExport           a file of an export does not match its manifest; `file` and `line`
    │   ├── ItemTooLarge            an item is over 400 KB; `largest` names its largest fields
    │   ├── StoredDataError         a stored item does not fit its class
    │   │   ├── NewerSchemaVersion  a newer release wrote the item
    │   │   └── UnknownEntity       no entity of the table has the item's type tag
    │   └── SubjectForgotten        a write has personal data of a forgotten subject
    ├── NotFound                    the entity does not exist
    ├── NotUnique                   another entity has the value of a unique field; see `holder`
    ├── FeedTrimmed                 the stream dropped changes before the consumer read them
    ├── LeaseHeld                   another owner holds the lease; `owner` and `until`
    ├── LeaseLost                   this owner lost the lease; nothing was written
    ├── MigrationError              a migration cannot do what was asked
    │   ├── MappingRejected         the mapping failed its check; `problems` has the reasons
    │   ├── MigrationConflict       another process changed the migration first, or uses its tables
    │   ├── MigrationNotReady       a command was refused; `reasons` says what is missing
    │   ├── SwitchTimedOut          writes could not be switched in time; the switch was undone
    │   └── WritesPaused            a write waited too long for a switch; nothing was written; `seconds`
    ├── SyncUnavailable             a push or pull is incomplete; the client sends it again
    ├── TenantViolation             the call would reach another tenant's items
    ├── CursorRejected              the cursor is forged, expired, or of another query or tenant
    ├── BatchIncomplete             a batch was throttled; `leftovers` has its unprocessed requests
    ├── EngineError                 the embedded engine cannot use its file
    │   ├── NotOurFile              the file has another format, or that of a newer version
    │   ├── ReadOnly                a write to a read-only file
    │   ├── StorageFull             the disk is full, or the file has reached its limit
    │   ├── FileLocked              another process has the write lock; `holder` is its id
    │   ├── FileReplaced            the file was removed or replaced while it was open
    │   └── Corrupt                 stored bytes do not match their checksum
    ├── RecoveryError               a state of a table cannot be restored as asked
    ├── HeatUnavailable             the database does not record the traffic of its partition keys
    ├── NotConfigured               the region or the credentials are missing, or the profile is unusable
    ├── TransportError              no reply was received and nothing was written: `retryable`
    │   └── OutcomeUnknown          a write was sent and no reply was received: it may have been executed
    └── ServiceError                an error reply of DynamoDB: `code`, `message`, `retryable`
        ├── ConditionFailed         ConditionalCheckFailedException, with the stored `item`
        │   ├── AlreadyExists       create() found an item
        │   ├── TooManyConflicts    modify() failed in each of its `attempts`: the item had changed
        │   └── VersionConflict     another writer changed the item: `mine` and `theirs`
        ├── TransactionCancelled    TransactionCanceledException, with `reasons` in the caller's order
        │   └── TransactionFailed   the same over entities: `failures` name the entity and the condition
        ├── TableNotFound           ResourceNotFoundException
        └── Throttled               ProvisionedThroughputExceededException and similar errors

A ServiceError has Amazon's exact text, because clients compare it.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar, Literal

__all__ = [
    "AlreadyExists",
    "BatchIncomplete",
    "ConditionFailed",
    "Corrupt",
    "CursorRejected",
    "DamagedBackup",
    "DamagedExport",
    "DataError",
    "DeclarationError",
    "EngineError",
    "FeedTrimmed",
    "FileLocked",
    "FileReplaced",
    "HeatUnavailable",
    "ItemTooLarge",
    "LeaseHeld",
    "LeaseLost",
    "MappingRejected",
    "MigrationConflict",
    "MigrationError",
    "MigrationNotReady",
    "NewerSchemaVersion",
    "NotConfigured",
    "NotFound",
    "NotOurFile",
    "NotUnique",
    "OutcomeUnknown",
    "ReadOnly",
    "RecoveryError",
    "ServiceError",
    "SolotableError",
    "StorageFull",
    "StoredDataError",
    "SubjectForgotten",
    "SwitchTimedOut",
    "SyncUnavailable",
    "TableNotFound",
    "TenantViolation",
    "Throttled",
    "TooManyConflicts",
    "TransactionCancelled",
    "TransactionFailed",
    "TransportError",
    "UnknownEntity",
    "VersionConflict",
    "WritesPaused",
    "invalid",
    "invalid_parameter",
]

_DYNAMODB = "com.amazonaws.dynamodb.v20120810#"
_CORAL_VALIDATE = "com.amazon.coral.validate#"
_CORAL_SERVICE = "com.amazon.coral.service#"
_NAMESPACES = {
    "ValidationException": _CORAL_VALIDATE,
    "SerializationException": _CORAL_SERVICE,
    "UnknownOperationException": _CORAL_SERVICE,
    "InternalFailure": _CORAL_SERVICE,
    "AccessDeniedException": _CORAL_SERVICE,
    "MissingAuthenticationTokenException": _CORAL_SERVICE,
    "IncompleteSignatureException": _CORAL_SERVICE,
    "InvalidSignatureException": _CORAL_SERVICE,
    "UnrecognizedClientException": _CORAL_SERVICE,
}
#: Codes that are always transient. Other errors set `retryable` themselves.
_RETRYABLE = frozenset(
    {
        "InternalServerError",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "ThrottlingException",
        "TransactionInProgressException",
        "TransactionConflictException",
    }
)


#: The subject of a ValidationException, for `_protocol.error_texts`: a parameter, value or expression of the
#: request; Select; the structure of a value; the number of members that break constraints.
Family = Literal["request", "select", "structure", "counted"]


def _copy_error(kind: type[SolotableError], args: tuple[Any, ...]) -> SolotableError:
    """Return an error that was pickled, without its attributes."""
    return kind.__new__(kind, *args)


class SolotableError(Exception):
    """The root of every error in this library."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception.__reduce__ calls the class with `args`, which lack the keyword arguments.
        return _copy_error, (type(self), self.args), self.__dict__


class DeclarationError(SolotableError):
    """A declared schema, key or expression is invalid."""


class DataError(SolotableError):
    """An argument or a value is invalid.

    The message is for developers and may repeat the value. `public_message` is for the client: it has the
    field and the rule, never the value. It is None if the client may not see the cause.
    """

    def __init__(self, message: str, *, public_message: str | None = None) -> None:
        super().__init__(message)
        self.public_message = public_message


class DamagedBackup(DataError):
    """A file of a shipped backup is damaged, missing or out of order."""

    def __init__(self, message: str, *, file: str) -> None:
        super().__init__(message)
        self.file = file


class DamagedExport(DataError):
    """A file of an export is damaged, missing or incomplete; `line` is None where the whole file is meant."""

    def __init__(self, message: str, *, file: str, line: int | None = None) -> None:
        super().__init__(message)
        self.file = file
        self.line = line


class ItemTooLarge(DataError):
    """An item is over DynamoDB's limit of 400 KB; `largest` has the largest fields and their bytes."""

    def __init__(self, message: str, *, size: int, largest: list[tuple[str, int]]) -> None:
        # It has fields and bytes, but no value.
        super().__init__(message, public_message=message)
        self.size = size
        self.largest = largest


class StoredDataError(DataError):
    """A stored item that its class cannot decode; the caller's arguments are not the cause."""


class NewerSchemaVersion(StoredDataError):
    """A stored item has a `schema_version` of a later release; `known` is the newest one of this code."""

    def __init__(self, message: str, *, schema_version: int, known: int) -> None:
        super().__init__(message)
        self.schema_version = schema_version
        self.known = known


class UnknownEntity(StoredDataError):
    """A stored item has a type tag that no entity of the table has."""

    def __init__(self, message: str, *, tag: str | None, item: dict[str, Any]) -> None:
        super().__init__(message)
        self.tag = tag
        self.item = item


class SubjectForgotten(DataError):
    """A write has personal data of a subject whose key was destroyed at `forgotten_at`."""

    def __init__(self, message: str, *, tenant: str | None, subject: str, forgotten_at: datetime) -> None:
        super().__init__(message)
        self.tenant = tenant
        self.subject = subject
        self.forgotten_at = forgotten_at


class NotFound(SolotableError):
    """The requested entity does not exist, or its time to live has passed."""


class NotUnique(SolotableError):
    """Another entity has the same value of a unique field; `holder` is the key of that entity."""

    def __init__(self, message: str, *, field: str, value: Any, holder: dict[str, Any] | None) -> None:
        super().__init__(message)
        self.field = field
        self.value = value
        self.holder = holder


class FeedTrimmed(SolotableError):
    """The stream dropped changes before the consumer read them; it had read all changes until `since`."""

    def __init__(self, message: str, *, consumer: str | None, since: datetime | None) -> None:
        super().__init__(message)
        self.consumer = consumer
        self.since = since


class LeaseHeld(SolotableError):
    """Another owner holds the lease; it expires at `until` by the owner's clock."""

    def __init__(self, message: str, *, name: str, owner: str | None, until: datetime) -> None:
        super().__init__(message)
        self.name = name
        self.owner = owner
        self.until = until


class LeaseLost(SolotableError):
    """The lease was acquired by another owner or released; `token` is no longer the current one."""

    def __init__(self, message: str, *, name: str, token: int) -> None:
        super().__init__(message)
        self.name = name
        self.token = token


class MigrationError(SolotableError):
    """A migration cannot do what was asked."""


class MappingRejected(MigrationError):
    """A mapping failed its check before the start; `problems` has one text for each reason."""

    def __init__(self, message: str, *, problems: list[str]) -> None:
        super().__init__(message)
        self.problems = problems


class MigrationConflict(MigrationError):
    """Another process changed the migration's control record first, or another migration uses the table."""


class MigrationNotReady(MigrationError):
    """A command of a migration was refused; `reasons` has one text for each thing that is missing."""

    def __init__(self, message: str, *, reasons: list[str]) -> None:
        super().__init__(message)
        self.reasons = reasons


class SwitchTimedOut(MigrationError):
    """Writes could not be switched in time: the switch was undone, and the old side takes writes again."""


class WritesPaused(MigrationError):
    """A switch stopped writes for longer than the router waits; nothing was written, so try again."""

    def __init__(self, message: str, *, seconds: float) -> None:
        super().__init__(message)
        self.seconds = seconds


class SyncUnavailable(SolotableError):
    """A push or a pull is incomplete, because of other writers or the database; the client sends it again."""


class TenantViolation(SolotableError):
    """A call would reach another tenant's items, or a stored item names another tenant."""


class CursorRejected(SolotableError):
    """A cursor that was tampered with, has expired, or belongs to another query, tenant or table."""


class BatchIncomplete(SolotableError):
    """DynamoDB did not process the `leftovers` of a batch in any attempt; it processed all others."""

    def __init__(self, message: str, *, leftovers: list[Any]) -> None:
        super().__init__(message)
        self.leftovers = leftovers


class EngineError(SolotableError):
    """The embedded engine cannot use its file or its process."""


class NotOurFile(EngineError):
    """The file is not a solotable database, or was written by a newer version."""


class ReadOnly(EngineError):
    """A write to a file that was opened read-only or is on a read-only file system."""


class StorageFull(EngineError):
    """The disk is full; the write was rolled back, and reads work."""


class FileLocked(EngineError):
    """Another process held the write lock too long; `holder` is its process id, if known."""

    def __init__(self, message: str, *, holder: int | None = None) -> None:
        super().__init__(message)
        self.holder = holder


class FileReplaced(EngineError):
    """The file, or its write-ahead log, was removed or replaced while the engine had it open."""


class Corrupt(EngineError):
    """Stored bytes do not match their checksum, or SQLite found the file damaged."""


class RecoveryError(SolotableError):
    """A state of a table cannot be restored as asked: the message says what can be."""


class HeatUnavailable(SolotableError):
    """The database does not record the traffic of its partition keys; the message says what does."""


class NotConfigured(SolotableError):
    """The region, the credentials or the profile for a DynamoDB endpoint is missing."""


class TransportError(SolotableError):
    """No reply was received and nothing was written: the request was a read or was not sent."""

    def __init__(self, message: str, *, retryable: bool = True) -> None:
        super().__init__(message)
        #: Whether the same request may be sent again.
        self.retryable = retryable


class OutcomeUnknown(TransportError):
    """A write was sent and no reply was received: DynamoDB may or may not execute it.

    It is `retryable` only with an idempotency token. Otherwise read the item before you write again.
    """

    def __init__(self, message: str, *, retryable: bool = False) -> None:
        super().__init__(message, retryable=retryable)


class ServiceError(SolotableError):
    """An error reply of DynamoDB.

    `members` are the other members of the error's body, in wire form.
    """

    def __init__(
        self, code: str, message: str, *, status: int = 400, retryable: bool = False, **members: Any
    ) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.message = message
        self.status = status
        #: Whether the same request may succeed later.
        self.retryable = retryable or status >= 500 or code in _RETRYABLE
        self.members = members
        #: The text of AWS's newer validator if it differs (ADR 22).
        self.newer: str | None = None
        self.family: Family = "request"

    @property
    def response(self) -> dict[str, Any]:
        """The error in the form of botocore's ClientError, so that existing handlers work."""
        return {
            "Error": {"Code": self.code, "Message": self.message},
            "ResponseMetadata": {"HTTPStatusCode": self.status},
            **self.members,
        }

    def body(self) -> dict[str, Any]:
        """The error as the JSON body that DynamoDB sends."""
        # DynamoDB: SerializationException spells the member `Message`; every other error, `message`.
        text = "Message" if self.code == "SerializationException" else "message"
        kind = _NAMESPACES.get(self.code, _DYNAMODB) + self.code
        return {"__type": kind, text: self.message, **self.members}


class ConditionFailed(ServiceError):
    """The condition of a write failed; `item` is the stored item, if the request asked for it."""

    def __init__(
        self, message: str = "The conditional request failed", *, item: dict[str, Any] | None = None
    ) -> None:
        members: dict[str, Any] = {} if item is None else {"Item": item}
        super().__init__("ConditionalCheckFailedException", message, **members)
        self.item = item
        #: The stored item as an entity, if a store sent the request.
        self.found: Any = None


class AlreadyExists(ConditionFailed):
    """A create found an existing item; `found` is that item as an entity."""

    def __init__(self, message: str, *, item: dict[str, Any] | None = None, found: Any = None) -> None:
        super().__init__(message, item=item)
        self.args = (message,)
        self.found = found


class TooManyConflicts(ConditionFailed):
    """Another writer changed the item at each of a modify()'s `attempts`; nothing was written."""

    def __init__(self, message: str, *, item: dict[str, Any] | None, attempts: int) -> None:
        super().__init__(message, item=item)
        self.args = (message,)
        self.attempts = attempts


class VersionConflict(ConditionFailed):
    """Another writer changed the entity: `mine` is the caller's, `theirs` the stored one or None."""

    def __init__(self, message: str, *, item: dict[str, Any] | None, mine: Any, theirs: Any) -> None:
        super().__init__(message, item=item)
        self.args = (message,)
        self.mine = mine
        self.theirs = theirs


class TransactionCancelled(ServiceError):
    """A transaction failed and wrote nothing; `reasons` has one entry per action, in the caller's order."""

    #: Codes of transient reasons: the same transaction may succeed later.
    TRANSIENT: ClassVar = frozenset(
        {"TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"}
    )

    def __init__(self, reasons: list[dict[str, Any]]) -> None:
        codes = ", ".join(reason["Code"] for reason in reasons)
        super().__init__(
            "TransactionCanceledException",
            f"Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]",
            CancellationReasons=reasons,
        )
        self.reasons = reasons

    @property
    def is_transient(self) -> bool:
        """Whether the same transaction may succeed later: each reason is a conflict or throttling."""
        return {reason["Code"] for reason in self.reasons} <= {"None", *self.TRANSIENT}


class TransactionFailed(TransactionCancelled):
    """A transaction of entities failed and wrote nothing; `failures` are its failed actions, in order."""

    def __init__(self, message: str, *, reasons: list[dict[str, Any]], failures: list[Any]) -> None:
        super().__init__(reasons)
        self.args = (message,)
        self.failures = failures


class TableNotFound(ServiceError):
    """The table, index or stream of the request does not exist."""

    def __init__(self, message: str = "Requested resource not found") -> None:
        super().__init__("ResourceNotFoundException", message)


class Throttled(ServiceError):
    """The request exceeded a rate limit; the same request may succeed later."""


def invalid(message: str, *, newer: str | None = None, family: Family = "request") -> ServiceError:
    """Return a ValidationException with this text.

    `newer` is the text of AWS's newer validator if it differs; see `_protocol.error_texts`.
    """
    error = ServiceError("ValidationException", message)
    error.newer, error.family = newer, family
    return error


def invalid_parameter(message: str, *, newer: str | None = None, family: Family = "request") -> ServiceError:
    """Return a ValidationException that opens with DynamoDB's most common half sentence."""
    opening = "One or more parameter values were invalid: "
    return invalid(opening + message, newer=None if newer is None else opening + newer, family=family)
