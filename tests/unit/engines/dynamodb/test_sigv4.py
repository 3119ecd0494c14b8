"""Our signatures are botocore's, byte for byte, and our own server takes them."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import pytest
from botocore import auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from solotable.engines.dynamodb.auth.botocore_config import host_header
from solotable.engines.dynamodb.auth.sigv4 import AccessKey, Signer
from solotable.errors import ServiceError
from solotable.server.auth.sigv4 import SignedRequest, Verifier

PRINTABLE = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), min_size=1, max_size=60)
#: No signature has a slash in the key's name, as its scope is divided by them.
NAMES = PRINTABLE.filter(lambda name: not set(name) & set("/,="))
KEYS = st.builds(AccessKey, id=NAMES, secret=PRINTABLE, token=st.none() | PRINTABLE)
HOSTS = st.from_regex(r"\A[a-z][a-z0-9.-]{0,30}(:[1-9][0-9]{0,3})?\Z")
TARGETS = st.from_regex(r"\ADynamoDB(Streams)?_20120810\.[A-Z][A-Za-z]{1,20}\Z")
MOMENTS = st.integers(min_value=0, max_value=4_000_000_000)


def lines(headers: str) -> dict[str, str]:
    assert headers.endswith("\r\n")
    return dict(line.split(": ", 1) for line in headers[:-2].split("\r\n"))


@given(key=KEYS, host=HOSTS, target=TARGETS, body=st.binary(max_size=300), moment=MOMENTS)
def test_signatures_are_those_of_botocore(
    key: AccessKey, host: str, target: str, body: bytes, moment: int
) -> None:
    ours = lines(Signer(key, region="eu-west-1", host=host).headers(target, body, moment + 0.5))
    request = AWSRequest(
        method="POST",
        url=f"https://{host}/",
        data=body,
        headers={"Host": host, "Content-Type": "application/x-amz-json-1.0", "X-Amz-Target": target},
    )
    sign(request, key, datetime.fromtimestamp(moment, UTC))
    assert ours == dict(request.headers.items())


@given(moments=st.lists(st.sampled_from([0, 0.5, 1, 86_399.9, 86_400, 86_400.2, 172_800]), max_size=6))
def test_a_signer_signs_at_every_moment_like_a_new_one(moments: list[float]) -> None:
    key = AccessKey(id="id", secret="secret")
    signer = Signer(key, region="eu-west-1", host="localhost")
    for moment in moments:
        new = Signer(key, region="eu-west-1", host="localhost")
        assert signer.headers("T", b"{}", moment) == new.headers("T", b"{}", moment)


def sign(request: Any, key: AccessKey, moment: datetime) -> None:
    """Sign as botocore's `add_auth` does, at a moment of the test's."""
    signer = auth.SigV4Auth(Credentials(key.id, key.secret, key.token), "dynamodb", "eu-west-1")
    request.context["timestamp"] = moment.strftime("%Y%m%dT%H%M%SZ")
    signer._modify_request_before_signing(request)
    to_sign = signer.string_to_sign(request, signer.canonical_request(request))
    signer._inject_signature_to_request(request, signer.signature(to_sign, request))


def verify(signer: Signer, *, at: float, body: bytes = b"{}") -> None:
    headers = lines(signer.headers("DynamoDB_20120810.ListTables", b"{}", at))
    request = SignedRequest(
        method="POST",
        target="/",
        headers=tuple((name.lower(), value) for name, value in headers.items()),
        body=body,
    )
    Verifier({"AKID": "secret"}, clock=lambda: at).verify(request)


def test_a_server_takes_them_on_every_day() -> None:
    signer = Signer(AccessKey(id="AKID", secret="secret"), region="eu-west-1", host="localhost:8000")
    for day in (0, 0, 1, 2, 1, 20_000):
        verify(signer, at=day * 86400 + 86399)
    with pytest.raises(ServiceError):
        verify(signer, at=0, body=b"{ }")
    with pytest.raises(ServiceError):
        verify(Signer(AccessKey(id="AKID", secret="other"), region="eu-west-1", host="localhost"), at=0)


@pytest.mark.parametrize("bad", ["", " a", "a\n", "a\r\nX: y", "é", "a\x00"])
def test_keys_that_cannot_be_headers_are_recognized(bad: str) -> None:
    assert AccessKey(id="AKID", secret="s", token="t").is_sendable
    assert not AccessKey(id=bad, secret="s").is_sendable
    assert not AccessKey(id="AKID", secret="s", token=bad or "\t").is_sendable


def test_no_repr_shows_a_secret() -> None:
    key = AccessKey(id="AKID", secret="hidden", token="hidden")
    assert "hidden" not in repr(key)
    assert not re.search("hidden", repr(Signer(key, region="r", host="h")))


@pytest.mark.parametrize(
    "url, host",
    [
        ("https://dynamodb.eu-west-1.amazonaws.com", "dynamodb.eu-west-1.amazonaws.com"),
        ("https://Example.com:443/", "example.com"),
        ("http://127.0.0.1:8000", "127.0.0.1:8000"),
        ("http://localhost:80", "localhost"),
        ("https://localhost:80", "localhost:80"),
        ("http://[::1]:8000", "[::1]:8000"),
    ],
)
def test_the_host_has_its_port_where_that_is_unusual(url: str, host: str) -> None:
    assert host_header(url) == host
    assert auth._host_from_url(url) == host
