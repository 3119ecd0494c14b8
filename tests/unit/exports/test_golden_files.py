"""Exports as AWS's documentation describes them, written here by hand, and ours byte for byte.

The data is invented. Nothing here uses solotable's writer to make what the reader reads.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from solotable.errors import DamagedExport
from solotable.exports import FolderLocation, import_export, list_exports, open_export
from tests.unit.engines.sqlite.transfers.shop import open_shop

TABLE = "arn:aws:dynamodb:eu-west-1:111122223333:table/Orders"
FULL, FIRST, SECOND = "01792000000000-0a1b2c3d", "01792000900000-1b2c3d4e", "01792001800000-2c3d4e5f"


def md5(content: bytes) -> str:
    return base64.b64encode(hashlib.md5(content, usedforsecurity=False).digest()).decode()


def summary(export: str, items: int, **times: Any) -> dict[str, Any]:
    is_full = "exportTime" in times
    members: dict[str, Any] = {
        "version": "2020-06-30" if is_full else "2023-08-01",
        "exportArn": f"{TABLE}/export/{export}",
        "startTime": "2026-10-14T18:40:00.000Z",
        "endTime": "2026-10-14T18:52:13.521Z",
        "tableArn": TABLE,
        "tableId": "0d9a2f0e-7c1b-4f7b-9a58-5d0a3f5f1c11",
        **times,
        "s3Bucket": "vault",
        "s3Prefix": "daily",
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": f"daily/AWSDynamoDB/{export}/manifest-files.json",
        "billedSizeBytes": 0,
        "itemCount": items,
        "outputFormat": "DYNAMODB_JSON",
    }
    if not is_full:
        members |= {"outputView": "NEW_AND_OLD_IMAGES", "exportType": "INCREMENTAL_EXPORT"}
    return members


def write_export(
    root: Path, export: str, described: dict[str, Any], files: dict[str, tuple[int, bytes]]
) -> None:
    folder = root / "AWSDynamoDB" / export
    data = folder / "data" if "exportTime" in described else root / "AWSDynamoDB" / "data"
    data.mkdir(parents=True, exist_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "_started").touch()
    lines = []
    for name, (items, content) in files.items():
        (data / name).write_bytes(content)
        key = f"daily/{(data / name).relative_to(root).as_posix()}"
        line = {"itemCount": items, "md5Checksum": md5(content), "etag": "x-1", "dataFileS3Key": key}
        lines.append(json.dumps(line, separators=(",", ":")) + "\n")
    for name, text in (("manifest-files", "".join(lines)), ("manifest-summary", json.dumps(described))):
        (folder / f"{name}.json").write_text(text)
        (folder / f"{name}.checksum").write_text(md5(text.encode()))


@pytest.fixture
def bucket(tmp_path: Path) -> Path:
    """A full export of two partitions, one of them empty, and two incremental ones that share their data."""
    root = tmp_path / "daily"
    item = b'{"Item":{"id":{"S":"a"},"n":{"N":"1"},"tags":{"SS":["x","y"]},"raw":{"B":"AAE="}}}\n'
    write_export(
        root,
        FULL,
        summary(FULL, 1, exportTime="2026-10-14T18:40:00.000Z"),
        {
            "7k2mq4xw5e3zvhn6b4rjd2fota.json.gz": (1, gzip.compress(item)),
            "3qhzv6n5y4b2kdlwx7aofjcmte.json.gz": (0, b""),
            "kx5jrb3aah6zlmowq2vyn4tdce.json.gz": (0, gzip.compress(b"")),
        },
    )
    changed = (
        b'{"Metadata":{"WriteTimestampMicros":{"N":"1792000100000000"}},"Keys":{"id":{"S":"a"}},'
        b'"OldImage":{"id":{"S":"a"},"n":{"N":"1"}},"NewImage":{"id":{"S":"a"},"n":{"N":"2"}}}\n'
        b'{"Metadata":{"WriteTimestampMicros":{"N":"1792000200000000"}},"Keys":{"id":{"S":"b"}},'
        b'"NewImage":{"id":{"S":"b"},"n":{"N":"1"}}}\n'
    )
    removed = (
        b'{"Metadata":{"WriteTimestampMicros":{"N":"1792001000000000"}},"Keys":{"id":{"S":"b"}},'
        b'"OldImage":{"id":{"S":"b"},"n":{"N":"1"}}}\n'
    )
    for export, name, count, content, start in (
        (FIRST, "aaaaaaaaaaaaaaaaaaaaaaaaaa.json.gz", 2, changed, "2026-10-14T18:40:00.000Z"),
        (SECOND, "bbbbbbbbbbbbbbbbbbbbbbbbbb.json.gz", 1, removed, "2026-10-14T18:55:00.000Z"),
    ):
        times = {"exportFromTime": start, "exportToTime": "2026-10-14T19:10:00.000Z"}
        write_export(root, export, summary(export, count, **times), {name: (count, gzip.compress(content))})
    return root


def test_a_chain_of_exports_is_read_and_applied(bucket: Path, tmp_path: Path) -> None:
    location = FolderLocation(bucket)
    assert list_exports(location) == [f"AWSDynamoDB/{each}" for each in (FULL, FIRST, SECOND)]
    with open_shop(tmp_path) as shop:
        states = []
        for export in (FULL, FIRST, SECOND):
            found = open_export(location, f"AWSDynamoDB/{export}")
            assert found.summary.prefix == "daily"
            report = import_export(shop.engine, "Shop", found)
            assert report.failed == 0
            states.append({name: item["n"]["N"] for name, item in shop.items("Shop").items()})
        assert states == [{"a": "1"}, {"a": "2", "b": "1"}, {"a": "2"}]


def test_a_changed_byte_of_a_shared_data_file_is_found(bucket: Path) -> None:
    path = bucket / "AWSDynamoDB" / "data" / "bbbbbbbbbbbbbbbbbbbbbbbbbb.json.gz"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    open_export(FolderLocation(bucket), f"AWSDynamoDB/{FIRST}").verify()
    with pytest.raises(DamagedExport, match="bbbbbbbbbbbbbbbbbbbbbbbbbb"):
        open_export(FolderLocation(bucket), f"AWSDynamoDB/{SECOND}").verify()


def test_our_incremental_export_is_the_documented_bytes(tmp_path: Path) -> None:
    with open_shop(tmp_path) as shop:
        shop.put("a", n=1)
        shop.put("gone", n=1)
        start = int(shop.now) + 1
        shop.put("a", n=2)
        shop.remove("gone")
        shop.now = start + 900
        described = shop.export(
            S3Prefix="daily",
            ExportType="INCREMENTAL_EXPORT",
            IncrementalExportSpecification={"ExportFromTime": start, "ExportToTime": start + 900},
        )
        table_id = described["TableId"]
    folder = tmp_path / "vault" / described["ExportManifest"].rpartition("/")[0]
    (data,) = (tmp_path / "vault" / "daily" / "AWSDynamoDB" / "data").iterdir()
    lines = sorted(gzip.decompress(data.read_bytes()).splitlines(keepends=True))
    assert lines == [
        b'{"Metadata":{"WriteTimestampMicros":{"N":"1790000003000000"}},"Keys":{"id":{"S":"a"}},'
        b'"OldImage":{"id":{"S":"a"},"n":{"N":"1"}},"NewImage":{"id":{"S":"a"},"n":{"N":"2"}}}\n',
        b'{"Metadata":{"WriteTimestampMicros":{"N":"1790000004000000"}},"Keys":{"id":{"S":"gone"}},'
        b'"OldImage":{"id":{"S":"gone"},"n":{"N":"1"}}}\n',
    ]
    digest = hashlib.md5(data.read_bytes(), usedforsecurity=False).digest()
    listed = (folder / "manifest-files.json").read_bytes()
    etag = hashlib.md5(digest, usedforsecurity=False).hexdigest()
    assert (
        listed
        == (
            f'{{"itemCount":2,"md5Checksum":"{md5(data.read_bytes())}","etag":"{etag}-1",'
            f'"dataFileS3Key":"daily/AWSDynamoDB/data/{data.name}"}}\n'
        ).encode()
    )
    export = folder.name
    arn = "arn:aws:dynamodb:us-east-1:000000000000:table/Shop"
    assert (folder / "manifest-summary.json").read_text() == (
        f'{{"version":"2023-08-01","exportArn":"{arn}/export/{export}","startTime":"2026-09-21T14:28:23.000Z",'
        f'"endTime":"2026-09-21T14:28:23.000Z","tableArn":"{arn}","tableId":"{table_id}",'
        '"exportFromTime":"2026-09-21T14:13:23.000Z","exportToTime":"2026-09-21T14:28:23.000Z",'
        '"s3Bucket":"vault","s3Prefix":"daily","s3SseAlgorithm":"AES256","s3SseKmsKeyId":null,'
        f'"manifestFilesS3Key":"daily/AWSDynamoDB/{export}/manifest-files.json","billedSizeBytes":0,'
        '"itemCount":2,"outputFormat":"DYNAMODB_JSON","outputView":"NEW_AND_OLD_IMAGES",'
        '"exportType":"INCREMENTAL_EXPORT"}'
    )
    for name in ("manifest-files", "manifest-summary"):
        assert (folder / f"{name}.checksum").read_text() == md5((folder / f"{name}.json").read_bytes())
