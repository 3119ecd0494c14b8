"""Batches: chunks, what comes back unprocessed, leftovers, and nothing sent when the block raised."""

from __future__ import annotations

from typing import Any

import pytest

from solotable import Store
from solotable._protocol.replies import BatchGot, BatchWrote
from solotable._protocol.requests import BatchGetItem, BatchPut, BatchWriteItem
from solotable.errors import BatchIncomplete, DeclarationError

from .models import Photo, Reader, library, surveyor
from .opening import Opening


def _photos(count: int) -> list[Photo]:
    return [Photo(survey_id="s", photo_id=f"{number:03d}") for number in range(count)]


def _keys(count: int) -> list[dict[str, Any]]:
    return [{"survey_id": "s", "photo_id": f"{number:03d}"} for number in range(count)]


def test_chunks_of_25_and_of_100(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with db.batch() as batch:
        for photo in _photos(130):
            assert batch.put(photo).tenant_id == "acme"
        assert opening.spy.sent == []
    sizes = [sum(len(writes) for _, writes in sent.tables) for sent in opening.spy.of(BatchWriteItem)]
    assert sizes == [25] * 5 + [5]
    opening.spy.sent.clear()
    found = db.get_many(Photo, _keys(130))
    assert [each and each.photo_id for each in found] == [f"{number:03d}" for number in range(130)]
    assert [len(sent.tables[0].keys) for sent in opening.spy.of(BatchGetItem)] == [100, 30]
    with db.batch() as batch:
        for photo in _photos(130):
            batch.delete(photo)
        batch.delete(Photo, survey_id="s", photo_id="nobody")
    assert opening.raw(surveyor) == []


def test_nothing_is_sent_when_the_block_raised(db: Store, opening: Opening) -> None:
    opening.spy.sent.clear()
    with pytest.raises(RuntimeError, match="mine"), db.batch() as batch:  # noqa: PT012 - the block is the test
        for photo in _photos(60):
            batch.put(photo)
        raise RuntimeError("mine")
    assert opening.spy.sent == []
    with db.batch():
        pass
    assert opening.spy.sent == []


def test_a_batch_is_sent_once(db: Store) -> None:
    with db.batch() as batch:
        batch.put(Photo(survey_id="s", photo_id="1"))
    with pytest.raises(DeclarationError, match="was sent"):
        batch.put(Photo(survey_id="s", photo_id="2"))


def test_the_last_write_to_an_item_counts(db: Store, opening: Opening) -> None:
    with db.batch() as batch:
        batch.put(Reader(reader_id="r", name="first"))
        batch.put(Reader(reader_id="q", name="gone"))
        batch.put(Reader(reader_id="r", name="last"))
        batch.delete(Reader, reader_id="q")
    assert [item["name"] for item in opening.raw(library)] == [{"S": "last"}]


def _wire(write: Any) -> dict[str, Any]:
    if isinstance(write, BatchPut):
        return {"PutRequest": {"Item": write.item}}
    return {"DeleteRequest": {"Key": write.key}}


class Throttling:
    """Does the first few of each batch, and gives the rest back; with none it does nothing at all."""

    def __init__(self, opening: Opening, at_once: int) -> None:
        self.opening = opening
        self.at_once = at_once
        self.sizes: list[int] = []

    def __call__(self, request: Any) -> Any:
        if isinstance(request, BatchWriteItem):
            return self._write(request)
        if isinstance(request, BatchGetItem):
            return self._read(request)
        return None

    def _write(self, request: BatchWriteItem) -> BatchWrote:
        entries = [(table, write) for table, writes in request.tables for write in writes]
        self.sizes.append(len(entries))
        for table, write in entries[: self.at_once]:
            self.opening.engine.handle(BatchWriteItem(tables=((table, (write,)),)))
        left: dict[str, list[Any]] = {}
        for table, write in entries[self.at_once :]:
            left.setdefault(table, []).append(_wire(write))
        return BatchWrote(unprocessed=left)

    def _read(self, request: BatchGetItem) -> BatchGot:
        (part,) = request.tables
        self.sizes.append(len(part.keys))
        some = type(part)(table=part.table, keys=part.keys[: self.at_once])
        responses = self.opening.engine.handle(BatchGetItem(tables=(some,))).responses if self.at_once else {}
        rest = list(part.keys[self.at_once :])
        return BatchGot(responses=responses, unprocessed={part.table: {"Keys": rest}} if rest else {})


def test_what_comes_back_is_sent_again(db: Store, opening: Opening) -> None:
    opening.spy.before = throttling = Throttling(opening, 10)
    with db.batch() as batch:
        for photo in _photos(30):
            batch.put(photo)
        batch.put(Reader(reader_id="r"))
    assert throttling.sizes == [25, 15, 5, 6]
    assert len(opening.raw(surveyor)) == 30
    assert len(opening.raw(library)) == 1
    throttling.sizes.clear()
    found = db.get_many(Photo, _keys(31))
    assert [each is not None for each in found] == [True] * 30 + [False]
    assert throttling.sizes == [31, 21, 11, 1]


def test_leftovers_are_carried_by_the_error(db: Store, opening: Opening) -> None:
    opening.spy.before = Throttling(opening, 0)
    photos = _photos(30)
    with pytest.raises(BatchIncomplete, match="Photo") as failed, db.batch() as batch:  # noqa: PT012
        for photo in photos:
            batch.put(photo)
        batch.delete(Photo, survey_id="s", photo_id="x")
    assert failed.value.leftovers[:30] == photos
    assert failed.value.leftovers[30]["SK"] == {"S": "SURVEY#s#PHOTO#x"}
    assert opening.raw(surveyor) == []
    with pytest.raises(BatchIncomplete, match="Photo") as unread:
        db.get_many(Photo, _keys(3))
    assert [key["SK"]["S"] for key in unread.value.leftovers] == [f"SURVEY#s#PHOTO#00{n}" for n in range(3)]
    opening.spy.before = None
    with db.batch() as again:
        for photo in failed.value.leftovers[:30]:
            again.put(photo)
    assert len(opening.raw(surveyor)) == 30
