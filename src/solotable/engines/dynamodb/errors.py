"""Errors of the way, ours or botocore's -> the library's: the only place that knows all of them.

What DynamoDB answers keeps its code and its words. For what never reached it, the text is one
sentence with a way out, and the class says whether a write may have been done all the same.
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
from .http.error_body import Refused, code_and_message, further_members
from .http.exchange import Lost, Unreachable, Unsent
from .http.response import Unreadable
from .idempotency import only_reads

_THROTTLES: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)
_VARIABLES: Final = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
_UNDER_TOKENS: Final = frozenset({"ExecuteTransaction", "TransactWriteItems"})


@dataclass(frozen=True, slots=True)
class Sent:
    """A request in wire form, as it was to be sent."""

    operation: str
    members: dict[str, Any]


def explained(
    fault: Exception, sent: Sent | None, endpoint_url: str, *, profile: str | None = None
) -> SolotableError | None:
    """Return the library's error for one of the way, None for what is neither its nor the network's.

    `sent` is None while there is no request yet.
    """
    match fault:
        case Refused():
            return refusal(*code_and_message(fault.status, fault.body), fault.status, fault.body)
        case Unreachable():
            return _unreachable(fault.cause, endpoint_url)
        case Unsent():
            return TransportError(
                f"{endpoint_url} hung up before the whole request was sent ({_reason(fault)}), so nothing "
                "was done; ask again."
            )
        case Lost() | Unreadable():
            return _lost(sent, endpoint_url, fault)
        case _:
            return _of_botocore(fault, sent, endpoint_url, profile)


def _of_botocore(
    fault: Exception, sent: Sent | None, endpoint_url: str, profile: str | None
) -> SolotableError | None:
    from botocore import exceptions as botocore
    from botocore.parsers import ResponseParserError

    match fault:
        case botocore.ClientError():
            parsed = fault.response.get("Error", {})
            status = fault.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
            code, message = parsed.get("Code") or str(status), parsed.get("Message") or ""
            return refusal(code, message, status, fault.response.get(RAW, b""))
        case botocore.NoRegionError():
            return _no_region(profile)
        case botocore.NoCredentialsError():
            return NotConfigured(NO_CREDENTIALS)
        case botocore.EndpointConnectionError():
            return TransportError(_nobody_there(endpoint_url))
        case botocore.ConnectTimeoutError():
            return _unreachable(TimeoutError(), endpoint_url)
        case botocore.ProxyConnectionError():
            return TransportError(
                f"The proxy on the way to {endpoint_url} does not answer; check HTTP_PROXY and HTTPS_PROXY."
            )
        case botocore.SSLError() if (certificate := _certificate(fault)) is not None:
            return _unreachable(certificate, endpoint_url)
        case botocore.HTTPClientError() | botocore.ConnectionError() | botocore.ResponseStreamingError():
            return _lost(sent, endpoint_url, fault)
        case botocore.ChecksumError() | ResponseParserError():
            return _lost(sent, endpoint_url, fault)
        case botocore.BotoCoreError():
            return NotConfigured(f"botocore cannot use its configuration: {fault}")
        case _:
            return None


def refusal(code: str, message: str, status: int, body: bytes) -> ServiceError | NotConfigured:
    """Return the error of an answer that is no success; further members come from its body."""
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


def _lost(sent: Sent | None, endpoint_url: str, fault: Exception) -> TransportError:
    if sent is None or only_reads(sent.operation, sent.members):
        return TransportError(f"{endpoint_url} gave no whole answer ({_reason(fault)}); ask again.")
    # DynamoDB: under the same token it does the same transaction once.
    token = "ClientRequestToken" in sent.members and sent.operation in _UNDER_TOKENS
    way_out = "send it again with the same token" if token else "read what is stored before writing again"
    return OutcomeUnknown(
        f"{endpoint_url} was sent a write and gave no whole answer ({_reason(fault)}): "
        f"it may have been done; {way_out}.",
        retryable=token,
    )


def _unreachable(cause: OSError, endpoint_url: str) -> TransportError:
    match cause:
        case TimeoutError():
            return TransportError(
                f"{endpoint_url} did not take a connection in time; check the address, the network and "
                "any firewall on the way."
            )
        case ssl.SSLCertVerificationError():
            return TransportError(
                f"{endpoint_url} has a certificate that is not trusted here ({_reason(cause)}); "
                "name its authority with AWS_CA_BUNDLE.",
                retryable=False,
            )
        case ssl.SSLError():
            return TransportError(
                f"{endpoint_url} and this machine found no way to encrypt ({_reason(cause)}); "
                "check that it is an https address."
            )
        case _:
            return TransportError(_nobody_there(endpoint_url))


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


def _nobody_there(endpoint_url: str) -> str:
    source = next((f" (from {name})" for name in _VARIABLES if os.environ.get(name) == endpoint_url), "")
    parts = urlsplit(endpoint_url)
    if parts.hostname in ("localhost", "127.0.0.1", "::1"):
        return (
            f"Nothing answers at {endpoint_url}{source}. Start it: solotable serve --port {parts.port or 80}"
        )
    return f"Nothing answers at {endpoint_url}{source}; check the address and the network."
