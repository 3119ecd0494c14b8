"""Files: allowed types, stored bytes, and keys that a storage rejects."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from solotable.errors import DataError, DeclarationError, NotFound
from solotable.systems.cms import Assets, BucketStorage, FolderStorage

from .site import Site

PNG = b"\x89PNG\r\n\x1a\n" + b"0" * 100


def test_bytes_are_uploaded_after_the_registration_and_must_match_it(site: Site, tmp_path: Path) -> None:
    assets = site.acme.assets(tmp_path)
    made = site.run(assets.register(name="../../evil.png", mime="image/png", size=len(PNG)))
    assert made.upload_url is None
    with pytest.raises(NotFound, match="not uploaded"):
        site.run(assets.read(made.id))
    for data in (PNG + b"0", b"<svg onload=alert(1)>".ljust(len(PNG))):
        with pytest.raises(DataError):
            site.run(assets.upload(made.id, data))
    with pytest.raises(DataError, match="does not have"):
        site.run(assets.confirm(made.id))
    assert site.run(assets.upload(made.id, PNG)).status == "stored"
    found, data = site.run(assets.read(made.id))
    assert (found.name, data) == ("../../evil.png", PNG)
    assert [path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()] == [
        f"acme/assets/{made.id}"
    ]
    with pytest.raises(NotFound):
        site.run(site.zeta.assets(tmp_path).read(made.id))
    site.run(assets.delete(made.id))
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


@pytest.mark.parametrize(
    ("mime", "size"),
    [
        ("image/svg+xml", 10),
        ("text/html", 10),
        ("application/pdf", 10),
        ("image/png", 0),
        ("image/png", 10 * 1024 * 1024 + 1),
        ("video/mp4", 50 * 1024 * 1024 + 1),
    ],
)
def test_other_types_and_larger_sizes_are_rejected(site: Site, tmp_path: Path, mime: str, size: int) -> None:
    with pytest.raises(DataError):
        site.run(site.acme.assets(tmp_path).register(name="x", mime=mime, size=size))
    assert site.keys("ASSET#") == []


def test_a_resource_is_handed_out_when_its_bytes_are_there(site: Site, tmp_path: Path) -> None:
    resources = site.acme.resources(tmp_path)
    made = site.run(resources.register(name="Guide.pdf", mime="application/pdf", size=8))
    with pytest.raises(NotFound):
        site.run(resources.download_url(made.id))
    site.run(resources.upload(made.id, b"%PDF-1.7"))
    assert site.run(resources.download_url(made.id)) is None  # a folder has no URLs: read() it


@pytest.mark.parametrize(
    "key", ["", "..", "a/../b", "/etc/passwd", "a//b", "a/.hidden", "a\\b", "a/b\x00", "a/" + "x" * 200]
)
def test_a_folder_rejects_keys_that_lead_out_of_it(tmp_path: Path, key: str) -> None:
    storage = FolderStorage(tmp_path / "files")
    for attempt in (lambda: storage.get(key), lambda: storage.put(key, b"x", mime="text/plain")):
        with pytest.raises(DataError):
            asyncio.run(attempt())
    assert not list(tmp_path.iterdir())


def test_a_folder_does_not_follow_links_out_of_itself(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_bytes(b"secret")
    files = tmp_path / "files"
    files.mkdir()
    (files / "acme").symlink_to(outside)
    (files / "link").symlink_to(outside / "secret")
    storage = FolderStorage(files)
    for key in ("acme/secret", "link"):
        with pytest.raises(DataError, match="leads out"):
            asyncio.run(storage.get(key))


def test_a_bucket_signs_urls_for_exactly_the_registered_file(site: Site) -> None:
    boto3 = pytest.importorskip("boto3")
    config = pytest.importorskip("botocore.config").Config
    place = {"endpoint_url": "http://127.0.0.1:9", "region_name": "eu-west-1"}
    keys = {"aws_access_key_id": "k", "aws_secret_access_key": "s"}
    older: Any = boto3.client("s3", **place, **keys, config=config(signature_version="s3"))
    with pytest.raises(DeclarationError, match="s3v4"):
        BucketStorage(older, "bucket")
    older.close()
    client: Any = boto3.client("s3", **place, **keys, config=config(signature_version="s3v4"))
    storage = BucketStorage(client, "bucket", prefix="cms/")
    made = site.run(Assets(site.acme.store, storage).register(name="a.png", mime="image/png", size=108))
    assert made.upload_url is not None
    assert f"/bucket/cms/acme/assets/{made.id}?" in made.upload_url
    assert "content-length" in made.upload_url.lower()
    down = storage.download_url("acme/assets/x", name='a"\r\nb.png', seconds=300)
    assert down is not None
    assert "attachment" in down
    assert "%0D" not in down
    client.close()
