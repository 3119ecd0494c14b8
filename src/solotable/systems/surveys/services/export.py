"""Everything that a tenant has, as lines of JSON: streamed, one page of a Query in memory (Q1).

The first line names the tenant and the time, the last one counts the items: an export without it is not
complete. Deleted surveys and images that a purge has not removed yet are there, with `deleted_at`. The bytes
of images and documents are not: their lines have the size, the SHA-256 and the storage key of each.

An export is not a snapshot: items that change while it runs are as they were when their page was read.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import AsyncIterator
from typing import Any

from pydantic_core import to_jsonable_python

from solotable import AsyncStore, Entity
from solotable.flow import Item, arun, decode_items, decode_value, key_of, scope_of, send
from solotable.flow.conditions import KeyTerm
from solotable.flow.requests import Page, Query
from solotable.systems.errors import InvalidInput
from solotable.systems.surveys.entities.access import Access, Member
from solotable.systems.surveys.entities.files import KEPT_VERSIONS, Document, Image
from solotable.systems.surveys.entities.surveys import SurveyMeta
from solotable.systems.surveys.table import surveyor

FORMAT = "solotable-surveys-1"
#: Lines are sent in chunks of about this size.
_CHUNK_BYTES = 64 * 1024
_DELETED_AT = "_deleted_at"


async def export_tenant(store: AsyncStore) -> AsyncIterator[bytes]:
    """Return every item of the store's tenant as lines of JSON, in chunks.

    The first page is read before this returns, so that an error of the database is raised here.
    """
    if store.tenant_id is None:
        raise InvalidInput("export_tenant() takes the store of a tenant: db.tenant(...).")
    return _chunks(_lines(store, await _page(store, None)))


async def _chunks(lines: AsyncIterator[dict[str, Any]]) -> AsyncIterator[bytes]:
    buffer = bytearray()
    async for line in lines:
        buffer += _dump(line) + b"\n"
        if len(buffer) >= _CHUNK_BYTES:
            yield bytes(buffer)
            buffer.clear()
    yield bytes(buffer)


def _dump(line: dict[str, Any]) -> bytes:
    return json.dumps(line, ensure_ascii=False, separators=(",", ":"), default=_plain).encode()


def _plain(value: object) -> object:
    """Return a value that JSON has no form for: bytes in base64, the others as responses have them."""
    return base64.b64encode(value).decode() if isinstance(value, bytes) else to_jsonable_python(value)


async def _lines(store: AsyncStore, first: Page) -> AsyncIterator[dict[str, Any]]:
    counts: Counter[str] = Counter()
    # The users and the documents have separate partitions; their ids are the only state of an export.
    users: set[str] = set()
    now = scope_of(store).now()
    yield {"type": "export", "format": FORMAT, "tenant": store.tenant_id, "at": now.isoformat()}
    page = first
    while True:
        for item in decode_items(page.items or ()):
            line = _read(store, item, users)
            if line is not None:
                counts[line["type"]] += 1
                yield line
        if not page.last_key:
            break
        page = await _page(store, page.last_key)
    async for entity in _elsewhere(store, users):
        counts[type(entity).__name__] += 1
        yield _line(entity)
    yield {"type": "end", "items": counts.total(), "counts": dict(sorted(counts.items()))}


async def _elsewhere(store: AsyncStore, users: set[str]) -> AsyncIterator[Entity]:
    """Yield what the partition of the tenant does not hold: the access of users, and documents."""
    for user_id in sorted(users):
        async for access in store.all(Access.of_user(user_id).consistent()):
            yield access
    async for summary in store.all(Document.listed()):
        current = await store.get(Document, document_id=summary.document_id, consistent=True)
        if current is None:
            continue  # deleted a moment ago
        yield current
        history = store.history(Document, document_id=summary.document_id)
        for former in (await history.list(limit=KEPT_VERSIONS)).items:
            yield former


async def _page(store: AsyncStore, start: Item | None) -> Page:
    scope = scope_of(store)
    request = Query(
        table=scope.table(surveyor),
        key=(KeyTerm("PK", "=", (key_of(scope, SurveyMeta, survey_id="any")["PK"],)),),
        start=start,
        consistent=True,
    )
    return await arun(send(scope, request), store)


def _read(store: AsyncStore, item: Item, users: set[str]) -> dict[str, Any] | None:
    """Return the line of an item, and add its users; None for an expired or an internal item."""
    plan, scope = surveyor.recognise(item), scope_of(store)
    if plan is None:
        return _unknown(item)
    deleted_at = item.get(_DELETED_AT)
    if deleted_at is None and scope.is_hidden(plan, item):
        return None
    entity = plan.decode(item)
    if plan.tenant is not None:
        scope.check_tenant(plan, entity)
    users.update(_users_of(entity))
    return _line(entity, deleted_at)


def _unknown(item: Item) -> dict[str, Any] | None:
    """Return the line of an item of no entity; None for an internal item of the store."""
    if str(item.get("_type", {}).get("S", "")).startswith("_"):
        return None
    attributes = {name: decode_value(value) for name, value in item.items()}
    return {"type": "unknown", "attributes": attributes}


def _line(entity: Entity, deleted_at: Any = None) -> dict[str, Any]:
    line: dict[str, Any] = {"type": type(entity).__name__, "fields": entity.model_dump()}
    if isinstance(entity, (Image, Document)):
        line["storage_key"] = entity.storage_key
    if deleted_at is not None:
        line["deleted_at"] = decode_value(deleted_at)
    return line


def _users_of(entity: Entity) -> list[str]:
    match entity:
        case SurveyMeta():
            return [entity.owner, *entity.editors, *entity.viewers]
        case Member():
            return [entity.user_id]
        case _:
            return []
