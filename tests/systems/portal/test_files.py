"""Files of content: presigned uploads, attaching to a Draft, downloads by status, and their removal."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import boto3
import pytest
from botocore.config import Config

from solotable._protocol.requests import TransactWriteItems
from solotable.errors import AlreadyExists, DeclarationError, NotFound, VersionConflict
from solotable.systems.errors import InvalidInput
from solotable.systems.portal.entities.content import Content
from solotable.systems.portal.entities.notifications import FileRemoval
from solotable.systems.portal.entities.subscriptions import Downloader
from solotable.systems.portal.errors import Forbidden, IllegalTransition
from solotable.systems.portal.roles import Caller
from solotable.systems.portal.services.files import MAX_FILE_BYTES, UploadTicket, sanitise
from solotable.systems.signed_folder import SignatureRejected
from solotable.systems.storage import BucketStorage
from tests.s3_server import new_bucket

from .studio import ADA, ANN, BEN, EVA, VIC, Studio

PDF = b"%PDF-1.7 an example"


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


def presign(portal: Studio, content: Content, caller: Caller = ANN, **fields: Any) -> UploadTicket:
    given = {"file_name": "Deck.pdf", "content_type": "application/pdf", "size_bytes": len(PDF), **fields}
    return portal.run(portal.files.presign(caller, content.content_id, **given))


def upload(portal: Studio, url: str | None, *parts: bytes, mime: str = "application/pdf") -> None:
    """Send bytes as the route of the app passes them on."""
    assert url is not None
    split = urlsplit(url)
    query = dict(parse_qsl(split.query))
    key = split.path.removeprefix("/files/")
    portal.run(portal.storage.receive(key, query, chunks(*parts), mime=mime))


def attach(portal: Studio, content: Content, caller: Caller = ANN, **fields: Any) -> Content:
    """Upload and attach a PDF."""
    ticket = presign(portal, content, caller)
    upload(portal, ticket.url, PDF)
    given = {"key": ticket.key, "file_name": "Deck.pdf", "content_type": "application/pdf", **fields}
    return portal.run(portal.files.attach(caller, content.content_id, **given))


def test_s3_6_an_attached_file_has_its_metadata(portal: Studio) -> None:
    made = portal.draft()
    found = attach(portal, made)
    key = found.s3_key
    assert key is not None
    assert key.startswith(f"content/{made.content_id}/source/")
    assert key.endswith("-Deck.pdf")
    assert found.s3_uri == f"s3://portal-files/{key}"
    assert (found.s3_bucket, found.file_name, found.content_type, found.size_bytes) == (
        "portal-files",
        "Deck.pdf",
        "application/pdf",
        len(PDF),
    )
    assert found.uploaded_at == portal.now()


def test_s3_25_an_upload_url_is_valid_for_one_file_and_five_minutes(portal: Studio) -> None:
    ticket = presign(portal, portal.draft())
    assert ticket.url is not None
    with pytest.raises(SignatureRejected):
        upload(portal, ticket.url.replace("size=19", "size=20"), PDF + b"x")
    with pytest.raises(SignatureRejected):
        upload(portal, ticket.url.replace("Deck", "Neck"), PDF)
    with pytest.raises(InvalidInput, match="Content-Type"):
        upload(portal, ticket.url, PDF, mime="text/html")
    for wrong in ((PDF, b"more"), (PDF[:-1],), ()):
        with pytest.raises(InvalidInput, match="another size"):
            upload(portal, ticket.url, *wrong)
    assert portal.run(portal.storage.size(ticket.key)) is None
    portal.pass_time(seconds=299)
    upload(portal, ticket.url, PDF[:5], PDF[5:])
    # A URL that is left over never replaces the file.
    with pytest.raises(AlreadyExists):
        upload(portal, ticket.url, PDF)
    portal.pass_time(seconds=1)
    with pytest.raises(SignatureRejected, match="expired"):
        upload(portal, ticket.url, PDF)


@pytest.mark.parametrize(
    "fields",
    [
        {"size_bytes": 100 * 1024 * 1024},
        {"size_bytes": MAX_FILE_BYTES + 1},
        {"size_bytes": 0},
        {"content_type": "text/html"},
        {"content_type": "image/svg+xml"},
    ],
)
def test_a_file_that_is_too_large_or_of_another_type_is_rejected(
    portal: Studio, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput):
        presign(portal, portal.draft(), **fields)


def test_a_file_is_attached_to_a_draft_by_its_owner_or_an_admin(portal: Studio) -> None:
    made = portal.draft(ANN)
    for caller, error in ((VIC, NotFound), (BEN, NotFound), (EVA, Forbidden)):
        with pytest.raises(error):
            presign(portal, made, caller)
    attach(portal, made, ADA)
    attach(portal, made, ANN)
    portal.run(portal.lifecycle.approve(EVA, made.content_id))
    with pytest.raises(IllegalTransition, match="to a Draft only"):
        presign(portal, made)


def test_attaching_checks_the_key_the_bytes_and_the_revision(portal: Studio) -> None:
    made, other = portal.draft(), portal.draft()
    foreign = presign(portal, other)
    upload(portal, foreign.url, PDF)
    for key in (foreign.key, "content/../x", f"content/{made.content_id}/source/", "", "a/b"):
        with pytest.raises(InvalidInput, match="key: is not a key"):
            attach(portal, made, key=key)
    with pytest.raises(InvalidInput, match="upload the file first"):
        attach(portal, made, key=f"content/{made.content_id}/source/none.pdf")
    with pytest.raises(InvalidInput, match="not of type image/png"):
        attach(portal, made, content_type="image/png")
    with pytest.raises(VersionConflict):
        attach(portal, made, revision=7)


def test_a_file_that_is_replaced_is_removed(portal: Studio) -> None:
    made = portal.draft()
    old = attach(portal, made).s3_key
    new = attach(portal, made).s3_key
    assert old is not None
    assert new is not None
    portal.announce()
    assert portal.run(portal.storage.size(old)) is None
    assert portal.run(portal.storage.size(new)) == len(PDF)


def test_c3_11_a_file_that_will_be_removed_cannot_be_attached_again(portal: Studio) -> None:
    made = portal.draft(expiry_policy="hard_expire")
    first = attach(portal, made).s3_key
    second = attach(portal, made).s3_key
    with pytest.raises(InvalidInput, match="key: is of a file that was replaced or expired"):
        attach(portal, made, key=first)
    # The attached file can be attached again, with another name.
    assert attach(portal, made, key=second, file_name="New.pdf").file_name == "New.pdf"
    portal.announce()
    with pytest.raises(InvalidInput, match="upload the file first"):
        attach(portal, made, key=first)
    portal.run(portal.lifecycle.expire(EVA, made.content_id))
    portal.run(portal.lifecycle.reopen(ADA, made.content_id))
    with pytest.raises(InvalidInput, match="key: is of a file that was replaced or expired"):
        attach(portal, made, key=second)
    third = attach(portal, made).s3_key
    portal.announce()
    assert third is not None
    assert portal.run(portal.storage.size(third)) == len(PDF)


def test_a_file_that_another_request_replaces_meanwhile_is_not_attached(portal: Studio) -> None:
    made = portal.draft()
    first = attach(portal, made).s3_key
    ticket = presign(portal, made)
    upload(portal, ticket.url, PDF)

    def replace_beside() -> None:
        found = portal.blocking.require(Content, content_id=made.content_id)
        with portal.blocking.transaction() as tx:
            tx.put(found.model_copy(update={"s3_key": ticket.key}))
            tx.put(FileRemoval(s3_key=first or "", requested_at=portal.now()))

    portal.watched.slip_in(TransactWriteItems, replace_beside)
    with pytest.raises(VersionConflict):
        attach(portal, made, key=first)


def test_downloads_follow_the_status_and_the_role(portal: Studio) -> None:
    made = portal.draft(ANN)
    attach(portal, made)
    rules: list[tuple[str | None, dict[Caller, type[Exception] | None]]] = [
        (None, {VIC: NotFound, BEN: NotFound, ANN: None, EVA: Forbidden, ADA: None}),
        ("approve", {VIC: None, BEN: None, ANN: None, EVA: None, ADA: None}),
        ("deprecate", {VIC: Forbidden, ANN: Forbidden, EVA: Forbidden, ADA: None}),
        ("expire", {VIC: NotFound, ANN: Forbidden, EVA: Forbidden, ADA: None}),
    ]
    for change, expected in rules:
        if change is not None:
            portal.run(getattr(portal.lifecycle, change)(EVA, made.content_id))
        for caller, error in expected.items():
            if error is None:
                assert portal.run(portal.files.download(caller, made.content_id)).file_name == "Deck.pdf"
            else:
                with pytest.raises(error):
                    portal.run(portal.files.download(caller, made.content_id))


def test_a_download_url_is_valid_for_an_hour_and_remembers_the_downloader(portal: Studio) -> None:
    made = portal.draft()
    attach(portal, made)
    portal.run(portal.lifecycle.approve(EVA, made.content_id))
    ticket = portal.run(portal.files.download(VIC, made.content_id))
    assert ticket.url is not None
    split = urlsplit(ticket.url)
    key, query = split.path.removeprefix("/files/"), dict(parse_qsl(split.query))

    async def read() -> tuple[str, bytes]:
        name, parts = await portal.storage.open_download(key, query)
        return name, b"".join([part async for part in parts])

    portal.pass_time(minutes=59, seconds=59)
    assert portal.run(read()) == ("Deck.pdf", PDF)
    portal.pass_time(seconds=1)
    with pytest.raises(SignatureRejected):
        portal.run(read())
    with pytest.raises(SignatureRejected):
        upload(portal, ticket.url, PDF)
    assert [each.user_id for each in portal.blocking.all(Downloader.of_content(made.content_id))] == ["vic"]
    portal.pass_time(days=30)
    assert list(portal.blocking.all(Downloader.of_content(made.content_id))) == []


def test_content_without_a_file_has_no_download(portal: Studio) -> None:
    made = portal.approved()
    with pytest.raises(NotFound, match="has no file"):
        portal.run(portal.files.download(VIC, made.content_id))


@pytest.mark.parametrize(("policy", "stays"), [(None, True), ("soft_expire", True), ("hard_expire", False)])
def test_c3_11_a_hard_expiry_removes_the_file_and_a_soft_one_keeps_it(
    portal: Studio, policy: Any, stays: bool
) -> None:
    made = portal.draft(expiry_policy=policy)
    key = attach(portal, made).s3_key
    assert key is not None
    expired = portal.run(portal.lifecycle.expire(EVA, made.content_id))
    portal.announce()
    assert portal.run(portal.storage.size(key)) == (len(PDF) if stays else None)
    assert (expired.s3_key is not None) == stays
    if stays:
        assert portal.run(portal.files.download(ADA, made.content_id)).key == key
    else:
        with pytest.raises(NotFound):
            portal.run(portal.files.download(ADA, made.content_id))


def test_c3_11_deleted_content_leaves_no_file_and_keeps_its_notifications(portal: Studio) -> None:
    portal.subscribe(VIC)
    made = portal.draft()
    key = attach(portal, made).s3_key
    assert key is not None
    portal.run(portal.lifecycle.approve(EVA, made.content_id))
    portal.run(portal.contents.delete(ADA, made.content_id))
    portal.announce()
    assert portal.run(portal.storage.size(key)) is None
    # A notification is a message that was sent. It ends with its retention, and its link with a 404.
    (left,) = portal.inbox_of(VIC)
    assert left.content_id == made.content_id
    with pytest.raises(NotFound):
        portal.run(portal.contents.get(VIC, made.content_id))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("../../etc/passwd", "passwd"),
        ("C:\\decks\\Q3 plan.pdf", "Q3-plan.pdf"),
        (".htaccess", "htaccess"),
        ("a" * 300 + ".pdf", "a" * 96 + ".pdf"),
        ("\x00\n", "file"),
    ],
)
def test_file_names_are_sanitised(name: str, expected: str) -> None:
    assert sanitise(name) == expected


def bucket_storage(endpoint: str, config: Config | None) -> BucketStorage:
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="x",
        aws_secret_access_key="x",
        config=config,
    )
    return BucketStorage(client, new_bucket(endpoint))


def test_an_upload_to_a_bucket_is_signed_for_one_file(s3_endpoint: str) -> None:
    storage = bucket_storage(s3_endpoint, Config(signature_version="s3v4"))
    key = "content/c1/source/x.pdf"
    url = storage.upload_url(key, mime="application/pdf", size=len(PDF), seconds=300, once=True)
    assert url is not None
    signed = dict(parse_qsl(urlsplit(url).query))
    assert signed["X-Amz-Expires"] == "300"
    names = {"content-length", "content-type", "host", "if-none-match"}
    assert set(signed["X-Amz-SignedHeaders"].split(";")) == names
    headers = {"Content-Type": "application/pdf", "If-None-Match": "*"}
    request = urllib.request.Request(url, data=PDF, method="PUT", headers=headers)  # noqa: S310 - local
    with urllib.request.urlopen(request) as reply:  # noqa: S310 - a local server
        assert reply.status == 200
    assert asyncio.run(storage.size(key)) == len(PDF)
    with pytest.raises(urllib.error.HTTPError) as second:
        urllib.request.urlopen(request)  # noqa: S310 - a local server
    assert second.value.code == 412
    second.value.close()


def test_a_client_that_signs_urls_without_the_length_is_rejected(s3_endpoint: str) -> None:
    storage = bucket_storage(s3_endpoint, None)
    with pytest.raises(DeclarationError, match="signature_version"):
        storage.upload_url("x.pdf", mime="application/pdf", size=19, seconds=300)
