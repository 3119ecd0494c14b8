"""Images and documents: deduplication, thumbnails, deletes and restores, versions and their bodies."""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest

from solotable.errors import AlreadyExists, NotFound, VersionConflict
from solotable.jobs.purge import purge
from solotable.systems.errors import InvalidInput
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys.entities.files import KEPT_VERSIONS, MAX_DOCUMENT_BYTES, Document
from solotable.systems.surveys.errors import InUse
from solotable.systems.surveys.services.documents import Documents
from solotable.systems.surveys.services.drafts import ImageDraft, ImagePatch
from solotable.systems.surveys.services.images import THUMBNAIL_PIXELS, Images, make_thumbnail
from solotable.systems.surveys.table import surveyor

from .office import Office

PNG = b"\x89PNG\r\n\x1a\n" + b"no picture"


def picture(width: int = 800, height: int = 600, shade: int = 30) -> bytes:
    """Return a JPEG."""
    pillow = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    target = io.BytesIO()
    pillow.new("RGB", (width, height), (200, shade, 30)).save(target, "JPEG")
    return target.getvalue()


def draft(data: bytes, name: str = "front.jpg", mime: str = "image/jpeg") -> ImageDraft:
    return ImageDraft(sha256=hashlib.sha256(data).hexdigest(), name=name, mime=mime, size=len(data))


@pytest.fixture
def images(office: Office, tmp_path: Path) -> Images:
    return Images(office.store(), FolderStorage(tmp_path))


@pytest.fixture
def documents(office: Office, tmp_path: Path) -> Documents:
    return Documents(office.store(), FolderStorage(tmp_path))


async def joined(chunks: AsyncIterator[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def test_an_image_is_registered_uploaded_and_read(office: Office, images: Images) -> None:
    data = picture()
    image, is_new = office.run(images.register(draft(data)))
    assert (is_new, image.status) == (True, "pending")
    with pytest.raises(NotFound, match="not uploaded yet"):
        office.run(images.stream(image.image_id))
    stored = office.run(images.upload(image.image_id, data))
    assert (stored.status, stored.width, stored.height, stored.has_thumbnail) == ("stored", 800, 600, True)
    _, chunks = office.run(images.stream(image.image_id))
    assert office.run(joined(chunks)) == data
    _, chunks = office.run(images.stream(image.image_id, thumbnail=True))
    small = make_thumbnail(office.run(joined(chunks)))
    assert small is not None
    assert max(small[:2]) == THUMBNAIL_PIXELS
    with pytest.raises(AlreadyExists):
        office.run(images.upload(image.image_id, data))


def test_the_same_photo_is_stored_once_in_a_tenant(office: Office, images: Images, tmp_path: Path) -> None:
    data = picture()
    first, _ = office.run(images.register(draft(data)))
    again, is_new = office.run(images.register(draft(data, name="copy.jpg")))
    assert (again.image_id, is_new) == (first.image_id, False)
    other = Images(office.store("zeta"), FolderStorage(tmp_path))
    elsewhere, is_new = office.run(other.register(draft(data)))
    assert (is_new, elsewhere.image_id != first.image_id) == (True, True)


def test_bytes_that_are_not_the_registered_ones_are_rejected(office: Office, images: Images) -> None:
    data = picture()
    image, _ = office.run(images.register(draft(data)))
    for wrong, match in ((data[:-1], "registered with"), (b"x" * len(data), "SHA-256")):
        with pytest.raises(InvalidInput, match=match):
            office.run(images.upload(image.image_id, wrong))
    fake, _ = office.run(images.register(draft(PNG, mime="image/png")))
    with pytest.raises(InvalidInput, match="not a picture"):
        office.run(images.upload(fake.image_id, PNG))
    with pytest.raises(InvalidInput, match="not allowed"):
        office.run(images.register(draft(b"<svg/>", mime="image/svg+xml")))
    assert office.run(images.get(image.image_id)).status == "pending"


def test_an_image_that_is_shown_is_not_deleted_and_a_deleted_one_comes_back(
    office: Office, images: Images
) -> None:
    data = picture()
    image, _ = office.run(images.register(draft(data)))
    office.run(images.upload(image.image_id, data))
    survey = office.survey()
    section = office.section(survey, photos=[image.image_id])
    with pytest.raises(InUse, match=f"The section '{section.section_id}' of survey"):
        office.run(images.delete(image.image_id))
    office.run(office.sections(survey).delete(section.section_id))
    office.run(images.delete(image.image_id))
    assert office.run(images.list()).items == []
    with pytest.raises(NotFound):
        office.run(images.get(image.image_id))
    back, is_new = office.run(images.register(draft(data)))
    assert (back.image_id, back.status, is_new) == (image.image_id, "stored", False)
    office.run(images.delete(image.image_id))
    assert office.run(images.undelete(image.image_id)).image_id == image.image_id


def test_an_image_of_a_purged_survey_can_be_deleted(office: Office, images: Images) -> None:
    image, _ = office.run(images.register(draft(picture())))
    survey = office.survey()
    office.section(survey, photos=[image.image_id])
    office.run(office.surveys().delete(survey.survey_id))
    with pytest.raises(InUse):
        office.run(images.delete(image.image_id))
    office.clock.seconds += timedelta(days=31).total_seconds()
    purge(office.blocking.admin(), surveyor)
    office.journal.clear()
    office.run(images.delete(image.image_id))
    assert office.keys("IMAGEUSE#") == []


def test_s4_21_q7_the_images_of_a_tenant_newest_first(office: Office, images: Images) -> None:
    for shade in (20, 200):
        office.run(images.register(draft(picture(shade=shade), name=f"{shade}.jpg")))
        office.clock.seconds += 1
    office.sent()
    assert [each.name for each in office.run(images.list())] == ["200.jpg", "20.jpg"]
    assert office.sent() == ["Query"]


def test_the_caption_of_an_image_has_a_version(office: Office, images: Images) -> None:
    image, _ = office.run(images.register(draft(picture())))
    changed = office.run(images.update(image.image_id, ImagePatch(caption="Front"), version=1))
    assert (changed.caption, changed.name, changed.version) == ("Front", "front.jpg", 2)
    with pytest.raises(VersionConflict):
        office.run(images.update(image.image_id, ImagePatch(caption="Back"), version=1))


def test_s4_35_q8_the_newest_ten_versions_of_a_document_are_kept_with_their_bodies(
    office: Office, documents: Documents, tmp_path: Path
) -> None:
    document = office.run(documents.create(name="Note", mime="text/plain", data=b"1", owner="ann"))
    for number in range(2, 15):
        document = office.run(
            documents.replace(
                document.document_id, mime="text/plain", data=str(number).encode(), version=number - 1
            )
        )
    versions = office.run(documents.versions(document.document_id))
    assert [each.version for each in versions] == list(range(14, 14 - KEPT_VERSIONS, -1))
    bodies = [office.run(joined(office.run(documents.read(each)))) for each in versions]
    assert bodies == [str(each.version).encode() for each in versions]
    stored = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(stored) == KEPT_VERSIONS, "the bodies of former versions are removed"
    assert office.run(documents.version(document.document_id, 7)).version == 7
    with pytest.raises(NotFound, match="has no version 3"):
        office.run(documents.version(document.document_id, 3))


def test_s4_35_of_two_who_replace_a_version_one_fails_and_leaves_no_body(
    office: Office, documents: Documents, tmp_path: Path
) -> None:
    document = office.run(documents.create(name="Note", mime="text/plain", data=b"1", owner="ann"))
    office.run(documents.replace(document.document_id, mime="text/plain", data=b"2", version=1))
    with pytest.raises(VersionConflict):
        office.run(documents.replace(document.document_id, mime="text/plain", data=b"x", version=1))
    newest = office.run(documents.get(document.document_id, consistent=True))
    assert office.run(joined(office.run(documents.read(newest)))) == b"2"
    assert len([path for path in tmp_path.rglob("*") if path.is_file()]) == 2


def test_c4_18_a_document_is_found_in_its_tenant_only(
    office: Office, documents: Documents, tmp_path: Path
) -> None:
    document = office.run(documents.create(name="Note", mime="text/plain", data=b"1", owner="ann"))
    other = Documents(office.store("zeta"), FolderStorage(tmp_path))
    with pytest.raises(NotFound):
        office.run(other.get(document.document_id))
    with pytest.raises(NotFound):
        office.run(other.replace(document.document_id, mime="text/plain", data=b"2", version=1))


def test_a_document_of_ten_megabytes_fits_and_no_larger_one(office: Office, documents: Documents) -> None:
    largest = b"x" * MAX_DOCUMENT_BYTES
    office.run(documents.create(name="Large", mime="text/plain", data=largest, owner="ann"))
    for wrong, match in ((largest + b"x", "at most"), (b"", "needs 1 to")):
        with pytest.raises(InvalidInput, match=match):
            office.run(documents.create(name="Large", mime="text/plain", data=wrong, owner="ann"))


def test_a_deleted_document_leaves_no_bodies(office: Office, documents: Documents, tmp_path: Path) -> None:
    document = office.run(documents.create(name="Note", mime="text/plain", data=b"1", owner="ann"))
    office.run(documents.replace(document.document_id, mime="text/plain", data=b"2", version=1))
    assert [each.name for each in office.run(documents.list())] == ["Note"]
    office.run(documents.delete(document.document_id))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [item for item in office.raw() if item["_type"] == {"S": Document.plan().tag}]
