"""Verify AWS Signature Version 4 as DynamoDB does, in the Authorization header or a presigned query.

The order of the checks and every text are AWS's. Like DynamoDB, it accepts a request that arrives twice
within the window. It hashes the body without parsing it, and decides no permissions. No error and no repr
shows a secret, a signing key or a session token.
"""

from __future__ import annotations

import hmac
import re
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from threading import Lock

from solotable.errors import ServiceError

from .canonical_request import (
    Headers,
    Parameters,
    canonical_request,
    group_headers,
    on_wire,
    parse_query,
    split_target,
)
from .key_files import read_keys

__all__ = ["SignedRequest", "Verifier", "read_keys"]

_ALGORITHM = "AWS4-HMAC-SHA256"
# The SDKs sign requests to DynamoDB Streams for the service `dynamodb` too.
_SERVICE = "dynamodb"
_TERMINATOR = "aws4_request"
_WINDOW_SECONDS = 300
_MAX_SIGNING_KEYS = 256

_BASIC = "%Y%m%dT%H%M%SZ"
_BASIC_DATE = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})T([0-9]{2})([0-9]{2})([0-9]{2})Z")
_HTTP_DATE = re.compile(
    r"(?:[A-Za-z]{3}, )?([0-9]{1,2}) ([A-Z][a-z]{2}) ([0-9]{4}) ([0-9]{2}):([0-9]{2}):([0-9]{2})"
    r" (?:GMT|UTC|[+-]0000)"
)
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9a-z-]+")
# The signature covers these without a signed header: the string to sign contains the date, and the
# verifier compares the hash with the body (aws-sdk-go sends it unsigned).
_COVERED = frozenset({"x-amz-date", "x-amz-content-sha256"})

_MISMATCH = (
    "The request signature we calculated does not match the signature you provided. Check your AWS Secret "
    "Access Key and signing method. Consult the service documentation for details."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignedRequest:
    """A request as sent: header names in lower case, the body with its Content-Encoding."""

    method: str
    target: str = field(repr=False)  # a presigned target contains the signature
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Claim:
    """The unverified statement of a request about its signature."""

    algorithm: str
    credential: str
    signed: tuple[str, ...]
    signature: str = field(repr=False)
    date: str
    window_seconds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scope:
    """The parts of a credential."""

    key: str
    date: str
    region: str
    service: str
    terminator: str

    @property
    def text(self) -> str:
        return f"{self.date}/{self.region}/{self.service}/{self.terminator}"


class Verifier:
    """Verifies requests with a map of access key ids to secrets."""

    def __init__(self, keys: Mapping[str, str], *, clock: Callable[[], float]) -> None:
        self._keys = dict(keys)
        self._clock = clock
        self._signing_keys: dict[_Scope, bytes] = {}
        # A thread verifies large bodies.
        self._lock = Lock()

    def verify(self, request: SignedRequest) -> None:
        """Raise DynamoDB's error if the signature is wrong."""
        path, query = split_target(request.target)
        parameters = parse_query(query)
        headers = group_headers(request.headers)
        # DynamoDB: the checks run in this order.
        claim = _claim(headers, parameters)
        moment = self._moment(claim)
        _check_signed_headers(claim, headers)
        scope = _scope(claim, moment)
        secret = self._keys.get(scope.key)
        if secret is None:
            raise _unrecognized("The security token included in the request is invalid.")
        body_hash = sha256(request.body).hexdigest()
        canonical = canonical_request(
            method=request.method,
            path=path,
            parameters=parameters,
            headers=headers,
            signed=claim.signed,
            body_hash=body_hash,
        )
        to_sign = f"{_ALGORITHM}\n{moment}\n{scope.text}\n{sha256(canonical).hexdigest()}"
        known = self._signing_keys.get(scope)
        signing_key = known or _signing_key(secret, scope)
        expected = hmac.digest(signing_key, on_wire(to_sign), "sha256").hex()
        matches = hmac.compare_digest(expected.encode(), on_wire(claim.signature))
        tokens = _from_headers_and_query(headers, parameters, "x-amz-security-token", b"X-Amz-Security-Token")
        # DynamoDB: the payload's hash is always that of the body, so UNSIGNED-PAYLOAD does not match.
        stated = _from_headers_and_query(headers, parameters, "x-amz-content-sha256", b"X-Amz-Content-Sha256")
        if not matches or any(value != body_hash for value in stated):
            raise _mismatch(canonical, to_sign)
        if tokens:
            # DynamoDB: without the full stop, unlike the text for an unknown key.
            raise _unrecognized("The security token included in the request is invalid")
        if known is None:
            self._remember(scope, signing_key)

    def _moment(self, claim: _Claim) -> str:
        """Return the request's date in basic format; raise if it is outside the window."""
        signed = _instant(claim.date)
        if signed is None:
            raise _incomplete(
                f"Date must be in ISO-8601 'basic format'. Got '{claim.date}'. "
                "See http://en.wikipedia.org/wiki/ISO_8601"
            )
        now = datetime.fromtimestamp(int(self._clock()), UTC)
        earliest = now - timedelta(seconds=claim.window_seconds)
        latest = now + timedelta(seconds=_WINDOW_SECONDS)
        moment = _basic(signed)
        if signed < earliest:
            minutes, seconds = divmod(claim.window_seconds, 60)
            length = f"{claim.window_seconds} sec." if seconds else f"{minutes} min."
            raise _invalid_signature(
                f"Signature expired: {moment} is now earlier than {_basic(earliest)} "
                f"({_basic(now)} - {length})"
            )
        if signed > latest:
            raise _invalid_signature(
                f"Signature not yet current: {moment} is still later than {_basic(latest)} "
                f"({_basic(now)} + {_WINDOW_SECONDS // 60} min.)"
            )
        return moment

    def _remember(self, scope: _Scope, signing_key: bytes) -> None:
        # Only scopes with a verified request are remembered, so a stranger cannot evict them.
        with self._lock:
            while len(self._signing_keys) >= _MAX_SIGNING_KEYS:
                del self._signing_keys[next(iter(self._signing_keys))]
            self._signing_keys[scope] = signing_key


def _claim(headers: Headers, parameters: Parameters) -> _Claim:
    authorization = next(iter(headers.get("authorization", ())), "").strip()
    presigned = any(name == b"X-Amz-Algorithm" for name, _ in parameters)
    if authorization and presigned:
        raise _invalid_signature(
            "Found both 'X-Amz-Algorithm' as a query-string param and 'Authorization' as HTTP header."
        )
    if presigned:
        return _query_claim(parameters)
    if not authorization.startswith("AWS4-"):
        raise ServiceError("MissingAuthenticationTokenException", "Request is missing Authentication Token")
    return _header_claim(authorization, headers)


def _header_claim(authorization: str, headers: Headers) -> _Claim:
    algorithm, *pairs = filter(None, re.split(r"[\s,]+", authorization))
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            # DynamoDB: older texts repeated the header itself; now it is its hash.
            raise _incomplete(
                "Invalid key=value pair (missing equal-sign) in Authorization header "
                f"(hashed with SHA-256 and encoded with Base64): '{_fingerprint(authorization)}'."
            )
        given[name] = value
    date = next((headers[name][0] for name in ("x-amz-date", "date") if headers.get(name)), "").strip()
    missing = [
        f"Authorization header requires '{name}' parameter. "
        for name in ("Credential", "Signature", "SignedHeaders")
        # DynamoDB: an empty SignedHeaders counts as present, and fails later for the missing host.
        if not given.get(name) and not (name == "SignedHeaders" and name in given)
    ]
    if not date:
        missing.append(
            "Authorization header requires existence of either a 'X-Amz-Date' or a 'Date' header. "
        )
    if missing:
        raise _incomplete(
            f"{''.join(missing)}(Hashed with SHA-256 and encoded with Base64) "
            f"Authorization={_fingerprint(authorization)}"
        )
    return _Claim(
        algorithm=algorithm,
        credential=given["Credential"],
        signed=_names(given["SignedHeaders"]),
        signature=given["Signature"],
        date=date,
        window_seconds=_WINDOW_SECONDS,
    )


def _query_claim(parameters: Parameters) -> _Claim:
    given: dict[str, str] = {}
    for name, value in parameters:
        given.setdefault(name.decode("latin-1"), value.decode("latin-1"))
    missing = [
        f"AWS query-string parameters must include '{name}'. "
        for name in (
            "X-Amz-Algorithm",
            "X-Amz-Credential",
            "X-Amz-Signature",
            "X-Amz-SignedHeaders",
            "X-Amz-Date",
        )
        if not given.get(name)
    ]
    if missing:
        raise _incomplete(f"{''.join(missing)}Re-examine the query-string parameters.")
    expires = given.get("X-Amz-Expires", str(_WINDOW_SECONDS))
    if not re.fullmatch(r"[0-9]{1,9}", expires):
        raise _incomplete("X-Amz-Expires should be a number")
    return _Claim(
        algorithm=given["X-Amz-Algorithm"],
        credential=given["X-Amz-Credential"],
        signed=_names(given["X-Amz-SignedHeaders"]),
        signature=given["X-Amz-Signature"],
        date=given["X-Amz-Date"],
        # The signer may shorten the window, but not extend it.
        window_seconds=min(int(expires), _WINDOW_SECONDS),
    )


def _names(signed_headers: str) -> tuple[str, ...]:
    return tuple(sorted({name for name in signed_headers.lower().split(";") if name}))


def _check_signed_headers(claim: _Claim, headers: Headers) -> None:
    if "host" not in claim.signed:
        raise _invalid_signature("'Host' or ':authority' must be a 'SignedHeader' in the AWS Authorization.")
    # Content-Type may be unsigned: the JavaScript (v2) and Go SDKs do not sign it.
    for name in headers:
        if name.startswith("x-amz-") and name not in _COVERED and name not in claim.signed:
            title = "-".join(part.capitalize() for part in name.split("-"))
            raise _invalid_signature(f"'{title}' must be a 'SignedHeader' in the AWS Authorization.")
    # A line break in a name could give two different requests the same canonical form.
    if not all(_HEADER_NAME.fullmatch(name) for name in claim.signed):
        raise _invalid_signature(_MISMATCH)


def _scope(claim: _Claim, moment: str) -> _Scope:
    if claim.algorithm != _ALGORITHM:
        raise _incomplete(
            f"Unsupported AWS 'algorithm': '{claim.algorithm}' (only AWS4-HMAC-SHA256 for now). "
        )
    # DynamoDB: slashes at the end are ignored.
    parts = claim.credential.rstrip("/").split("/")
    if len(parts) != 5:
        raise _incomplete(
            "Credential must have exactly 5 slash-delimited elements, e.g. keyid/date/region/service/term, "
            f"got '{claim.credential}'"
        )
    key, date, region, service, terminator = parts
    wrong = ""
    if not region:
        wrong += f"Credential should be scoped to a valid region, not '{region}'. "
    if service != _SERVICE:
        wrong += f"Credential should be scoped to correct service: '{_SERVICE}'. "
    if terminator != _TERMINATOR:
        wrong += f"Credential should be scoped with a valid terminator: '{_TERMINATOR}', not '{terminator}'. "
    if date != moment[:8]:
        wrong += (
            "Date in Credential scope does not match YYYYMMDD from ISO-8601 version of date from HTTP: "
            f"'{date}' != '{moment[:8]}', from '{moment}'."
        )
    if wrong:
        raise _invalid_signature(wrong)
    return _Scope(key=key, date=date, region=region, service=service, terminator=terminator)


def _instant(text: str) -> datetime | None:
    try:
        if basic := _BASIC_DATE.fullmatch(text):
            year, month, day, hour, minute, second = map(int, basic.groups())
        elif http := _HTTP_DATE.fullmatch(text):
            year, month, day = int(http[3]), _MONTHS.index(http[2]) + 1, int(http[1])
            hour, minute, second = int(http[4]), int(http[5]), int(http[6])
        else:
            return None
        return datetime(year, month, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None


def _basic(moment: datetime) -> str:
    # strftime does not pad years before 1000 everywhere.
    return moment.strftime(_BASIC).rjust(16, "0")


def _signing_key(secret: str, scope: _Scope) -> bytes:
    key = b"AWS4" + secret.encode()
    for part in (scope.date, scope.region, scope.service, scope.terminator):
        key = hmac.digest(key, on_wire(part), "sha256")
    return key


def _from_headers_and_query(
    headers: Headers, parameters: Parameters, header: str, parameter: bytes
) -> list[str]:
    given = [value.strip() for value in headers.get(header, ())]
    return given + [value.decode("latin-1") for name, value in parameters if name == parameter]


def _mismatch(canonical: bytes, to_sign: str) -> ServiceError:
    # DynamoDB answers with or without the two strings; omit them if they contain a session token.
    if b"x-amz-security-token" in canonical.lower():
        return _invalid_signature(_MISMATCH)
    return _invalid_signature(
        f"{_MISMATCH}\n\nThe Canonical String for this request should have been\n"
        f"'{canonical.decode('latin-1')}'\n\nThe String-to-Sign should have been\n'{to_sign}'\n"
    )


def _fingerprint(text: str) -> str:
    return b64encode(sha256(on_wire(text)).digest()).decode()


def _incomplete(message: str) -> ServiceError:
    return ServiceError("IncompleteSignatureException", message)


def _invalid_signature(message: str) -> ServiceError:
    return ServiceError("InvalidSignatureException", message)


def _unrecognized(message: str) -> ServiceError:
    return ServiceError("UnrecognizedClientException", message)
