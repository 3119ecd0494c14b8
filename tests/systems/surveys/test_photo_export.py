"""The photos of a survey as a ZIP: names, manifest, missing bytes, and bounded memory."""

from __future__ import annotations

import asyncio
import csv
import hashlib
import io
import tracemalloc
import zipfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from solotable.errors import NotFound
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys.entities.surveys import Part
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.report.photo_export import (
    MANIFEST,
    export_photos,
    file_name,
    photo_chunks,
    safe_name,
)

from .office import Office
from .test_report import component, element, image, report_of, section


@pytest.fixture
def storage(tmp_path: Path) -> FolderStorage:
    return FolderStorage(tmp_path)


def add_photo(
    office: Office, storage: FolderStorage, image_id: str, data: bytes | None, **fields: str
) -> str:
    """Create an image, and its bytes unless they are missing."""
    digest = hashlib.sha256(image_id.encode()).hexdigest()
    stored = office.run(office.store().create(image(image_id, sha256=digest, **fields)))
    if data is not None:
        office.run(storage.put(stored.storage_key, data, mime=stored.mime))
    return image_id


async def whole(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def rows_of(archive: zipfile.ZipFile) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(archive.read(MANIFEST).decode("utf-8-sig"), newline="")))


def test_the_zip_has_readable_names_and_a_manifest(office: Office, storage: FolderStorage) -> None:
    add_photo(office, storage, "front", b"front", caption="Front: south/west")
    add_photo(office, storage, "ridge", b"ridge", name="ridge.JPEG")
    add_photo(office, storage, "lost", None, caption="=1+1")
    add_photo(office, storage, "late", None, status="pending")
    survey = office.survey()
    office.section(survey, "Site")
    roof = office.section(survey, "Roof", photos=["front"])
    covering = office.element(roof, "Covering", photos=["ridge", "lost"])
    office.component(covering, photos=["late", "ridge"])
    data = office.run(_export(office, storage, survey.survey_id))
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        assert archive.namelist() == [
            "02 Roof/001 Front south west.jpg",
            "02 Roof/01 Covering/002 ridge.jpg",
            MANIFEST,
        ]
        assert archive.read("02 Roof/01 Covering/002 ridge.jpg") == b"ridge"
        rows = rows_of(archive)
    assert [(row["photo"], row["status"], row["image_id"]) for row in rows] == [
        ("1", "exported", "front"),
        ("2", "exported", "ridge"),
        ("3", "missing", "lost"),
        ("4", "not uploaded", "late"),
    ]
    # A spreadsheet must not compute a caption.
    assert rows[2]["caption"] == "'=1+1"
    assert rows[2]["place"] == "2.1 Covering"


async def _export(office: Office, storage: FolderStorage, survey_id: str) -> bytes:
    return await whole(await export_photos(office.store(), storage, survey_id))


def test_a_deleted_image_is_a_row_of_the_manifest(office: Office, storage: FolderStorage) -> None:
    survey = office.survey()
    found = office.section(survey)
    office.run(office.store().put(found.model_copy(update={"photos": ["gone"]})))
    with zipfile.ZipFile(io.BytesIO(office.run(_export(office, storage, survey.survey_id)))) as archive:
        assert archive.namelist() == [MANIFEST]
        assert [(row["image_id"], row["status"]) for row in rows_of(archive)] == [("gone", "deleted")]


def test_a_survey_that_does_not_exist_fails_before_the_first_byte(
    office: Office, storage: FolderStorage
) -> None:
    with pytest.raises(NotFound):
        office.run(export_photos(office.store(), storage, "nothing"))
    survey = office.survey()
    with pytest.raises(NotFound):
        office.run(export_photos(office.store("zeta"), storage, survey.survey_id))


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("../../etc/passwd", ".. .. etc passwd"),
        ("C:\\x", "C x"),
        ("a\u202egpj.exe", "agpj.exe"),
        ("\x00\n\t", ""),
        ("e\u0301", "\u00e9"),
        ("...", ""),
        ("\u00fc" * 100, "\u00fc" * 40),
    ],
)
def test_names_are_safe_on_every_file_system(text: str, name: str) -> None:
    assert safe_name(text) == name


def test_every_photo_has_a_unique_name_in_a_folder_of_the_zip() -> None:
    parts: list[Part] = [
        section(f"s{number}", order, name="../..") for number, order in enumerate(spread(12))
    ]
    parts += [element(f"e{number}", f"s{number}", name="CON", photos=[f"p{number}"]) for number in range(12)]
    parts += [
        component(f"c{number}", f"e{number % 12}", photos=[f"q{number}-{each}" for each in range(25)])
        for number in range(48)
    ]
    parts.append(element("lost", "nowhere", photos=["orphan"]))
    images = [image(name, caption="Same") for part in parts for name in part.photos]
    report = report_of(*parts, images=images)
    names = [file_name(report, photo) for photo in report.photos]
    assert len({name.casefold() for name in names}) == len(names) == 12 + 48 * 25 + 1
    assert names[0] == "01/01 CON/0001 Same.jpg"
    assert names[-1] == "00 Without a place/1213 Same.jpg"
    assert not any(part in ("", ".", "..") for name in names for part in name.split("/"))


class Bytes:
    """A storage whose photos are made as they are read."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.open = 0

    async def stream(self, key: str) -> AsyncIterator[bytes]:
        return self._chunks()

    async def _chunks(self) -> AsyncIterator[bytes]:
        self.open += 1
        try:
            for _ in range(self.size // 65_536):
                yield bytes(65_536)
        finally:
            self.open -= 1


def test_memory_is_bounded_for_a_thousand_photos() -> None:
    parts: list[Part] = [section()]
    parts += [
        element(f"e{number}", order=order, photos=[f"p{number}-{each}" for each in range(50)])
        for number, order in enumerate(spread(20))
    ]
    images = [image(name) for part in parts for name in part.photos]
    report = report_of(*parts, images=images)
    storage = Bytes(262_144)

    async def export() -> tuple[int, int, int]:
        size = largest = 0
        tracemalloc.start()
        try:
            async for chunk in photo_chunks(report, storage):  # type: ignore[arg-type]  # streams only
                size += len(chunk)
                largest = max(largest, len(chunk))
            return size, largest, tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    size, largest, peak = asyncio.run(export())
    assert size > 1000 * 262_144
    assert largest < 100_000
    assert peak < 8_000_000


def test_a_client_that_goes_away_closes_the_photo() -> None:
    report = report_of(section(photos=["p1"]), images=[image("p1")])
    storage = Bytes(1_048_576)

    async def export() -> int:
        chunks = photo_chunks(report, storage)  # type: ignore[arg-type]  # streams only
        await anext(chunks)
        opened = storage.open
        await chunks.aclose()
        return opened

    assert asyncio.run(export()) == 1
    assert storage.open == 0
