"""Images: metadata in the table, bytes and thumbnails in a storage.

Register an image with the SHA-256 of its bytes, then upload them. An image that the tenant has already is
found by its digest, so the same photo is stored once. An image that a part shows cannot be deleted; a deleted
one can be restored for 30 days, until a purge removes it with its bytes.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import AsyncIterator
from typing import Any

from solotable import AsyncStore, Page
from solotable.errors import AlreadyExists, NotFound, NotUnique
from solotable.systems.errors import InvalidInput, validate
from solotable.systems.file_types import IMAGES, MB, check_bytes, check_type
from solotable.systems.storage import Storage
from solotable.systems.surveys.entities.files import Image, ImageSummary, ImageUse
from solotable.systems.surveys.entities.surveys import PARTS
from solotable.systems.surveys.errors import InUse

from .drafts import ImageDraft, ImagePatch

#: The largest photo of each type.
TYPES = dict.fromkeys(IMAGES, 25 * MB)
THUMBNAIL_PIXELS = 320
#: A small file can claim to be a picture of gigabytes.
_MOST_PIXELS = 100_000_000


class Images:
    """The images of one tenant."""

    def __init__(self, store: AsyncStore, storage: Storage) -> None:
        self._store = store
        self._storage = storage

    async def register(self, draft: ImageDraft) -> tuple[Image, bool]:
        """Return the image with these bytes, and whether it is new; upload the bytes of a new one."""
        check_type(draft.mime, draft.size, TYPES)
        try:
            return await self._store.create(validate(Image, **dict(draft))), True
        except NotUnique as taken:
            image_id = str((taken.holder or {})["image_id"])
        found = await self._store.get(Image, image_id=image_id, consistent=True)
        if found is None:  # deleted, and not purged yet: it comes back with its bytes
            found = await self._store.undelete(Image, image_id=image_id)
        return found, False

    async def upload(self, image_id: str, data: bytes) -> Image:
        """Store the bytes of a registered image, and its thumbnail."""
        found = await self.get(image_id, consistent=True)
        if found.status == "stored":
            raise AlreadyExists(f"Image {image_id!r} has its bytes already.")
        if len(data) != found.size:
            raise InvalidInput(f"The image was registered with {found.size} bytes, got {len(data)}.")
        if hashlib.sha256(data).hexdigest() != found.sha256:
            raise InvalidInput("The bytes do not have the registered SHA-256.")
        check_bytes(found.mime, data)
        changes: dict[str, Any] = {"status": "stored"}
        await self._storage.put(found.storage_key, data, mime=found.mime)
        thumbnail = make_thumbnail(data)
        if thumbnail is not None:
            changes["width"], changes["height"], small = thumbnail
            await self._storage.put(found.thumbnail_key, small, mime="image/jpeg")
            changes["has_thumbnail"] = True
        return await self._store.update(found, set=changes)

    async def get(self, image_id: str, *, consistent: bool = False) -> Image:
        """Return the metadata of an image, or raise NotFound."""
        return await self._store.require(Image, image_id=image_id, consistent=consistent)

    async def stream(self, image_id: str, *, thumbnail: bool = False) -> tuple[Image, AsyncIterator[bytes]]:
        """Return an image and its bytes in chunks, or those of its thumbnail."""
        found = await self.get(image_id)
        if found.status != "stored":
            raise NotFound(f"The bytes of image {image_id!r} are not uploaded yet.")
        key = found.thumbnail_key if thumbnail and found.has_thumbnail else found.storage_key
        return found, await self._storage.stream(key)

    async def list(self, *, limit: int = 100, cursor: str | None = None) -> Page[ImageSummary]:
        """Return images, newest first (Q7)."""
        return await self._store.page(Image.listed(), limit=limit, cursor=cursor)

    async def update(self, image_id: str, patch: ImagePatch, *, version: int | None = None) -> Image:
        """Change the name or the caption of an image."""
        current = await self.get(image_id, consistent=True)
        expected = current.version if version is None else version
        return await self._store.update(Image, image_id=image_id, version=expected, set=patch.given())

    async def delete(self, image_id: str, *, version: int | None = None) -> None:
        """Delete an image, or raise InUse if a part shows it."""
        current = await self.get(image_id, consistent=True)
        await self._check_unused(image_id)
        await self._store.delete(
            Image, image_id=image_id, version=current.version if version is None else version
        )
        # A part that got the photo before the delete is found now; later ones fail, as the image is deleted.
        try:
            await self._check_unused(image_id)
        except InUse:
            await self._store.undelete(Image, image_id=image_id)
            raise

    async def _check_unused(self, image_id: str) -> None:
        """Raise InUse if a part shows an image."""
        async for used in self._store.all(ImageUse.of_image(image_id).consistent()):
            if await self._is_left_over(used):
                continue
            raise InUse(
                f"The {used.part_kind} {used.part_id!r} of survey {used.survey_id!r} shows this image; "
                f"remove the photo there first.",
                item=None,
            )

    async def _is_left_over(self, used: ImageUse) -> bool:
        """Remove the record of a photo whose part was purged with its survey; return whether it was one."""
        key: dict[str, Any] = {"survey_id": used.survey_id, f"{used.part_kind}_id": used.part_id}
        if await self._store.get(PARTS[used.part_kind], consistent=True, **key) is not None:
            return False
        await self._store.delete(used)
        return True

    async def undelete(self, image_id: str) -> Image:
        """Restore an image that was deleted less than 30 days ago."""
        return await self._store.undelete(Image, image_id=image_id)


def make_thumbnail(data: bytes) -> tuple[int, int, bytes] | None:
    """Return the width, the height and a small JPEG of a picture; None without Pillow, or for no picture."""
    try:
        from PIL import Image as Picture
        from PIL import ImageOps
    except ImportError:
        return None
    try:
        with Picture.open(io.BytesIO(data)) as picture:
            width, height = picture.size
            if width * height > _MOST_PIXELS:
                raise InvalidInput(f"A photo has at most {_MOST_PIXELS} pixels; got {width} x {height}.")
            small = ImageOps.exif_transpose(picture.convert("RGB"))
            small.thumbnail((THUMBNAIL_PIXELS, THUMBNAIL_PIXELS))
            target = io.BytesIO()
            small.save(target, "JPEG", quality=80)
    except (OSError, ValueError, Picture.DecompressionBombError):
        raise InvalidInput("The bytes are not a picture.") from None
    return width, height, target.getvalue()
