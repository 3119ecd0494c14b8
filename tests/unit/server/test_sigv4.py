"""Signature Version 4: what botocore signs is accepted, and nothing that differs from it by a byte."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from urllib.parse import urlsplit

import pytest
from botocore.auth import SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from hypothesis import given
from hypothesis import strategies as st

from solotable.errors import DeclarationError, ServiceError
from solotable.server.auth.sigv4 import SignedRequest, Verifier, read_keys

KEY = "AKIDEXAMPLE"
SECRET = "wJalrXUtnFEMI+K7MDENG/bPxRfiCYEXAMPLEKEY"
TOKEN = "FwoGZXIvYXdzEXAMPLETOKEN"
BODY = b'{"TableName":"Things"}'
TARGET = "DynamoDB_20120810.DescribeTable"
MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signed:
    """A request as botocore signed it, and when."""

    request: SignedRequest
    at: float


def sign(
    body: bytes = BODY,
    *,
    key: str = KEY,
    secret: str = SECRET,
    token: str | None = None,
    region: str = "eu-central-1",
    service: str = "dynamodb",
    url: str = "http://localhost:8000/",
    headers: Iterable[tuple[str, str]] = (),
    expires: int | None = None,
) -> Signed:
    """Sign with botocore; `expires` makes it a presigned request."""
    credentials = Credentials(key, secret, token)
    request = AWSRequest(method="POST", url=url, data=b"" if expires is not None else body)
    request.headers["Content-Type"] = "application/x-amz-json-1.0"
    request.headers["X-Amz-Target"] = TARGET
    for name, value in headers:
        request.headers[name] = value
    if expires is None:
        SigV4Auth(credentials, service, region).add_auth(request)
    else:
        # The query signer would move the body into the query; its hash is all that it needs.
        request.headers["X-Amz-Content-SHA256"] = sha256(body).hexdigest()
        SigV4QueryAuth(credentials, service, region, expires=expires).add_auth(request)
    parts = urlsplit(request.url)
    sent = [("host", parts.netloc), *((name.lower(), str(value)) for name, value in request.headers.items())]
    return Signed(
        request=SignedRequest(
            method="POST",
            target=parts.path + (f"?{parts.query}" if parts.query else ""),
            headers=tuple(sent),
            body=body,
        ),
        at=datetime.strptime(request.context["timestamp"], "%Y%m%dT%H%M%S%z").timestamp(),
    )


def verify(signed: Signed, *, keys: Mapping[str, str] | None = None, later: float = 0) -> None:
    Verifier({KEY: SECRET} if keys is None else keys, clock=lambda: signed.at + later).verify(signed.request)


def refusal(signed: Signed, *, keys: Mapping[str, str] | None = None, later: float = 0) -> ServiceError:
    with pytest.raises(ServiceError) as caught:
        verify(signed, keys=keys, later=later)
    assert caught.value.status == 400
    assert caught.value.body()["__type"] == f"com.amazon.coral.service#{caught.value.code}"
    return caught.value


def code_and_text(signed: Signed, **options: float) -> tuple[str, str]:
    error = refusal(signed, **options)  # type: ignore[arg-type]  # only `later` is ever passed on
    return error.code, error.message


def header(signed: Signed, name: str) -> str:
    return next(value for known, value in signed.request.headers if known == name)


def with_header(signed: Signed, name: str, value: str | None) -> Signed:
    """The same request with the header set, or without it."""
    kept = [(known, old) for known, old in signed.request.headers if known != name]
    changed = kept if value is None else [*kept, (name, value)]
    return replace(signed, request=replace(signed.request, headers=tuple(changed)))


def with_target(signed: Signed, pattern: str, substitute: str) -> Signed:
    target, count = re.subn(pattern, substitute, signed.request.target)
    assert count == 1
    return replace(signed, request=replace(signed.request, target=target))


def with_authorization(signed: Signed, pattern: str, substitute: str) -> Signed:
    value, count = re.subn(pattern, substitute, header(signed, "authorization"))
    assert count >= 1
    return with_header(signed, "authorization", value)


def unsigned(**headers: str) -> Signed:
    """A request with an invented signature, at a known time."""
    named = tuple((name.replace("_", "-"), value) for name, value in headers.items())
    return Signed(
        request=SignedRequest(method="POST", target="/", headers=(("host", "localhost"), *named), body=b"{}"),
        at=datetime(2013, 6, 9, 10, 0, 15, tzinfo=UTC).timestamp(),
    )


def fingerprint(text: str) -> str:
    return b64encode(sha256(text.encode()).digest()).decode()


def flips(text: str) -> Iterable[str]:
    """The text with one bit of one character changed, for each character."""
    for place, character in enumerate(text):
        yield text[:place] + chr(ord(character) ^ 1) + text[place + 1 :]


# What is accepted


@pytest.mark.parametrize("body", [b"", b"{}", bytes(range(256)), b"x" * 3_000_000], ids=len)
@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_what_botocore_signs_is_accepted(body: bytes, expires: int | None) -> None:
    verify(sign(body, expires=expires))


@pytest.mark.parametrize("region", ["us-east-1", "local", "mars-north-7"])
def test_any_region_is_accepted(region: str) -> None:
    verify(sign(region=region))


@pytest.mark.parametrize(
    "url",
    [
        "http://localhost:8000",
        "http://localhost:8000/a/b/",
        "http://localhost:8000//a/./b/../c",
        "http://localhost:8000/a%20b~c",
        "http://localhost:8000/?b=2&a=1&a=0&empty=&slash=%2F&tilde=~",
    ],
)
@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_paths_and_queries_are_signed_in_canonical_form(url: str, expires: int | None) -> None:
    verify(sign(url=url, expires=expires if "a=0" not in url else None))


def test_a_whole_url_as_target_is_the_same_request() -> None:
    signed = sign(url="http://localhost:8000/a?b=c")
    whole = replace(signed.request, target="http://localhost:8000" + signed.request.target)
    verify(replace(signed, request=whole))


def test_parameters_may_come_in_another_order() -> None:
    signed = sign(url="http://localhost:8000/?a=1&b=2")
    verify(with_target(signed, "a=1&b=2", "b=2&a=1"))


def test_white_space_in_headers_is_folded() -> None:
    signed = sign(headers=[("X-Amz-Meta", "one  two")])
    verify(with_header(signed, "x-amz-meta", "  one \t two "))


def test_headers_sent_twice_are_joined_in_their_order() -> None:
    signed = sign(headers=[("X-Amz-Meta", "one"), ("X-Amz-Meta", "two")])
    verify(signed)
    verify(with_header(signed, "x-amz-meta", "one,two"))
    assert refusal(with_header(signed, "x-amz-meta", "two,one")).code == "InvalidSignatureException"


def test_the_order_of_headers_does_not_matter() -> None:
    signed = sign()
    turned = replace(signed.request, headers=signed.request.headers[::-1])
    verify(replace(signed, request=turned))


def test_bytes_beyond_ascii_in_headers_are_signed_as_they_are_sent() -> None:
    # botocore signs UTF-8, and the connection reads Latin-1, where the second byte of this is a space.
    signed = sign(headers=[("X-Amz-Meta", "à la carte à")])
    verify(with_header(signed, "x-amz-meta", "à la carte à".encode().decode("latin-1")))


@pytest.mark.parametrize(
    "pattern, substitute",
    [
        (", ", ","),
        (", ", " "),
        (", ", " ,\t  "),
        (r"\ACredential", "Credential"),
        ("aws4_request", "aws4_request//"),
        ("host;", "HOST;"),
        ("content-type;host", "host;content-type"),
        (r"(Credential=\S+), (SignedHeaders=\S+), (Signature=\S+)", r"\3, \2, \1"),
        (r"Credential=", "Credential=nonsense, Credential="),
    ],
)
def test_the_authorization_header_may_be_written_in_other_ways(pattern: str, substitute: str) -> None:
    signed = sign()
    value = re.sub(pattern, substitute, header(signed, "authorization"))
    verify(with_header(signed, "authorization", f" {value} "))


def test_the_date_may_come_in_the_date_header() -> None:
    signed = sign(headers=[("Date", "is replaced")])
    assert not any(name == "x-amz-date" for name, _ in signed.request.headers)
    verify(signed)
    assert refusal(signed, later=301).code == "InvalidSignatureException"


def test_the_body_hash_may_be_stated_and_signed_or_not() -> None:
    stated = sha256(BODY).hexdigest()
    verify(sign(headers=[("X-Amz-Content-SHA256", stated)]))
    verify(with_header(sign(), "x-amz-content-sha256", stated))


def test_headers_that_proxies_add_need_no_signature() -> None:
    signed = with_header(sign(), "x-amzn-trace-id", "Root=1")
    verify(with_header(signed, "x-forwarded-for", "10.0.0.1"))


def test_content_type_need_not_be_signed() -> None:
    request = with_header(sign(), "content-type", None)
    # botocore always signs it, so it is signed as a request without one, and added afterwards.
    bare = AWSRequest(
        method="POST", url="http://localhost:8000/", data=BODY, headers={"X-Amz-Target": TARGET}
    )
    SigV4Auth(Credentials(KEY, SECRET), "dynamodb", "eu-central-1").add_auth(bare)
    for name in ("Authorization", "X-Amz-Date"):
        request = with_header(request, name.lower(), bare.headers[name])
    verify(with_header(request, "content-type", "application/x-amz-json-1.0"))


def test_a_request_sent_twice_within_the_window_is_accepted_twice() -> None:
    signed = sign()
    verifier = Verifier({KEY: SECRET}, clock=lambda: signed.at)
    verifier.verify(signed.request)
    verifier.verify(signed.request)


def test_each_key_has_its_own_secret() -> None:
    keys = {KEY: SECRET, "OTHER": "other-secret"}
    verify(sign(), keys=keys)
    verify(sign(key="OTHER", secret="other-secret"), keys=keys)
    assert refusal(sign(key="OTHER"), keys=keys).code == "InvalidSignatureException"


def test_signing_keys_are_kept_within_a_bound_and_only_for_those_who_know_the_secret() -> None:
    at = sign().at
    verifier = Verifier({KEY: SECRET}, clock=lambda: at)
    for number in range(20):
        with pytest.raises(ServiceError):
            verifier.verify(sign(secret="wrong", region=f"wrong-{number}").request)
    assert not verifier._signing_keys
    for number in range(300):
        verifier.verify(sign(region=f"region-{number}").request)
    assert len(verifier._signing_keys) == 256
    verifier.verify(sign(region="region-299").request)


# What is refused


def test_every_changed_byte_of_the_authorization_is_refused() -> None:
    signed = sign()
    for changed in flips(header(signed, "authorization")):
        refusal(with_header(signed, "authorization", changed))


def test_every_changed_byte_of_the_body_is_refused() -> None:
    signed = sign()
    for place in range(len(BODY)):
        body = bytearray(BODY)
        body[place] ^= 1
        changed = replace(signed.request, body=bytes(body))
        assert refusal(replace(signed, request=changed)).code == "InvalidSignatureException"


@pytest.mark.parametrize("name", ["host", "content-type", "x-amz-target", "x-amz-date"])
def test_every_changed_byte_of_a_signed_header_is_refused(name: str) -> None:
    signed = sign()
    for changed in flips(header(signed, name)):
        refusal(with_header(signed, name, changed))
    refusal(with_header(signed, name, None))
    twice = (*signed.request.headers, (name, header(signed, name)))
    refusal(replace(signed, request=replace(signed.request, headers=twice)))


def test_every_changed_byte_of_a_presigned_target_is_refused() -> None:
    signed = sign(expires=60)
    assert signed.request.target[0] == "/"
    for changed in flips(signed.request.target[1:]):
        refusal(replace(signed, request=replace(signed.request, target="/" + changed)))


@pytest.mark.parametrize(
    "changed", [{"method": "PUT"}, {"target": "/other"}, {"target": "/?a=b"}, {"body": BODY + b" "}]
)
@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_another_method_target_or_body_is_refused(changed: dict[str, str], expires: int | None) -> None:
    signed = sign(expires=expires)
    refusal(replace(signed, request=replace(signed.request, **changed)))  # type: ignore[arg-type]


def test_a_shorter_signature_is_refused() -> None:
    signed = sign()
    authorization = header(signed, "authorization")
    for shorter in (authorization[:-1], authorization + "0", authorization + "\u00e9"):
        assert refusal(with_header(signed, "authorization", shorter)).code == "InvalidSignatureException"


def test_a_wrong_secret_is_answered_with_the_strings_that_were_expected() -> None:
    signed = sign(secret="wrong")
    date, body_hash = header(signed, "x-amz-date"), sha256(BODY).hexdigest()
    canonical = (
        f"POST\n/\n\ncontent-type:application/x-amz-json-1.0\nhost:localhost:8000\nx-amz-date:{date}\n"
        f"x-amz-target:{TARGET}\n\ncontent-type;host;x-amz-date;x-amz-target\n{body_hash}"
    )
    assert code_and_text(signed) == (
        "InvalidSignatureException",
        f"{MISMATCH}\n\nThe Canonical String for this request should have been\n'{canonical}'\n\n"
        f"The String-to-Sign should have been\n'AWS4-HMAC-SHA256\n{date}\n"
        f"{date[:8]}/eu-central-1/dynamodb/aws4_request\n{sha256(canonical.encode()).hexdigest()}'\n",
    )


def test_an_unknown_key_is_refused() -> None:
    assert code_and_text(sign(key="STRANGER")) == (
        "UnrecognizedClientException",
        "The security token included in the request is invalid.",
    )
    assert refusal(sign(), keys={}).code == "UnrecognizedClientException"


@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_a_session_token_is_refused_after_the_signature(expires: int | None) -> None:
    assert code_and_text(sign(token=TOKEN, expires=expires)) == (
        "UnrecognizedClientException",
        "The security token included in the request is invalid",
    )
    assert code_and_text(sign(token=TOKEN, secret="wrong", expires=expires)) == (
        "InvalidSignatureException",
        MISMATCH,
    )


@pytest.mark.parametrize("stated", ["UNSIGNED-PAYLOAD", "STREAMING-AWS4-HMAC-SHA256-PAYLOAD", "0" * 64, ""])
def test_a_stated_hash_that_is_not_the_bodys_is_refused(stated: str) -> None:
    signed = sign(headers=[("X-Amz-Content-SHA256", stated)])
    assert refusal(signed).code == "InvalidSignatureException"
    assert refusal(with_header(sign(), "x-amz-content-sha256", stated)).code == "InvalidSignatureException"


def test_the_host_must_be_signed() -> None:
    text = "'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization."
    for names in ("content-type;x-amz-date;x-amz-target", ""):
        signed = with_authorization(sign(), "SignedHeaders=[^,]*", f"SignedHeaders={names}")
        assert code_and_text(signed) == ("InvalidSignatureException", text)


@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_every_header_of_amazons_must_be_signed(expires: int | None) -> None:
    assert code_and_text(with_header(sign(expires=expires), "x-amz-meta-data", "added")) == (
        "InvalidSignatureException",
        "'X-Amz-Meta-Data' must be a 'SignedHeader' in the AWS Authorization.",
    )


@pytest.mark.parametrize("name", ["a%0Ab", "a%20b", "a:b", "%00"])
def test_what_cannot_be_the_name_of_a_header_cannot_be_signed(name: str) -> None:
    signed = with_target(sign(expires=60), "SignedHeaders=", f"SignedHeaders={name}%3B")
    assert code_and_text(signed) == ("InvalidSignatureException", MISMATCH)


# Time


def basic(at: float) -> str:
    return (datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=at)).strftime("%Y%m%dT%H%M%SZ")


@pytest.mark.parametrize("later", [-300, -299.5, 0, 299.5, 300])
@pytest.mark.parametrize("expires", [None, 300, 3600], ids=["header", "presigned", "presigned long"])
def test_five_minutes_either_way_are_accepted(later: float, expires: int | None) -> None:
    verify(sign(expires=expires), later=later)


@pytest.mark.parametrize("expires", [None, 3600], ids=["header", "presigned"])
def test_an_older_signature_has_expired(expires: int | None) -> None:
    signed = sign(expires=expires)
    assert code_and_text(signed, later=301) == (
        "InvalidSignatureException",
        f"Signature expired: {basic(signed.at)} is now earlier than {basic(signed.at + 1)} "
        f"({basic(signed.at + 301)} - 5 min.)",
    )


@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_a_later_signature_is_not_yet_current(expires: int | None) -> None:
    signed = sign(expires=expires)
    assert code_and_text(signed, later=-301) == (
        "InvalidSignatureException",
        f"Signature not yet current: {basic(signed.at)} is still later than {basic(signed.at - 1)} "
        f"({basic(signed.at - 301)} + 5 min.)",
    )


def test_a_presigned_request_may_expire_sooner() -> None:
    verify(sign(expires=60), later=60)
    assert "- 1 min.)" in refusal(sign(expires=60), later=61).message
    assert "- 90 sec.)" in refusal(sign(expires=90), later=91).message


@pytest.mark.parametrize("expires", ["", "-1", "1.5", "9" * 5000, "%C2%B2"])
def test_an_expiry_that_is_not_a_number_is_rejected(expires: str) -> None:
    signed = with_target(sign(expires=60), "Expires=60", f"Expires={expires}")
    assert code_and_text(signed) == ("IncompleteSignatureException", "X-Amz-Expires should be a number")


@pytest.mark.parametrize(
    "date",
    [
        "201",
        "20130609T100015",
        "20130609T100015Z0",
        "20131309T100015Z",
        "20130609T100060Z",
        "00000101T000000Z",
        "2013-06-09T10:00:15Z",
        "２０130609T100015Z",
        "Sun, 09 Foo 2013 10:00:15 GMT",
        "yesterday",
    ],
)
def test_a_date_in_another_form_is_refused(date: str) -> None:
    assert code_and_text(with_header(sign(), "x-amz-date", date)) == (
        "IncompleteSignatureException",
        f"Date must be in ISO-8601 'basic format'. Got '{date}'. See http://en.wikipedia.org/wiki/ISO_8601",
    )


def test_the_first_year_has_expired() -> None:
    assert (
        "Signature expired: 00010101T000000Z is"
        in refusal(with_header(sign(), "x-amz-date", "00010101T000000Z")).message
    )


# Missing and malformed parts


@pytest.mark.parametrize(
    "authorization", [None, "", "   ", "Basic YTpi", "AWS key:signature", "aws4-hmac-sha256 a=b"]
)
def test_a_request_without_a_signature_is_refused(authorization: str | None) -> None:
    headers = {} if authorization is None else {"authorization": authorization}
    assert code_and_text(unsigned(**headers)) == (
        "MissingAuthenticationTokenException",
        "Request is missing Authentication Token",
    )


def test_header_and_query_together_are_refused() -> None:
    signed = with_target(sign(), r"\Z", "?X-Amz-Algorithm")
    assert code_and_text(signed) == (
        "InvalidSignatureException",
        "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header.",
    )


CREDENTIAL, SIGNATURE, SIGNED_HEADERS = (
    f"Authorization header requires '{name}' parameter. "
    for name in ("Credential", "Signature", "SignedHeaders")
)
DATE = "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "


@pytest.mark.parametrize(
    "authorization, missing",
    [
        ("AWS4-", CREDENTIAL + SIGNATURE + SIGNED_HEADERS + DATE),
        ("AWS4-HMAC-SHA256 Signature=b", CREDENTIAL + SIGNED_HEADERS + DATE),
        ("AWS4-HMAC-SHA256 Credential=,Signature=b,SignedHeaders=", CREDENTIAL + DATE),
        ("AWS4-HMAC-SHA256 Credential=a SignedHeaders=c", SIGNATURE + DATE),
        ("AWS4-HMAC-SHA256 Credential=a,Signature=b,SignedHeaders=c", DATE),
    ],
)
def test_the_missing_parts_of_the_header_are_named(authorization: str, missing: str) -> None:
    hashed = f"(Hashed with SHA-256 and encoded with Base64) Authorization={fingerprint(authorization)}"
    assert code_and_text(unsigned(authorization=authorization)) == (
        "IncompleteSignatureException",
        missing + hashed,
    )
    dated = unsigned(authorization=authorization, date="Sun, 09 Jun 2013 10:00:15 GMT")
    assert DATE not in refusal(dated).message


def test_a_part_without_equal_sign_is_refused_first() -> None:
    authorization = "AWS4-HMAC-SHA256 Signature=b,    Credential,    SignedHeaders"
    assert code_and_text(unsigned(authorization=authorization)) == (
        "IncompleteSignatureException",
        "Invalid key=value pair (missing equal-sign) in Authorization header (hashed with SHA-256 and "
        f"encoded with Base64): '{fingerprint(authorization)}'.",
    )


@pytest.mark.parametrize("name", ["Algorithm", "Credential", "Signature", "SignedHeaders", "Date"])
def test_the_missing_parts_of_the_query_are_named(name: str) -> None:
    signed = with_target(sign(expires=60), f"X-Amz-{name}=[^&]*", f"X-Amz-{name}=")
    assert code_and_text(signed) == (
        "IncompleteSignatureException",
        f"AWS query-string parameters must include 'X-Amz-{name}'. Re-examine the query-string parameters.",
    )


def test_all_missing_parts_of_the_query_are_named_at_once() -> None:
    signed = with_target(unsigned(), "/", "/?X-Amz-Algorithm=AWS4-HMAC-SHA256")
    assert refusal(signed).message == "".join(
        f"AWS query-string parameters must include 'X-Amz-{name}'. "
        for name in ("Credential", "Signature", "SignedHeaders", "Date")
    ) + ("Re-examine the query-string parameters.")


@pytest.mark.parametrize("expires", [None, 60], ids=["header", "presigned"])
def test_another_algorithm_is_refused(expires: int | None) -> None:
    signed = sign(expires=expires)
    change = with_authorization if expires is None else with_target
    assert code_and_text(change(signed, "AWS4-HMAC-SHA256", "AWS4-HMAC-SHA25")) == (
        "IncompleteSignatureException",
        "Unsupported AWS 'algorithm': 'AWS4-HMAC-SHA25' (only AWS4-HMAC-SHA256 for now). ",
    )


@pytest.mark.parametrize("credential", ["a/b/c/d", "a", "a/b/c/d/", "a/b/c/d/e/f", "/"])
def test_a_credential_has_five_parts(credential: str) -> None:
    assert code_and_text(with_authorization(sign(), "Credential=[^,]*", f"Credential={credential}")) == (
        "IncompleteSignatureException",
        "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
        f"got '{credential}'",
    )


def test_everything_wrong_in_the_scope_is_named_at_once() -> None:
    signed = with_authorization(sign(), "Credential=[^,]*", "Credential=a/b//d/e")
    date = basic(signed.at)
    assert code_and_text(signed) == (
        "InvalidSignatureException",
        "Credential should be scoped to a valid region, not ''. "
        "Credential should be scoped to correct service: 'dynamodb'. "
        "Credential should be scoped with a valid terminator: 'aws4_request', not 'e'. "
        "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
        f"'b' != '{date[:8]}', from '{date}'.",
    )


def test_another_service_is_refused() -> None:
    assert code_and_text(sign(service="s3")) == (
        "InvalidSignatureException",
        "Credential should be scoped to correct service: 'dynamodb'. ",
    )


@given(st.text() | st.from_regex(r"AWS4-HMAC-SHA256( *(Credential|Signature|SignedHeaders)=?[^ ]*,?){0,4}"))
def test_any_authorization_header_is_answered_with_a_service_error(authorization: str) -> None:
    refusal(unsigned(authorization=authorization, x_amz_date="20130609T100015Z"))


@given(
    st.lists(
        st.sampled_from(["/", "f", "20130609", "dynamodb", "aws4_request", KEY, "é", "%", "\n"]), max_size=12
    ),
    st.lists(st.sampled_from(["host", "x-amz-date", ";", "é", "\n", ":", ""]), max_size=8),
    st.text(max_size=20),
)
def test_any_query_is_answered_with_a_service_error(
    credential: list[str], names: list[str], rest: str
) -> None:
    target = (
        f"/?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Date=20130609T100015Z&X-Amz-Signature={rest}"
        f"&X-Amz-Credential={KEY}/20130609/{''.join(credential)}&X-Amz-SignedHeaders={''.join(names)}&{rest}"
    )
    signed = unsigned()
    refusal(replace(signed, request=replace(signed.request, target=target)))


@given(st.binary(max_size=200), st.sampled_from([None, 60]))
def test_any_body_is_accepted_as_signed_and_as_nothing_else(body: bytes, expires: int | None) -> None:
    signed = sign(body, expires=expires)
    verify(signed)
    refusal(replace(signed, request=replace(signed.request, body=body + b"\0")))


def test_no_error_and_no_repr_shows_a_secret() -> None:
    refused = [
        refusal(sign(secret="wrong")),
        refusal(sign(key="STRANGER")),
        refusal(sign(token=TOKEN)),
        refusal(sign(token=TOKEN, secret="wrong")),
        refusal(sign(token=TOKEN, secret="wrong", expires=60)),
        refusal(with_target(sign(), r"\Z", f"?x-amz-security-token={TOKEN}")),
        refusal(sign(), later=1000),
        refusal(unsigned(authorization=f"AWS4-HMAC-SHA256 {SECRET}")),
        refusal(unsigned(authorization=f"AWS4-HMAC-SHA256 Secret={SECRET}")),
    ]
    shown = [f"{error} {error!r} {error.body()} {error.__context__!r}" for error in refused]
    signed = sign(token=TOKEN, expires=60)
    shown += [repr(signed.request), repr(Verifier({KEY: SECRET}, clock=lambda: 0.0))]
    assert not [text for text in shown if SECRET in text or TOKEN in text]
    assert signed.request.target.rpartition("=")[2] not in repr(signed.request)


# Files of keys


def test_keys_are_read_one_per_line() -> None:
    text = f"\ufeff# keys\n\n{KEY} {SECRET}\n  local\tsecret=with=signs   # the tests\r\n; another comment\n"
    assert read_keys(text) == {KEY: SECRET, "local": "secret=with=signs"}


def test_keys_are_read_from_profiles_after_the_plain_lines() -> None:
    text = f"""
        local secret
        [default]
        aws_access_key_id = {KEY}
        # between
        AWS_SECRET_ACCESS_KEY={SECRET}
        region = eu-central-1
        [profile only-settings]
        output = json
        [other]
        aws_secret_access_key = s
        aws_access_key_id = o
    """
    assert read_keys(text) == {"local": "secret", KEY: SECRET, "o": "s"}


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "The key file has no keys"),
        ("# nothing\n[default]\nregion = x", "The key file has no keys"),
        (f"\n{SECRET}", "Key file, line 2: expected `ACCESS_KEY SECRET`, or a profile: [name]."),
        (f"{KEY} # {SECRET}", "Key file, line 1: expected `ACCESS_KEY SECRET`"),
        (f"{KEY} {SECRET} more", "Key file, line 1: expected `ACCESS_KEY SECRET`"),
        (f"aws_access_key_id = {SECRET}", "Key file, line 1: expected `ACCESS_KEY SECRET`"),
        (f"{KEY} {SECRET}\n{KEY} other", "Key file, line 2: duplicate access key."),
        (f"a/b {SECRET}", "Key file, line 1: an access key must be visible ASCII"),
        (f"a,b {SECRET}", "Key file, line 1: an access key must be visible ASCII"),
        (f"{KEY} {SECRET}\u20ac", "Key file, line 1: a secret must be visible ASCII"),
        (f"[default\n{KEY} {SECRET}", "Key file, line 1: expected a profile name in brackets"),
        (f"[default]\n{KEY} {SECRET}", "Key file, line 2: expected `name = value` within a profile"),
        (f"[a]\naws_access_key_id={KEY}\n[b]", "Key file, line 1: the profile has no aws_secret"),
        (f"#\n[a]\naws_secret_access_key={SECRET}", "Key file, line 2: the profile has no aws_acc"),
        (f"[a]\naws_session_token={TOKEN}", "Key file, line 2: keys with a session token"),
        (f"[a]\nregion=x\nregion={SECRET}", "Key file, line 3: duplicate region in the profile."),
        (f"[a]\naws_access_key_id=\naws_secret_access_key={SECRET}", "Key file, line 1: an access"),
    ],
)
def test_a_line_that_cannot_be_read_is_named_by_its_number(text: str, message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        read_keys(text)
    assert str(caught.value).startswith(message)
    assert SECRET not in str(caught.value)


@given(st.text(alphabet=st.sampled_from("ab=[]# ;\n\u00e9/"), max_size=40))
def test_any_file_of_keys_is_read_or_refused_as_declared(text: str) -> None:
    try:
        keys = read_keys(text)
    except DeclarationError:
        return
    assert keys
    assert all(key and secret for key, secret in keys.items())
