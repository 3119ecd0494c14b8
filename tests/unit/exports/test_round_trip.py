"""What an export holds, and that an import gives it back."""

from __future__ import annotations

import base64
import errno
import gc
import gzip
import hashlib
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from solotable._protocol.requests import Scan
from solotable._values import Item
from solotable.errors import DataError
from solotable.exports import FolderLocation, export_table, import_export, list_exports, open_export
from solotable.locations import S3Location, checked, locate
from tests.s3_server import new_bucket, s3_client
from tests.unit.engines.sqlite.clocked import opened

from .tables import EVERY_TYPE, PlainEngine, all_items, exported, order, put, shop


def test_the_files_and_their_manifests_are_those_of_aws(tmp_path: Path) -> None:
    engine = shop()
    put(engine, EVERY_TYPE, order(1))
    folder = exported(engine, tmp_path)
    assert folder.parent.name == "AWSDynamoDB"
    assert sorted(each.name for each in folder.iterdir()) == [
        "_started",
        "data",
        "manifest-files.checksum",
        "manifest-files.json",
        "manifest-summary.checksum",
        "manifest-summary.json",
        "solotable-table.json",
    ]
    summary = json.loads((folder / "manifest-summary.json").read_bytes())
    assert list(summary) == [
        "version",
        "exportArn",
        "startTime",
        "endTime",
        "tableArn",
        "tableId",
        "exportTime",
        "s3Bucket",
        "s3Prefix",
        "s3SseAlgorithm",
        "s3SseKmsKeyId",
        "manifestFilesS3Key",
        "billedSizeBytes",
        "itemCount",
        "outputFormat",
    ]
    assert summary["version"] == "2020-06-30"
    assert summary["exportArn"] == f"{summary['tableArn']}/export/{folder.name}"
    assert summary["startTime"] == "2027-01-15T08:00:00.000Z"
    assert summary["itemCount"] == 2
    assert summary["outputFormat"] == "DYNAMODB_JSON"
    for name in ("manifest-summary", "manifest-files"):
        md5 = hashlib.md5((folder / f"{name}.json").read_bytes()).digest()  # noqa: S324 - AWS's format
        assert (folder / f"{name}.checksum").read_bytes() == base64.b64encode(md5)
    (line,) = (folder / "manifest-files.json").read_text().splitlines()
    file = json.loads(line)
    data = tmp_path / file["dataFileS3Key"]
    assert base64.b64decode(file["md5Checksum"]) == hashlib.md5(data.read_bytes()).digest()  # noqa: S324
    assert file["itemCount"] == 2
    lines = [json.loads(each) for each in gzip.decompress(data.read_bytes()).splitlines()]
    assert {"Item": EVERY_TYPE} in lines


def test_an_import_creates_the_table_with_its_index_and_the_same_items(tmp_path: Path) -> None:
    source, target = shop(), opened()
    put(source, EVERY_TYPE, *(order(number, owner={"S": "ada"}) for number in range(250)))
    export = open_export(FolderLocation(exported(source, tmp_path)))
    assert export.definition is not None
    target.call("CreateTable", export.definition)
    report = import_export(target, "Shop", export)
    assert (report.read, report.written, report.failed) == (251, 251, 0)
    assert sorted(map(str, all_items(target))) == sorted(map(str, all_items(source)))
    index = target.call("Scan", {"TableName": "Shop", "IndexName": "by_owner", "Select": "COUNT"})
    assert index["Count"] == 250


def test_an_export_with_many_files_has_every_item_once(tmp_path: Path) -> None:
    engine = shop()
    put(engine, *(order(number, note={"S": "x" * 100}) for number in range(200)))
    export = open_export(FolderLocation(exported(engine, tmp_path, file_bytes=2_000)))
    assert len(export.files) > 10
    numbers = [int(item["sk"]["N"]) for _, item in export.items()]
    assert sorted(numbers) == list(range(200))


def test_an_empty_table_has_an_export_with_one_empty_file(tmp_path: Path) -> None:
    export = open_export(FolderLocation(exported(shop(), tmp_path)))
    assert [each.item_count for each in export.files] == [0]
    assert list(export.items()) == []


_VALUES = st.recursive(
    st.one_of(
        st.text(max_size=8).map(lambda text: {"S": text}),
        st.decimals(-(10**20), 10**20, places=3).map(lambda number: {"N": str(number)}),
        st.binary(max_size=8).map(lambda data: {"B": base64.b64encode(data).decode()}),
        st.booleans().map(lambda yes: {"BOOL": yes}),
        st.just({"NULL": True}),
        st.sets(st.text(min_size=1, max_size=3), min_size=1).map(lambda texts: {"SS": sorted(texts)}),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda values: {"L": values}),
        st.dictionaries(st.text(min_size=1, max_size=4), inner, max_size=3).map(lambda values: {"M": values}),
    ),
    max_leaves=6,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.dictionaries(st.text(min_size=1, max_size=5), _VALUES, max_size=4), max_size=8))
def test_round_trips_are_equal_to_the_byte(tmp_path: Path, attributes: list[Item]) -> None:
    source, target = shop(), shop()
    put(source, *({**more, **order(number)} for number, more in enumerate(attributes)))
    folder = exported(source, tmp_path)
    import_export(target, "Shop", open_export(FolderLocation(folder)))
    again = exported(target, tmp_path)
    packed, repacked = (next((each / "data").iterdir()).read_bytes() for each in (folder, again))
    assert packed == repacked
    source.close()
    target.close()


def test_an_export_is_one_snapshot_while_transactions_go_on(tmp_path: Path) -> None:
    """Every transaction sets two items to one value, so a snapshot never has two values."""
    engine = shop(tmp_path / "shop.db")
    filler = {"S": "x" * 2_000}
    put(engine, *(order(number, note=filler) for number in range(500)))
    ends: list[Item] = [{"pk": {"S": side}, "sk": {"N": "0"}} for side in ("a-first", "z-last")]
    stop = threading.Event()
    written = threading.Event()

    def write() -> None:
        value = 0
        while not stop.is_set():
            value += 1
            puts = [
                {"Put": {"TableName": "Shop", "Item": {**each, "value": {"N": str(value)}}}} for each in ends
            ]
            engine.call("TransactWriteItems", {"TransactItems": puts})
            written.set()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        written.wait()
        for _ in range(10):
            export = open_export(FolderLocation(exported(engine, tmp_path / "exports")))
            values = {item["value"]["N"] for _, item in export.items() if "value" in item}
            assert len(values) == 1
    finally:
        stop.set()
        writer.join()
        engine.close()


def test_an_export_that_fails_leaves_no_cursor_behind(tmp_path: Path) -> None:
    """The disk is full after the first file; the reader of the table is closed before the engine."""

    class Full(FolderLocation):
        @contextmanager
        def create(self, name: str, **options: Any) -> Iterator[Any]:
            if name.endswith(".json.gz") and list(self.list(str(Path(name).parent))):
                raise OSError(errno.ENOSPC, "No space left on device")
            with super().create(name, **options) as file:
                yield file

    engine = shop(tmp_path / "shop.db")
    put(engine, *(order(number, note={"S": "x" * 100}) for number in range(50)))
    with pytest.raises(OSError, match="No space left") as failed:
        export_table(engine, "Shop", Full(tmp_path / "full"), file_bytes=500)
    engine.close()
    # The frames of the error keep what is open in them.
    assert failed.value.__traceback__ is not None
    del failed
    gc.collect()
    assert list_exports(FolderLocation(tmp_path / "full")) == []


def test_an_engine_without_snapshots_is_scanned_with_consistent_reads(tmp_path: Path) -> None:
    engine = shop()
    put(engine, *(order(number) for number in range(20)))
    plain = PlainEngine(engine)
    done = export_table(plain, "Shop", FolderLocation(tmp_path))
    assert not done.is_snapshot
    scans = [each for each in plain.requests if isinstance(each, Scan)]
    assert scans
    assert all(each.consistent for each in scans)
    assert done.summary.item_count == 20


def test_an_export_goes_to_s3_and_comes_back(tmp_path: Path, s3_endpoint: str) -> None:
    engine, client = shop(), s3_client(s3_endpoint)
    put(engine, EVERY_TYPE, *(order(number) for number in range(30)))
    location = S3Location(client, new_bucket(s3_endpoint), prefix="daily/")
    done = export_table(engine, "Shop", location, file_bytes=500)
    assert list_exports(location) == [done.folder]
    assert sum(1 for _ in open_export(location).items()) == 31
    client.close()


def test_an_export_without_a_summary_is_unfinished(tmp_path: Path) -> None:
    folder = exported(shop(), tmp_path)
    (folder / "manifest-summary.json").unlink()
    with pytest.raises(DataError, match=r"unfinished: it has no manifest-summary\.json"):
        open_export(FolderLocation(folder))
    with pytest.raises(DataError, match="no finished export"):
        open_export(FolderLocation(tmp_path))


def test_several_exports_have_to_be_named(tmp_path: Path) -> None:
    engine = shop()
    exported(engine, tmp_path)
    exported(engine, tmp_path)
    with pytest.raises(DataError, match=r"has 2 exports; name one: AWSDynamoDB/"):
        open_export(FolderLocation(tmp_path))


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a//b", "a/..", ".", "a\\b", "a\0b", ""])
def test_a_name_that_leaves_its_location_is_rejected(name: str) -> None:
    with pytest.raises(DataError, match="is not the name of a file"):
        checked(name)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("x")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "secret")
    with pytest.raises(DataError, match="cannot be read"):
        FolderLocation(tmp_path / "in").open("link")


def test_other_urls_are_rejected() -> None:
    with pytest.raises(DataError, match="pass a folder or s3://BUCKET/PREFIX"):
        locate("https://example.com/x")
    with pytest.raises(DataError, match="has no bucket"):
        locate("s3://")
