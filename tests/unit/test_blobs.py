"""The storages of offloaded fields keep, touch, list and delete objects."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import deepcopy
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any

import boto3
import pytest
from botocore.config import Config
from botocore.response import StreamingBody
from botocore.stub import Stubber

from solotable import Entity, Key, Offloaded, Table
from solotable.blobs import Blob, BlobStorage, FolderStorage, MemoryStorage
from solotable.blobs.s3 import S3Storage
from solotable.errors import DataError, DeclarationError, TransportError
from solotable.jobs.collect_blobs import collect_blobs
from tests.s3_server import FaultyS3, new_bucket, s3_client
from tests.waiting import HANG_SECONDS

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
FUTURE = datetime(2200, 1, 1, tzinfo=UTC)
PAST = datetime(2000, 1, 1, tzinfo=UTC)


@pytest.fixture(params=["folder", "memory", "s3"])
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[BlobStorage]:
    if request.param == "s3":
        yield request.getfixturevalue("bucket")
    else:
        yield FolderStorage(tmp_path / "deep" / "blobs") if request.param == "folder" else MemoryStorage()


@pytest.fixture
def bucket(s3_endpoint: str) -> Iterator[S3Storage]:
    """A bucket of a real server."""
    client = s3_client(s3_endpoint)
    yield S3Storage(client, new_bucket(s3_endpoint), prefix="prod/")
    client.close()


def test_an_object_is_stored_replaced_and_deleted(storage: BlobStorage) -> None:
    assert storage.get("t/global/a") is None
    storage.put("t/global/a", b"one", None)
    storage.put("t/global/a", b"two!", "text/plain")
    assert storage.get("t/global/a") == b"two!"
    assert [(each.name, each.size) for each in storage.list("")] == [("t/global/a", 4)]
    assert storage.delete("t/global/a", unless_modified_after=FUTURE)
    assert not storage.delete("t/global/a", unless_modified_after=FUTURE)
    assert storage.get("t/global/a") is None
    assert list(storage.list("")) == []


def test_a_list_has_the_objects_of_a_prefix(storage: BlobStorage) -> None:
    assert list(storage.list("t/tenant/a/")) == []
    for name in ("t/tenant/a/1", "t/tenant/a/2", "t/tenant/ab/1", "u/global/1"):
        storage.put(name, b"", None)
    assert [each.name for each in storage.list("t/tenant/a/")] == ["t/tenant/a/1", "t/tenant/a/2"]
    assert len(list(storage.list("t/"))) == 3


def test_an_object_that_was_touched_is_not_deleted(storage: BlobStorage) -> None:
    assert not storage.touch("a", None)
    storage.put("a", b"x", None)
    assert storage.touch("a", None)
    assert not storage.delete("a", unless_modified_after=PAST)
    assert storage.get("a") == b"x"


def test_async_methods_do_the_same(storage: BlobStorage) -> None:
    async def use() -> None:
        await storage.aput("a", b"x", None)
        assert await storage.atouch("a", None)
        assert await storage.aget("a") == b"x"
        assert await storage.aget("b") is None

    asyncio.run(use())


def test_a_folder_has_the_time_of_the_last_touch(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    storage.put("a/b", b"x", None)
    os.utime(tmp_path / "a" / "b", (1_000_000_000, 1_000_000_000))
    (found,) = storage.list("a/")
    assert found.modified == datetime(2001, 9, 9, 1, 46, 40, tzinfo=UTC)
    storage.touch("a/b", None)
    (found,) = storage.list("a/")
    assert found.modified > datetime(2020, 1, 1, tzinfo=UTC)


def test_a_touch_during_a_delete_keeps_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = FolderStorage(tmp_path)
    storage.put("a", b"x", None)
    os.utime(tmp_path / "a", (1_000_000_000, 1_000_000_000))
    rename = Path.replace

    def touched(path: Path, target: Path) -> Path:
        os.utime(path)  # A writer between the first check and the rename.
        return rename(path, target)

    monkeypatch.setattr(Path, "replace", touched)
    assert not storage.delete("a", unless_modified_after=datetime(2010, 1, 1, tzinfo=UTC))
    assert storage.get("a") == b"x"


@pytest.mark.parametrize("name", ["", "/etc/passwd", "../a", "a/../b", "a//b", "a/", ".a", "a\\b", "a\0b"])
def test_a_folder_rejects_names_outside_of_it(tmp_path: Path, name: str) -> None:
    with pytest.raises(DataError, match="An object's name has letters"):
        FolderStorage(tmp_path).put(name, b"", None)


def test_a_killed_writer_leaves_no_part_of_an_object(tmp_path: Path) -> None:
    program = (
        "import os, sys\n"
        "from solotable.blobs import FolderStorage\n"
        "os.fsync = lambda _: os.kill(os.getpid(), 9)\n"
        "FolderStorage(sys.argv[1]).put('a', b'x' * 1_000_000, None)\n"
    )
    killed = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(tmp_path)], check=False, timeout=HANG_SECONDS
    )
    assert killed.returncode == -9
    storage = FolderStorage(tmp_path)
    assert storage.get("a") is None
    assert list(storage.list("")) == []
    storage.put("a", b"y", None)
    assert storage.get("a") == b"y"


OLD = 1_000_000_000
BETWEEN = datetime(2010, 1, 1, tzinfo=UTC)


def _killed_in(folder: Path, method: str, program: str = "") -> None:
    """Store an old object, and kill a process that deletes it, at its call of a method of Path."""
    FolderStorage(folder).put("t/a", b"x", None)
    os.utime(folder / "t" / "a", (OLD, OLD))
    program = (
        "import os, sys\n"
        "from datetime import UTC, datetime\n"
        "from pathlib import Path\n"
        "from solotable.blobs import FolderStorage\n"
        f"{program}\n"
        f"Path.{method} = lambda *_: os.kill(os.getpid(), 9)\n"
        "FolderStorage(sys.argv[1]).delete('t/a', unless_modified_after=datetime(2010, 1, 1, tzinfo=UTC))\n"
    )
    killed = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program, str(folder)], check=False, timeout=HANG_SECONDS
    )
    assert killed.returncode == -9


def test_a_killed_deletion_is_completed_by_the_next_one(tmp_path: Path) -> None:
    _killed_in(tmp_path, "unlink")
    storage = FolderStorage(tmp_path)
    assert storage.get("t/a") == b"x"
    assert [(each.name, each.size) for each in storage.list("t/")] == [("t/a", 1)]
    assert storage.delete("t/a", unless_modified_after=BETWEEN)
    assert storage.get("t/a") is None
    assert list((tmp_path / "t").iterdir()) == []


def test_an_object_that_is_touched_after_a_killed_deletion_is_kept(tmp_path: Path) -> None:
    _killed_in(tmp_path, "unlink")
    storage = FolderStorage(tmp_path)
    assert storage.touch("t/a", None)
    assert not storage.delete("t/a", unless_modified_after=BETWEEN)
    assert storage.get("t/a") == b"x"
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["a"]


def test_an_object_that_is_touched_during_a_killed_deletion_is_kept(tmp_path: Path) -> None:
    # A writer touches the object after the first check; the process dies before it renames the file back.
    touching = (
        "rename = Path.replace\n"
        "def touched(path, target):\n"
        "    if path.name == 'a':\n"
        "        os.utime(path)\n"
        "        return rename(path, target)\n"
        "    os.kill(os.getpid(), 9)\n"
        "Path.replace = touched"
    )
    _killed_in(tmp_path, "unlink", touching)
    storage = FolderStorage(tmp_path)
    assert storage.get("t/a") == b"x"
    assert not storage.delete("t/a", unless_modified_after=BETWEEN)
    assert [(each.name, each.size) for each in storage.list("t/")] == [("t/a", 1)]
    storage.put("t/a", b"x", None)
    assert [path.name for path in (tmp_path / "t").iterdir()] == ["a"]


def test_of_two_deletions_at_once_one_leaves_the_object_to_the_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    storage = FolderStorage(tmp_path)
    storage.put("t/a", b"x", None)
    os.utime(tmp_path / "t" / "a", (OLD, OLD))
    unlink = Path.unlink
    second = []

    def stopped(path: Path, missing_ok: bool = False) -> None:
        # The first deletion has checked the file; a second one comes, then a writer.
        monkeypatch.setattr(Path, "unlink", unlink)
        second.append(storage.delete("t/a", unless_modified_after=BETWEEN))
        assert storage.touch("t/a", None)
        unlink(path, missing_ok)

    monkeypatch.setattr(Path, "unlink", stopped)
    assert not storage.delete("t/a", unless_modified_after=BETWEEN)
    assert second == [False]
    assert storage.get("t/a") == b"x"


def test_files_of_killed_writers_are_removed_after_a_week(tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    storage.put("a", b"x", None)
    for name in (".young-1", ".old-1"):
        (tmp_path / name).write_bytes(b"part")
    os.utime(tmp_path / ".old-1", (OLD, OLD))
    assert [each.name for each in storage.list("")] == ["a"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [".young-1", "a"]


def test_a_blob_is_a_value() -> None:
    blob = Blob(bytearray(b"abc"), media_type="text/plain")
    assert blob == Blob(b"abc", media_type="text/plain")
    assert hash(blob) == hash(Blob(b"abc", media_type="text/plain"))
    assert blob != Blob(b"abc")
    assert blob != b"abc"
    assert deepcopy(blob) is blob
    assert "abc" not in repr(blob)
    assert (blob.size, blob.is_loaded, blob.is_offloaded) == (3, True, False)
    with pytest.raises(DataError, match=r"use Blob.of\(\) for text"):
        Blob("text")  # type: ignore[arg-type]  # what a caller may try


@pytest.fixture
def s3() -> Any:
    return boto3.client(
        "s3",
        region_name="eu-central-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=Config(retries={"total_max_attempts": 1}),
    )


@pytest.fixture
def stub(s3: Any) -> Iterator[Stubber]:
    with Stubber(s3) as stubber:
        yield stubber
        stubber.assert_no_pending_responses()


def test_s3_sends_the_requests_of_each_method(s3: Any, stub: Stubber) -> None:
    storage = S3Storage(s3, "bucket", prefix="prod/", put_options={"ServerSideEncryption": "AES256"})
    at = {"Bucket": "bucket", "Key": "prod/t/a"}
    stored = {**at, "ContentType": "image/png", "ServerSideEncryption": "AES256"}
    stub.add_response("put_object", {}, {**stored, "Body": b"x"})
    storage.put("t/a", b"x", "image/png")
    source = {"Bucket": "bucket", "Key": "prod/t/a"}
    stub.add_response("copy_object", {}, {**stored, "CopySource": source, "MetadataDirective": "REPLACE"})
    assert storage.touch("t/a", "image/png")
    stub.add_response("get_object", {"Body": StreamingBody(io.BytesIO(b"x"), 1)}, at)
    assert storage.get("t/a") == b"x"
    stub.add_response("head_object", {"LastModified": NOW}, at)
    stub.add_response("delete_object", {}, at)
    assert storage.delete("t/a", unless_modified_after=NOW + timedelta(seconds=1))


def test_s3_does_not_delete_a_touched_object(s3: Any, stub: Stubber) -> None:
    stub.add_response("head_object", {"LastModified": NOW}, {"Bucket": "bucket", "Key": "a"})
    storage = S3Storage(s3, "bucket")
    assert not storage.delete("a", unless_modified_after=NOW - timedelta(seconds=1))


def test_s3_reports_missing_objects(s3: Any, stub: Stubber) -> None:
    storage = S3Storage(s3, "bucket")
    stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
    assert storage.get("a") is None
    stub.add_client_error("copy_object", "NoSuchKey", http_status_code=404)
    assert not storage.touch("a", None)
    stub.add_client_error("head_object", "404", http_status_code=404)
    assert not storage.delete("a", unless_modified_after=NOW)


def test_s3_lists_all_pages(s3: Any, stub: Stubber) -> None:
    def page(name: str, **more: Any) -> dict[str, Any]:
        return {"Contents": [{"Key": f"prod/t/{name}", "Size": 1, "LastModified": NOW}], **more}

    asked = {"Bucket": "bucket", "Prefix": "prod/t/"}
    stub.add_response("list_objects_v2", page("a", IsTruncated=True, NextContinuationToken="n"), asked)
    stub.add_response("list_objects_v2", page("b", IsTruncated=False), {**asked, "ContinuationToken": "n"})
    found = list(S3Storage(s3, "bucket", prefix="prod/").list("t/"))
    assert [each.name for each in found] == ["t/a", "t/b"]
    assert {each.modified.replace(microsecond=0) for each in found} == {NOW}


def test_s3_errors_name_the_object(s3: Any, stub: Stubber) -> None:
    stub.add_client_error("put_object", "AccessDenied", "no", http_status_code=403)
    with pytest.raises(
        TransportError, match=r"S3 PutObject of 'a' in bucket 'bucket' failed: .*AccessDenied"
    ):
        S3Storage(s3, "bucket").put("a", b"", None)
    stub.add_client_error("put_object", "NoSuchBucket", "no", http_status_code=404)
    with pytest.raises(TransportError, match="NoSuchBucket"):
        S3Storage(s3, "bucket").put("a", b"", None)


def test_s3_rejects_a_prefix_without_a_slash(s3: Any) -> None:
    with pytest.raises(DeclarationError, match="must end"):
        S3Storage(s3, "bucket", prefix="prod")


@pytest.fixture
def faulty(s3_endpoint: str) -> Iterator[FaultyS3]:
    """A proxy before the server, whose requests fail as a test wants."""
    proxy = FaultyS3(s3_endpoint)
    yield proxy
    proxy.close()


@contextmanager
def bucket_behind(proxy: FaultyS3, *, attempts: int = 1) -> Iterator[S3Storage]:
    client = s3_client(proxy.endpoint, attempts=attempts)
    try:
        yield S3Storage(client, new_bucket(proxy.endpoint))
    finally:
        client.close()


def test_s3_lists_more_objects_than_a_page_has(bucket: S3Storage) -> None:
    table = Table("Docs")

    class Doc(Entity, table=table):
        key = Key("DOC#{doc_id}", "DOC")
        doc_id: str
        body: Annotated[Blob, Offloaded(bucket, inline_bytes=10)]

    digests = [sha256(str(number).encode()).hexdigest() for number in range(1_001)]
    names = sorted(f"%44ocs/global/{digest}" for digest in digests)
    with ThreadPoolExecutor(4) as threads, table.open("sqlite://", clock=FUTURE.timestamp) as db:
        list(threads.map(lambda name: bucket.put(name, b"x", None), names))
        db.put(Doc(doc_id="1", body=Blob(b"x" * 11)))
        found = [each.name for each in bucket.list("%44ocs/")]
        assert (len(found), found) == (1_002, sorted(found))
        assert set(names) < set(found)
        report = collect_blobs(db.admin(), budget=10, dry_run=True)
        assert (report.objects, report.unreferenced, report.unreferenced_bytes) == (1_002, 1_001, 1_001)


def test_s3_requests_are_repeated_after_errors_of_the_server(faulty: FaultyS3) -> None:
    with bucket_behind(faulty, attempts=3) as storage:
        faulty.faults.extend(["503", "500"])
        storage.put("a", b"x", "text/plain")
        faulty.faults.extend(["reset", "503"])
        assert storage.get("a") == b"x"
        faulty.faults.append("503")
        assert storage.touch("a", None)
        faulty.faults.append("reset")
        assert [each.name for each in storage.list("")] == ["a"]
        faulty.faults.extend(["500", "pass", "503"])
        assert storage.delete("a", unless_modified_after=FUTURE)
        assert storage.get("a") is None


def test_s3_gives_up_after_the_attempts_of_the_client(faulty: FaultyS3) -> None:
    with bucket_behind(faulty, attempts=2) as storage:
        faulty.faults.extend(["503", "503"])
        with pytest.raises(TransportError, match=r"S3 PutObject of 'a' .* failed: .*SlowDown"):
            storage.put("a", b"x", None)
        assert storage.get("a") is None
        faulty.faults.append("403")
        with pytest.raises(TransportError, match=r"S3 ListObjectsV2 .* failed: .*AccessDenied"):
            list(storage.list(""))


def test_s3_reads_an_object_again_if_the_connection_is_lost_in_the_middle(faulty: FaultyS3) -> None:
    data = os.urandom(300_000)
    with bucket_behind(faulty) as storage:
        storage.put("a", data, None)
        faulty.faults.extend(["cut", "cut"])
        assert storage.get("a") == data
        faulty.faults.extend(["cut"] * 20)
        with pytest.raises(TransportError, match="S3 GetObject of 'a'"):
            storage.get("a")
        faulty.faults.clear()


def test_s3_takes_an_object_of_the_same_second_as_touched(s3: Any, stub: Stubber) -> None:
    # S3 has whole seconds: an object of 12:00:00 may be as late as 12:00:00.999.
    cutoff = NOW + timedelta(milliseconds=500)
    stub.add_response("head_object", {"LastModified": NOW}, {"Bucket": "bucket", "Key": "a"})
    assert not S3Storage(s3, "bucket").delete("a", unless_modified_after=cutoff)
