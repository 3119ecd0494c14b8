"""Translate errors of the transports and of botocore into the library's errors.

An error of DynamoDB keeps its code and its text. An error without a reply says how to fix it, and its class
says whether a write may have been executed.
"""

from __future__ import annotations

import os
import ssl
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from solotable.errors import (
    ConditionFailed,
    NotConfigured,
    OutcomeUnknown,
    ServiceError,
    SolotableError,
    TableNotFound,
    Throttled,
    TransactionCancelled,
    TransportError,
)

from .auth.credentials import EXPIRED, NO_CREDENTIALS
from .http.botocore_transport import RAW
from .http.error_body import ErrorResponse, code_and_message, further_members
from .http.exchange import ConnectFailed, RequestNotSent, ResponseLost
from .http.response import InvalidResponse
from .idempotency import is_read_only

_THROTTLES: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)
_VARIABLES: Final = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
_WITH_TOKEN: Final = frozenset({"ExecuteTransaction", "TransactWriteItems"})


@dataclass(frozen=True, slots=True)
class WireRequest:
    """A request in wire form."""

    operation: str
    members: dict[str, Any]


def translate_error(
    fault: Exception, sent: WireRequest | None, endpoint_url: str, *, profile: str | None = None
) -> SolotableError | None:
    """Return the library's error for a transport's error; None for an unrelated exception.

    `sent` is None before the first request.
    """
    match fault:
        case ErrorResponse():
            return service_error(*code_and_message(fault.status, fault.body), fault.status, fault.body)
        case ConnectFailed():
            return _connect_failed(fault.cause, endpoint_url)
        case RequestNotSent():
            return TransportError(
                f"{endpoint_url} closed the connection before the whole request was sent "
                f"({_reason(fault)}), so it was not executed; retry."
            )
        case ResponseLost() | InvalidResponse():
            return _response_lost(sent, endpoint_url, fault)
        case _:
            return _translate_botocore_error(fault, sent, endpoint_url, profile)


def _translate_botocore_error(
    fault: Exception, sent: WireRequest | None, endpoint_url: str, profile: str | None
) -> SolotableError | None:
    from botocore import exceptions as botocore
    from botocore.parsers import ResponseParserError

    match fault:
        case botocore.ClientError():
            parsed = fault.response.get("Error", {})
            status = fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
            code, message = parsed.get("Code") or str(status), parsed.get("Message") or ""
            return service_error(code, message, status, fault.response.get(RAW, b""))
        case botocore.NoRegionError():
            return _no_region(profile)
        case botocore.NoCredentialsError():
            return NotConfigured(NO_CREDENTIALS)
        case botocore.EndpointConnectionError():
            return TransportError(_no_listener(endpoint_url))
        case botocore.ConnectTimeoutError():
            return _connect_failed(TimeoutError(), endpoint_url)
        case botocore.ProxyConnectionError():
            return TransportError(
                f"The proxy for {endpoint_url} does not answer; check HTTP_PROXY and HTTPS_PROXY."
            )
        case botocore.SSLError() if (certificate := _certificate(fault)) is not None:
            return _connect_failed(certificate, endpoint_url)
        case botocore.HTTPClientError() | botocore.ConnectionError() | botocore.ResponseStreamingError():
            return _response_lost(sent, endpoint_url, fault)
        case botocore.ChecksumError() | ResponseParserError():
            return _response_lost(sent, endpoint_url, fault)
        case botocore.BotoCoreError():
            return NotConfigured(f"botocore rejects its configuration: {fault}")
        case _:
            return None


def service_error(code: str, message: str, status: int, body: bytes) -> ServiceError | NotConfigured:
    """Return the error for an error response; further members come from its body."""
    members = further_members(body)
    match code:
        case "ConditionalCheckFailedException":
            return ConditionFailed(message, item=members.get("Item"))
        case "TransactionCanceledException":
            return TransactionCancelled(members.get("CancellationReasons", []))
        case "ResourceNotFoundException":
            return TableNotFound(message)
        case "ExpiredToken" | "ExpiredTokenException":
            return NotConfigured(EXPIRED)
    kind = Throttled if code in _THROTTLES else ServiceError
    error = kind(code, message, status=status)
    error.members = members
    return error


def _response_lost(sent: WireRequest | None, endpoint_url: str, fault: Exception) -> TransportError:
    if sent is None or is_read_only(sent.operation, sent.members):
        return TransportError(f"{endpoint_url} sent no whole response ({_reason(fault)}); retry.")
    # DynamoDB: it executes a transaction once per token.
    has_token = "ClientRequestToken" in sent.members and sent.operation in _WITH_TOKEN
    advice = "retry with the same token" if has_token else "read the stored item before you write again"
    return OutcomeUnknown(
        f"{endpoint_url} received a write and sent no whole response ({_reason(fault)}): "
        f"the write may have been executed; {advice}.",
        retryable=has_token,
    )


def _connect_failed(cause: OSError, endpoint_url: str) -> TransportError:
    match cause:
        case TimeoutError():
            return TransportError(
                f"Connecting to {endpoint_url} timed out; check the address, the network and the firewall."
            )
        case ssl.SSLCertVerificationError():
            return TransportError(
                f"The certificate of {endpoint_url} is not trusted ({_reason(cause)}); "
                "set AWS_CA_BUNDLE to a file with its CA certificate.",
                retryable=False,
            )
        case ssl.SSLError():
            return TransportError(
                f"The TLS handshake with {endpoint_url} failed ({_reason(cause)}); "
                "check that it is an https address."
            )
        case _:
            return TransportError(_no_listener(endpoint_url))


def _reason(fault: Exception) -> str:
    cause = getattr(fault, "kwargs", {}).get("error") or fault
    return str(cause).rstrip(".") or type(cause).__name__


def _certificate(fault: Exception) -> ssl.SSLCertVerificationError | None:
    cause: Any = getattr(fault, "kwargs", {}).get("error")
    seen = [cause, *getattr(cause, "args", ())]
    return next((one for one in seen if isinstance(one, ssl.SSLCertVerificationError)), None)


def _no_region(profile: str | None) -> NotConfigured:
    return NotConfigured(
        "No AWS region. Looked in: the region= argument, AWS_DEFAULT_REGION, "
        f'profile "{profile or "default"}", AWS_REGION. '
        "Try: region=eu-west-1, or sqlite:///file.db to stay local."
    )


def _no_listener(endpoint_url: str) -> str:
    source = next((f" (from {name})" for name in _VARIABLES if os.environ.get(name) == endpoint_url), "")
    parts = urlsplit(endpoint_url)
    if parts.hostname in ("localhost", "127.0.0.1", "::1"):
        return (
            f"Nothing answers at {endpoint_url}{source}. Start it: solotable serve --port {parts.port or 80}"
        )
    return f"Nothing answers at {endpoint_url}{source}; check the address and the network."
