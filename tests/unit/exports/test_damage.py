"""A damaged export is rejected with its file; no wrong item is ever returned."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from solotable._export_files.reader import LONGEST_LINE
from solotable._values import Item
from solotable.errors import DamagedExport, SolotableError
from solotable.exports import FolderLocation, export_table, import_export, open_export

from .tables import all_items, exported, order, put, shop


def _read(folder: Path) -> list[Item]:
    return [item for _, item in open_export(FolderLocation(folder)).items()]


def test_every_flipped_byte_is_found(tmp_path: Path) -> None:
    engine = shop()
    put(engine, order(1), order(2))
    folder = exported(engine, tmp_path)
    right = _read(folder)
    for file in sorted(folder.rglob("*")):
        if file.is_dir() or file.name in ("_started", "solotable-table.json"):
            continue
        content = file.read_bytes()
        for at in range(len(content)):
            file.write_bytes(content[:at] + bytes([content[at] ^ 0x04]) + content[at + 1 :])
            with pytest.raises(DamagedExport):
                _read(folder)
        for length in {0, 1, len(content) // 2, len(content) - 1}:
            file.write_bytes(content[:length])
            with pytest.raises(DamagedExport):
                _read(folder)
        file.write_bytes(content)
    assert _read(folder) == right


def _rewrite(folder: Path, name: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the first line of a manifest, and its checksum with it."""
    file = folder / f"{name}.json"
    first, *rest = file.read_text().splitlines()
    members = json.loads(first)
    change(members)
    content = "\n".join([json.dumps(members), *rest]).encode()
    file.write_bytes(content)
    md5 = hashlib.md5(content).digest()  # noqa: S324 - AWS's format
    (folder / f"{name}.checksum").write_bytes(base64.b64encode(md5))


def _replace_data(folder: Path, packed: bytes, items: int = 1) -> None:
    """Replace the only data file, with its MD5 and count in the manifests."""
    (data,) = (folder / "data").iterdir()
    data.write_bytes(packed)
    md5 = base64.b64encode(hashlib.md5(packed).digest()).decode()  # noqa: S324 - AWS's format
    _rewrite(folder, "manifest-files", lambda line: line.update(md5Checksum=md5, itemCount=items))
    _rewrite(folder, "manifest-summary", lambda line: line.update(itemCount=items))


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b"[]\n", "a line is a JSON object"),
        (b"{\n", "a line is JSON"),
        (b'{"Item":[]}\n', 'a line is {"Item": {...}}'),
        (b'{"Item":{},"More":1}\n', 'a line is {"Item": {...}}'),
        (b'{"Item":' + b"[" * 2_000 + b"}\n", "a line is JSON"),
        (b"\xff\n", "a line is JSON"),
    ],
)
def test_a_line_that_is_not_an_item_is_named(tmp_path: Path, line: bytes, says: str) -> None:
    folder = exported(shop(), tmp_path)
    _replace_data(folder, gzip.compress(line))
    with pytest.raises(DamagedExport) as raised:
        _read(folder)
    assert says in str(raised.value)
    assert raised.value.line == 1
    assert raised.value.file.endswith(".json.gz")


def test_more_or_fewer_lines_than_the_manifest_says_are_rejected(tmp_path: Path) -> None:
    engine = shop()
    put(engine, order(1), order(2))
    folder = exported(engine, tmp_path)
    packed = next((folder / "data").iterdir()).read_bytes()
    _replace_data(folder, packed, items=1)
    with pytest.raises(DamagedExport, match="line 2: expected that the manifest says 1 items"):
        _read(folder)
    _replace_data(folder, packed, items=3)
    with pytest.raises(DamagedExport, match="has 2 items; the manifest says 3"):
        _read(folder)


def test_a_gzip_bomb_takes_little_memory(tmp_path: Path) -> None:
    folder = exported(shop(), tmp_path)
    _replace_data(folder, gzip.compress(b" " * (LONGEST_LINE + 10_000), 1))
    with pytest.raises(DamagedExport, match="a line has at most"):
        _read(folder)


def test_a_truncated_gzip_file_is_named_with_its_line(tmp_path: Path) -> None:
    folder = exported(shop(), tmp_path)
    _replace_data(folder, gzip.compress(b'{"Item":{}}\n')[:-6])
    with pytest.raises(DamagedExport, match=r"line \d cannot be unpacked"):
        _read(folder)


def test_a_newer_version_is_rejected(tmp_path: Path) -> None:
    folder = exported(shop(), tmp_path)
    _rewrite(folder, "manifest-summary", lambda line: line.update(version="2030-01-01"))
    with pytest.raises(DamagedExport, match="version is '2030-01-01'; expected 2020-06-30 or 2023-08-01"):
        _read(folder)


def test_a_data_file_elsewhere_is_not_read(tmp_path: Path) -> None:
    """A key in the manifest is used for its file name alone."""
    folder = exported(shop(), tmp_path)
    _rewrite(folder, "manifest-files", lambda line: line.update(dataFileS3Key="../../../etc/passwd"))
    with pytest.raises(DamagedExport, match=r"expected the key of a \.json\.gz file"):
        _read(folder)


def test_nothing_is_written_from_an_export_with_one_damaged_file(tmp_path: Path) -> None:
    source, target = shop(), shop()
    put(source, *(order(number, note={"S": "x" * 50}) for number in range(400)))
    folder = exported(source, tmp_path, file_bytes=5_000)
    last = max((folder / "data").iterdir())
    content = last.read_bytes()
    last.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with pytest.raises(DamagedExport, match="does not match its MD5"):
        import_export(target, "Shop", open_export(FolderLocation(folder)))
    assert all_items(target) == []


def test_two_items_with_one_key_are_rejected_unless_they_are_allowed(tmp_path: Path) -> None:
    target = shop()
    folder = exported(shop(), tmp_path)
    lines = [json.dumps({"Item": order(1, note={"S": note})}) for note in ("a", "b")]
    _replace_data(folder, gzip.compress("\n".join(lines).encode()), items=2)
    export = open_export(FolderLocation(folder))
    with pytest.raises(DamagedExport, match=r"line 2: the item has the key of data/.*, line 1"):
        import_export(target, "Shop", export)
    assert all_items(target) == []
    report = import_export(target, "Shop", export, allow_duplicates=True, on_conflict="replace")
    assert report.written == 2


def test_an_item_that_dynamodb_rejects_is_reported_and_the_others_are_imported(tmp_path: Path) -> None:
    target = shop()
    folder = exported(shop(), tmp_path)
    items: list[Any] = [order(1), {**order(2), "bad": {"N": "one"}}, order(3)]
    _replace_data(
        folder, gzip.compress("\n".join(json.dumps({"Item": each}) for each in items).encode()), items=3
    )
    report = import_export(target, "Shop", open_export(FolderLocation(folder)))
    assert (report.written, report.failed) == (2, 1)
    assert report.problems[0].line == 2
    assert "cannot be converted to a numeric value" in report.problems[0].reason


def test_a_full_disk_leaves_no_export_that_looks_finished(tmp_path: Path) -> None:
    class FullDisk(FolderLocation):
        def create(self, name: str, **options: Any) -> Any:
            if "/data/" in name:
                raise OSError(28, "No space left on device")
            return super().create(name, **options)

    engine = shop()
    put(engine, order(1))
    with pytest.raises(OSError, match="No space left"):
        export_table(engine, "Shop", FullDisk(tmp_path))
    with pytest.raises(SolotableError, match="no finished export"):
        open_export(FolderLocation(tmp_path))
