"""The manifests of an export in AWS's format: a summary, and one line for each data file.

Rendering gives AWS's members in AWS's order. Parsing rejects what an export of AWS never has, with the name
of the file and the member.
"""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal

from solotable._protocol.json_codec import dumps, loads
from solotable.errors import DamagedExport

ExportType = Literal["FULL_EXPORT", "INCREMENTAL_EXPORT"]
OutputView = Literal["NEW_IMAGE", "NEW_AND_OLD_IMAGES"]

SUMMARY: Final = "manifest-summary.json"
SUMMARY_CHECKSUM: Final = "manifest-summary.checksum"
FILES: Final = "manifest-files.json"
FILES_CHECKSUM: Final = "manifest-files.checksum"
STARTED: Final = "_started"
#: The folder in which AWS puts every export.
ROOT: Final = "AWSDynamoDB"
EXPORT_ID: Final = re.compile(r"[0-9]{14}-[0-9a-f]{8}")
#: AWS's versions of the summary, by type of export.
VERSIONS: Final[Mapping[ExportType, str]] = {"FULL_EXPORT": "2020-06-30", "INCREMENTAL_EXPORT": "2023-08-01"}
_DATA_FILE = re.compile(r"[A-Za-z0-9_-]{1,128}\.json\.gz")


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestSummary:
    """The content of `manifest-summary.json`."""

    export_arn: str
    table_arn: str
    table_id: str
    start_time: datetime
    end_time: datetime
    manifest_files_key: str
    item_count: int
    billed_size_bytes: int
    bucket: str = ""
    prefix: str | None = None
    type: ExportType = "FULL_EXPORT"
    #: The moment of a full export.
    export_time: datetime | None = None
    #: The period of an incremental export.
    from_time: datetime | None = None
    to_time: datetime | None = None
    view: OutputView | None = None

    @property
    def table_name(self) -> str:
        """The name of the exported table."""
        return self.table_arn.rpartition(":table/")[2].partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class DataFile:
    """One line of `manifest-files.json`: a data file, its items and its MD5."""

    item_count: int
    md5: bytes
    key: str
    etag: str = ""

    @property
    def name(self) -> str:
        """The file's name, without the folders of the key."""
        return self.key.rpartition("/")[2]


def new_export_id(now: datetime) -> str:
    """Return an id as AWS makes them: the milliseconds of the start, and a random part.

    >>> new_export_id(datetime(2026, 11, 17, tzinfo=UTC)).partition("-")[0]
    '01794873600000'
    """
    return f"{int(now.timestamp() * 1000):014d}-{secrets.token_hex(4)}"


def checksum(content: bytes) -> bytes:
    """Return the content of a checksum file: the MD5 in base64."""
    return base64.b64encode(_md5(content))


def check_checksum(content: bytes, found: bytes, file: str) -> None:
    """Raise DamagedExport if a file does not match its checksum file."""
    text = found.strip()
    if text not in (base64.b64encode(_md5(content)), _md5(content).hex().encode()):
        raise DamagedExport(f"{file} does not match its checksum file.", file=file)


def render_summary(summary: ManifestSummary) -> bytes:
    """Return `manifest-summary.json`."""
    is_full = summary.type == "FULL_EXPORT"
    times = (
        {"exportTime": _render_time(summary.export_time)}
        if is_full
        else {
            "exportFromTime": _render_time(summary.from_time),
            "exportToTime": _render_time(summary.to_time),
        }
    )
    members = {
        "version": VERSIONS[summary.type],
        "exportArn": summary.export_arn,
        "startTime": _render_time(summary.start_time),
        "endTime": _render_time(summary.end_time),
        "tableArn": summary.table_arn,
        "tableId": summary.table_id,
        **times,
        "s3Bucket": summary.bucket,
        "s3Prefix": summary.prefix,
        "s3SseAlgorithm": "AES256",
        "s3SseKmsKeyId": None,
        "manifestFilesS3Key": summary.manifest_files_key,
        "billedSizeBytes": summary.billed_size_bytes,
        "itemCount": summary.item_count,
        "outputFormat": "DYNAMODB_JSON",
    }
    if not is_full:
        members |= {"outputView": summary.view, "exportType": summary.type}
    return dumps(members)


def parse_summary(content: bytes) -> ManifestSummary:
    """Return the summary of an export that AWS or solotable made, or raise DamagedExport."""
    members = _Members(_parse_object(content, SUMMARY, None), SUMMARY, None)
    version = members.text("version")
    kinds: list[ExportType] = [kind for kind, known in VERSIONS.items() if known == version]
    if not kinds:
        known = " or ".join(VERSIONS.values())
        raise members.wrong("version", f"{known}; a newer release may read it")
    type_ = kinds[0]
    if members.text("outputFormat") != "DYNAMODB_JSON":
        raise members.wrong("outputFormat", "DYNAMODB_JSON; export the table in this format")
    view: Any = members.text("outputView") if type_ == "INCREMENTAL_EXPORT" else None
    if view not in (None, "NEW_IMAGE", "NEW_AND_OLD_IMAGES"):
        raise members.wrong("outputView", "NEW_IMAGE or NEW_AND_OLD_IMAGES")
    is_full = type_ == "FULL_EXPORT"
    return ManifestSummary(
        export_arn=members.text("exportArn"),
        table_arn=members.text("tableArn"),
        table_id=members.text("tableId"),
        start_time=members.time("startTime"),
        end_time=members.time("endTime"),
        manifest_files_key=members.text("manifestFilesS3Key"),
        item_count=members.count("itemCount"),
        billed_size_bytes=members.count("billedSizeBytes"),
        bucket=members.text("s3Bucket"),
        prefix=members.optional_text("s3Prefix"),
        type=type_,
        export_time=members.time("exportTime") if is_full else None,
        from_time=None if is_full else members.time("exportFromTime"),
        to_time=None if is_full else members.time("exportToTime"),
        view=view,
    )


def render_files(files: list[DataFile]) -> bytes:
    """Return `manifest-files.json`: one line for each data file."""
    return b"".join(
        dumps(
            {
                "itemCount": each.item_count,
                "md5Checksum": base64.b64encode(each.md5).decode(),
                "etag": each.etag,
                "dataFileS3Key": each.key,
            }
        )
        + b"\n"
        for each in files
    )


def parse_files(content: bytes) -> list[DataFile]:
    """Return the data files of an export, or raise DamagedExport."""
    files: list[DataFile] = []
    names: set[str] = set()
    for number, line in enumerate(content.splitlines(), 1):
        if not line.strip():
            continue
        members = _Members(_parse_object(line, FILES, number), FILES, number)
        file = DataFile(
            item_count=members.count("itemCount"),
            md5=members.md5("md5Checksum"),
            key=members.text("dataFileS3Key"),
            etag=members.optional_text("etag") or "",
        )
        # Only the name is used, below the export's own folder, so that a key cannot lead elsewhere.
        if _DATA_FILE.fullmatch(file.name) is None:
            raise members.wrong("dataFileS3Key", "the key of a .json.gz file")
        if file.name in names:
            raise members.wrong("dataFileS3Key", "a file that no other line has")
        names.add(file.name)
        files.append(file)
    return files


def etag_of(md5: bytes) -> str:
    """Return the ETag of an object that was uploaded in one part, as AWS uploads data files."""
    return f"{_md5(md5).hex()}-1"


class _Members:
    """The members of a manifest's object, checked one at a time."""

    def __init__(self, members: dict[str, Any], file: str, line: int | None) -> None:
        self._members = members
        self._file = file
        self._line = line

    def wrong(self, name: str, expected: str) -> DamagedExport:
        """Return the error of a member."""
        at = "" if self._line is None else f", line {self._line}"
        found = repr(self._members.get(name))
        return DamagedExport(
            f"{self._file}{at}: {name} is {found[:100]}; expected {expected}.",
            file=self._file,
            line=self._line,
        )

    def text(self, name: str) -> str:
        found = self._members.get(name)
        if not isinstance(found, str):
            raise self.wrong(name, "a string")
        return found

    def optional_text(self, name: str) -> str | None:
        return None if self._members.get(name) is None else self.text(name)

    def count(self, name: str) -> int:
        found = self._members.get(name)
        if type(found) is not int or found < 0:
            raise self.wrong(name, "a whole number")
        return found

    def time(self, name: str) -> datetime:
        try:
            found = datetime.fromisoformat(self.text(name))
        except ValueError:
            raise self.wrong(name, "a time such as 2026-11-17T09:30:00.000Z") from None
        if found.tzinfo is None:
            raise self.wrong(name, "a time with its zone, such as Z")
        return found

    def md5(self, name: str) -> bytes:
        try:
            found = base64.b64decode(self.text(name), validate=True)
        except ValueError:
            found = b""
        if len(found) != 16:
            raise self.wrong(name, "an MD5 in base64")
        return found


def _parse_object(content: bytes, file: str, line: int | None) -> dict[str, Any]:
    try:
        found = loads(content)
    except ValueError as error:
        at = "" if line is None else f", line {line}"
        raise DamagedExport(f"{file}{at} is not JSON: {error}.", file=file, line=line) from error
    if not isinstance(found, dict):
        at = "" if line is None else f", line {line}"
        raise DamagedExport(f"{file}{at} is not a JSON object.", file=file, line=line)
    return found


def _render_time(moment: datetime | None) -> str:
    assert moment is not None
    utc = moment.astimezone(UTC)
    return f"{utc:%Y-%m-%dT%H:%M:%S}.{utc.microsecond // 1000:03d}Z"


def _md5(content: bytes) -> bytes:
    return hashlib.md5(content, usedforsecurity=False).digest()
