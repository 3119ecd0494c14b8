"""HTTP as clients speak it: each request gets its own answer, in order, whole, with DynamoDB's headers."""

from __future__ import annotations

import gzip
import json
import re
import zlib
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.config import Config

from .running import JSON, Client, Running, get, put, request, running

UNKNOWN = b"<UnknownOperationException/>\n"
LARGE = {"S": "x" * 20_000}


def key_of(reply: Any) -> Any:
    return reply.json().get("Item", {}).get("pk", {}).get("S")


# Order ------------------------------------------------------------------------------------------


def test_a_connection_is_used_again_and_again(client: Client) -> None:
    replies = [client.ask(request()) for _ in range(20)]
    assert {reply.status for reply in replies} == {200}
    assert len({reply.headers["x-amzn-requestid"] for reply in replies}) == 20


def test_replies_have_amazons_headers(client: Client) -> None:
    reply = client.ask(request())
    assert re.fullmatch(r"[0-9A-Z]{52}", reply.headers["x-amzn-requestid"])
    assert reply.headers["content-type"] == JSON
    assert reply.headers["x-amz-crc32"] == str(zlib.crc32(reply.body))
    assert parsedate_to_datetime(reply.headers["date"]).year >= 2024
    assert "connection" not in reply.headers
    assert not any(name.startswith("access-control") for name in reply.headers)


def test_pipelined_requests_are_answered_in_order(client: Client) -> None:
    for number in range(50):
        client.ask(put(f"p{number}"))
    client.send(b"".join(get(f"p{number}") for number in range(50)))
    assert [key_of(client.reply()) for _ in range(50)] == [f"p{number}" for number in range(50)]


def test_reads_wait_for_the_writes_before_them(client: Client) -> None:
    client.send(b"".join(put("turn", n={"N": str(number)}) + get("turn") + request() for number in range(40)))
    for number in range(40):
        assert client.reply().json() == {}
        assert client.reply().json()["Item"]["n"] == {"N": str(number)}
        assert "TableNames" in client.reply().json()


def test_thousands_of_requests_in_one_segment_are_answered(client: Client) -> None:
    # More than Python's stack is deep, behind a write that the loop does not wait for.
    count = 3000
    client.send(put("deep") + get("deep") * count)
    assert client.reply().json() == {}
    assert {key_of(client.reply()) for _ in range(count)} == {"deep"}


def test_refusals_and_pages_keep_their_place_in_the_pipe(client: Client) -> None:
    client.send(
        put("mixed")
        + request("GetItem", {"TableName": "Absent", "Key": {"pk": {"S": "x"}}})
        + request(method="GET", body=b"")
        + request(body=b"{", url="/")
        + request(content_type="text/plain")
        + get("mixed")
    )
    replies = [client.reply() for _ in range(6)]
    assert [reply.status for reply in replies] == [200, 400, 200, 400, 404, 200]
    assert key_of(replies[-1]) == "mixed"


def test_a_request_that_cannot_be_read_is_answered_after_those_before_it(client: Client) -> None:
    client.send(put("first") + get("first") + b"no request at all\r\n\r\n" + get("first"))
    assert client.reply().json() == {}
    assert key_of(client.reply()) == "first"
    refused = client.reply()
    assert (refused.status, refused.headers["connection"]) == (400, "close")
    assert client.ended()


def test_a_client_that_has_said_its_last_still_gets_its_answers(client: Client) -> None:
    client.send(put("last") + get("last"))
    client.socket.shutdown(1)
    assert client.reply().json() == {}
    assert key_of(client.reply()) == "last"
    assert client.ended()


def test_requests_may_come_byte_by_byte(client: Client) -> None:
    for byte in get("none"):
        client.send(bytes([byte]))
    assert client.reply().json() == {}


# Framing ----------------------------------------------------------------------------------------


def chunked(body: bytes, size: int, *, tail: bytes = b"0\r\n\r\n", **headers: str) -> bytes:
    head = request(body=b"", without=("Content-Length",), transfer_encoding="chunked", **headers)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return head + b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + tail


@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_chunked_bodies_are_put_together(client: Client, size: int) -> None:
    body = json.dumps({"TableName": "Things", "Item": {"pk": {"S": "chunks"}, "v": LARGE}}).encode()
    target = "DynamoDB_20120810.PutItem"
    assert client.ask(chunked(body, size, x_amz_target=target)).status == 200
    assert client.ask(get("chunks")).json()["Item"]["v"] == LARGE


def test_trailers_change_nothing(client: Client) -> None:
    tail = b"0\r\nX-Amz-Target: DynamoDB_20120810.Nothing\r\nContent-Encoding: gzip\r\n\r\n"
    assert client.ask(chunked(b"{}", 1, tail=tail)).status == 200
    assert client.ask(request()).status == 200


def test_a_client_that_expects_100_continue_gets_it(client: Client) -> None:
    body = b'{"TableName":"Things"}'
    head = request("DescribeTable", body=b"", content_length=str(len(body)), expect="100-continue")
    assert client.ask(head).status == 100
    assert client.ask(body).json()["Table"]["TableName"] == "Things"


def test_the_word_to_continue_waits_for_the_replies_before_it(client: Client) -> None:
    head = request(body=b"", content_length="2", expect="100-continue")
    client.send(put("before") + head)
    assert client.reply().status == 200
    assert client.reply().status == 100
    assert "TableNames" in client.ask(b"{}").json()


def test_a_client_may_send_before_100_continue(client: Client) -> None:
    client.send(put("before") + request(expect="100-continue") + request())
    statuses = [client.reply().status for _ in range(3)]
    if 100 in statuses:
        statuses = [status for status in [*statuses, client.reply().status] if status != 100]
    assert statuses == [200, 200, 200]


def test_other_expectations_are_refused(client: Client) -> None:
    assert client.ask(request(expect="a miracle")).status == 417
    assert client.ended()


def test_a_connection_ends_when_the_client_says_so(client: Client) -> None:
    reply = client.ask(request(connection="close"))
    assert reply.headers["connection"] == "close"
    assert client.ended()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_what_follows_the_last_request_does_not_cost_its_reply(client: Client, version: str) -> None:
    last = request("GetItem", {"TableName": "Things", "Key": {"pk": {"S": "x"}}}, version=version)
    last = last.replace(b"Host", b"Connection: close\r\nHost")
    # Closed with bytes unread, the socket would be reset and the replies perhaps lost.
    client.send(put("x") + last)
    for _ in range(40):
        client.send(b"x" * 50_000)
    assert client.reply().json() == {}
    reply = client.reply()
    assert (key_of(reply), reply.headers["connection"]) == ("x", "close")
    assert client.ended()


def test_http_1_0_ends_after_one_reply(client: Client) -> None:
    reply = client.ask(request(version="1.0"))
    assert (reply.status, reply.headers["connection"]) == (200, "close")
    assert client.ended()


def test_http_1_0_may_ask_to_go_on(client: Client) -> None:
    for _ in range(2):
        reply = client.ask(request(version="1.0", connection="keep-alive"))
        assert (reply.status, reply.headers["connection"]) == (200, "keep-alive")


def test_other_protocols_are_not_spoken_and_the_request_is_answered(client: Client) -> None:
    upgrade = request(connection="Upgrade, HTTP2-Settings", upgrade="h2c", http2_settings="AAMAAABkAAQ")
    client.send(upgrade + get("none") + upgrade)
    assert "TableNames" in client.reply().json()
    assert client.reply().json() == {}
    assert "TableNames" in client.reply().json()
    assert client.ask(b"GET / HTTP/1.1\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n").status == 200


# What is not DynamoDB's protocol ----------------------------------------------------------------


def test_get_says_that_all_is_well(client: Client) -> None:
    reply = client.ask(request(method="GET", body=b"", host="localhost:8000"))
    assert (reply.status, reply.body) == (200, b"healthy: localhost:8000 ")
    reply = client.ask(request(method="GET", url="/health?x=1", body=b""))
    assert (reply.status, reply.json()["status"]) == (200, "ok")


def test_head_has_no_body(client: Client) -> None:
    client.send(
        request(method="HEAD", body=b"") + request(method="HEAD", url="/absent", body=b"") + request()
    )
    assert client.reply(bodiless=True).status == 200
    assert client.reply(bodiless=True).status == 404
    assert "TableNames" in client.reply().json()


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "PROPFIND"])
def test_other_methods_are_unknown(client: Client, method: str) -> None:
    reply = client.ask(request(method=method))
    assert (reply.status, reply.body) == (404, UNKNOWN)
    assert client.ask(request()).status == 200


@pytest.mark.parametrize("method", ["FOO", "post", "G E T", "CONNECT"])
def test_unknown_methods_are_rejected(client: Client, method: str) -> None:
    assert client.ask(request(method=method)).status == 400
    assert client.ended()


@pytest.mark.parametrize("content_type", ["text/plain", "", "application/x-amz-json-1.1", "application/xml"])
def test_a_body_of_another_type_is_unknown(client: Client, content_type: str) -> None:
    reply = client.ask(request(content_type=content_type))
    assert (reply.status, reply.body) == (404, UNKNOWN)


@pytest.mark.parametrize(
    ("sent", "replied"),
    [
        ("application/json", "application/json"),
        ("application/x-amz-json-1.0; charset=utf-8", JSON),
        ("Application/JSON", "application/json"),
    ],
)
def test_json_types_are_answered_in_kind(client: Client, sent: str, replied: str) -> None:
    reply = client.ask(request(content_type=sent))
    assert (reply.status, reply.headers["content-type"]) == (200, replied)


@pytest.mark.parametrize(
    ("bytes_", "code"),
    [
        (request(body=b"", without=("Content-Type", "X-Amz-Target")), "UnknownOperationException"),
        (request(target="whatever"), "UnknownOperationException"),
        (request(without=("X-Amz-Target",)), "UnknownOperationException"),
        (request(target="DynamoDB_20111205.ListTables"), "UnknownOperationException"),
        (request(target="DynamoDBStreams_20120810.ListTables"), "UnknownOperationException"),
        (request("ListStreams"), "UnknownOperationException"),
        (request(body=b""), "SerializationException"),
        (request(body=b"hi"), "SerializationException"),
        (request(body=b"hi", target="whatever"), "SerializationException"),
        (request(body=b'{"TableName":"\xff"}'), "SerializationException"),
        (request(body=b"[" * 100_000), "SerializationException"),
        (request(body=b'{"a":' * 100_000 + b"1" + b"}" * 100_000), "SerializationException"),
        (request("Scan", {"TableName": 1}), "SerializationException"),
        (request("Scan", {}), "ValidationException"),
        (request("Scan", {"TableName": "Absent"}), "ResourceNotFoundException"),
    ],
)
def test_refusals_carry_their_type(client: Client, bytes_: bytes, code: str) -> None:
    reply = client.ask(bytes_)
    assert reply.status == 400
    assert reply.json()["__type"].rpartition("#")[2] == code
    assert client.ask(request()).status == 200


def test_streams_have_their_own_target(client: Client) -> None:
    reply = client.ask(request(target="DynamoDBStreams_20120810.ListStreams"))
    assert reply.json() == {"Streams": []}


# Compression ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "compress"),
    [("gzip", gzip.compress), ("GZIP", gzip.compress), ("deflate", zlib.compress), ("identity", bytes)],
    ids=["gzip", "GZIP", "deflate", "identity"],
)
def test_compressed_requests_are_read(client: Client, encoding: str, compress: Any) -> None:
    body = compress(b'{"TableName":"Things"}')
    reply = client.ask(request("DescribeTable", body=body, content_encoding=encoding))
    assert reply.json()["Table"]["TableName"] == "Things"


@pytest.mark.parametrize(
    ("accepted", "sent", "undo"),
    [("gzip", "gzip", gzip.decompress), ("deflate, gzip", "deflate", zlib.decompress), ("br", None, bytes)],
    ids=["gzip", "deflate", "br"],
)
def test_large_replies_are_compressed_for_those_who_ask(
    client: Client, accepted: str, sent: str | None, undo: Any
) -> None:
    client.ask(put("large", v=LARGE))
    whole = client.ask(get("large"))
    assert "content-encoding" not in whole.headers
    reply = client.ask(get("large").replace(b"\r\n", f"\r\nAccept-Encoding: {accepted}\r\n".encode(), 1))
    assert reply.headers.get("content-encoding") == sent
    assert json.loads(undo(reply.body)) == whole.json()
    if sent:
        assert len(reply.body) < 1000


def boto3_client(port: int, **options: Any) -> Any:
    return boto3.client(
        "dynamodb",
        endpoint_url=f"http://127.0.0.1:{port}",
        region_name="eu-central-1",
        aws_access_key_id="key",
        aws_secret_access_key="secret",
        config=Config(retries={"total_max_attempts": 1}, **options),
    )


def test_boto3_sends_compressed_requests(server: Running) -> None:
    made = boto3_client(server.port, request_min_compression_size_bytes=1)
    for operation in made.meta.service_model._service_description["operations"].values():
        operation["requestcompression"] = {"encodings": ["gzip"]}
    sent: list[Any] = []
    made.meta.events.register(
        "before-send.dynamodb.PutItem",
        lambda request, **_: sent.append(request.headers.get("Content-Encoding")),
    )
    made.put_item(TableName="Things", Item={"pk": {"S": "boto"}, "v": LARGE})
    assert made.get_item(TableName="Things", Key={"pk": {"S": "boto"}})["Item"]["v"] == LARGE
    assert [value.decode() if isinstance(value, bytes) else value for value in sent] == ["gzip"]
    made.close()


def test_boto3_takes_compressed_replies(server: Running) -> None:
    made = boto3_client(server.port)
    made.put_item(TableName="Things", Item={"pk": {"S": "boto"}, "v": LARGE})
    headers: dict[str, str] = {}

    def ask(request: Any, **_: Any) -> None:
        request.headers["Accept-Encoding"] = "gzip, deflate"

    def inflate(response_dict: dict[str, Any], **_: Any) -> None:
        headers.update(response_dict["headers"])
        response_dict["body"] = gzip.decompress(response_dict["body"])

    made.meta.events.register("before-send.dynamodb.GetItem", ask)
    made.meta.events.register("before-parse.dynamodb.GetItem", inflate)
    assert made.get_item(TableName="Things", Key={"pk": {"S": "boto"}})["Item"]["v"] == LARGE
    assert headers["Content-Encoding"] == "gzip"
    made.close()


# Browsers ---------------------------------------------------------------------------------------

PREFLIGHT: dict[str, Any] = {
    "origin": "http://localhost:3000",
    "access_control_request_method": "POST",
    "access_control_request_headers": "content-type,x-amz-target",
}


def test_pages_of_others_are_not_answered_unless_asked_for(client: Client) -> None:
    reply = client.ask(request(method="OPTIONS", body=b"", **PREFLIGHT))
    assert reply.status == 404
    for bytes_ in (request(origin="http://localhost:3000"), request(body=b"{", origin="null")):
        assert not any(name.startswith("access-control") for name in client.ask(bytes_).headers)


@pytest.mark.parametrize("allowed", ["*", "http://localhost:3000"])
def test_pages_of_the_allowed_origin_are_answered(tmp_path: Path, allowed: str) -> None:
    with running(cors_origin=allowed) as server, server.client() as client:
        reply = client.ask(request(method="OPTIONS", body=b"", **PREFLIGHT))
        assert (reply.status, reply.body) == (200, b"")
        assert reply.headers["access-control-allow-origin"] == allowed
        assert reply.headers["access-control-allow-headers"] == "content-type,x-amz-target"
        assert "POST" in reply.headers["access-control-allow-methods"]
        assert reply.headers["access-control-max-age"] == "172800"
        for bytes_ in (request(origin="http://localhost:3000"), request(body=b"{", **PREFLIGHT)):
            reply = client.ask(bytes_)
            assert reply.headers["access-control-allow-origin"] == allowed
            assert "x-amz-crc32" in reply.headers["access-control-expose-headers"]
            assert reply.headers.get("vary") == (None if allowed == "*" else "Origin")
        assert "access-control-allow-origin" not in client.ask(request()).headers


def test_pages_of_another_origin_are_not() -> None:
    with running(cors_origin="http://localhost:3000") as server:
        for bytes_ in (
            request(origin="http://evil.example"),
            request(method="OPTIONS", body=b"", origin="http://evil.example"),
        ):
            assert "access-control-allow-origin" not in server.ask(bytes_).headers


# Signatures -------------------------------------------------------------------------------------


def test_signatures_are_demanded_when_keys_are_given() -> None:
    with running(keys={"key": "secret"}) as server:
        made = boto3_client(server.port)
        assert made.list_tables()["TableNames"] == ["Things"]
        refused = server.ask(request())
        assert (refused.status, refused.headers["content-type"]) == (400, JSON)
        assert refused.json()["__type"].endswith("#MissingAuthenticationTokenException")
        assert server.ask(request(method="GET", body=b"")).status == 200
        made.close()
