"""botocore's errors -> ours: the only place that knows both.

What DynamoDB answers keeps its code and its words. For what never reached it, the text is one
sentence with a way out, and the class says whether a write may have been done all the same.
"""

from __future__ import annotations

import os
import ssl
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
from solotable.protocol.requests import (
    BatchExecuteStatement,
    BatchGetItem,
    Control,
    ExecuteStatement,
    ExecuteTransaction,
    GetItem,
    Query,
    Request,
    Scan,
    TransactGetItems,
    TransactWriteItems,
)
from solotable.protocol.text import loads

from .channel import RAW, Unreadable

_READS: Final = (GetItem, Query, Scan, BatchGetItem, TransactGetItems)
_THROTTLES: Final = frozenset(
    {"ProvisionedThroughputExceededException", "RequestLimitExceeded", "ThrottlingException"}
)
_VARIABLES: Final = ("AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL")
_NO_CREDENTIALS: Final = (
    "No AWS credentials. Looked in: AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, the profile, single "
    "sign-on, credential_process, the container's role, the instance's role. "
    "Try: aws configure; local databases (sqlite:///file.db) need none."
)


def explained(
    fault: Exception, request: Request[Any] | None, endpoint_url: str, *, profile: str | None = None
) -> SolotableError | None:
    """Return our error for one of botocore's, None for what is neither its nor the network's.

    `request` is None while there is none to send yet.
    """
    from botocore import exceptions as botocore
    from botocore.parsers import ResponseParserError

    match fault:
        case botocore.ClientError():
            return service_error(fault.response)
        case botocore.NoRegionError():
            return _no_region(profile)
        case botocore.NoCredentialsError():
            return NotConfigured(_NO_CREDENTIALS)
        case botocore.EndpointConnectionError():
            return TransportError(_nobody_there(endpoint_url))
        case botocore.ConnectTimeoutError():
            return TransportError(
                f"{endpoint_url} did not take a connection in time; check the address, the network and "
                "any firewall on the way."
            )
        case botocore.ProxyConnectionError():
            return TransportError(
                f"The proxy on the way to {endpoint_url} does not answer; check HTTP_PROXY and HTTPS_PROXY."
            )
        case botocore.SSLError() if _is_certificate(fault):
            return TransportError(
                f"{endpoint_url} has a certificate that is not trusted here ({_reason(fault)}); "
                "name its authority with AWS_CA_BUNDLE.",
                retryable=False,
            )
        case botocore.HTTPClientError() | botocore.ConnectionError() | botocore.ResponseStreamingError():
            return _lost(request, endpoint_url, fault)
        case botocore.ChecksumError() | ResponseParserError() | Unreadable():
            return _lost(request, endpoint_url, fault)
        case botocore.BotoCoreError():
            return NotConfigured(f"botocore cannot use its configuration: {fault}")
        case _:
            return None


def service_error(response: dict[str, Any]) -> ServiceError:
    """Return the error of a ClientError's response, from the bytes of its body where they were kept."""
    status = response.get("ResponseMetadata", {}).get("HTTPStatusCode", 400)
    parsed = response.get("Error", {})
    code, message = parsed.get("Code") or str(status), parsed.get("Message") or ""
    members = _members(response.get(RAW, b""))
    match code:
        case "ConditionalCheckFailedException":
            return ConditionFailed(message, item=members.get("Item"))
        case "TransactionCanceledException":
            return TransactionCancelled(members.get("CancellationReasons", []))
        case "ResourceNotFoundException":
            return TableNotFound(message)
    kind = Throttled if code in _THROTTLES else ServiceError
    error = kind(code, message, status=status)
    error.members = members
    return error


def _members(body: bytes) -> dict[str, Any]:
    try:
        members = loads(body)
    except ValueError:
        # A proxy's page: its status is all there is to tell.
        return {}
    if not isinstance(members, dict):
        return {}
    return {name: one for name, one in members.items() if name not in ("__type", "message", "Message")}


def _lost(request: Request[Any] | None, endpoint_url: str, fault: Exception) -> TransportError:
    if request is None or _only_reads(request):
        return TransportError(f"{endpoint_url} gave no whole answer ({_reason(fault)}); ask again.")
    # DynamoDB: under the same token it does the same transaction once.
    token = isinstance(request, TransactWriteItems | ExecuteTransaction) and request.token is not None
    way_out = "send it again with the same token" if token else "read what is stored before writing again"
    return OutcomeUnknown(
        f"{endpoint_url} was sent a write and gave no whole answer ({_reason(fault)}): "
        f"it may have been done; {way_out}.",
        retryable=token,
    )


def _only_reads(request: Request[Any]) -> bool:
    match request:
        case Control():
            return request.operation.startswith(("Describe", "Get", "List"))
        case ExecuteStatement():
            return _selects(request.statement.text)
        case BatchExecuteStatement() | ExecuteTransaction():
            return all(_selects(statement.text) for statement in request.statements)
        case _:
            return isinstance(request, _READS)


def _selects(statement: str) -> bool:
    return statement.lstrip()[:6].upper() == "SELECT"


def _reason(fault: Exception) -> str:
    cause = getattr(fault, "kwargs", {}).get("error") or fault
    return str(cause).rstrip(".") or type(cause).__name__


def _is_certificate(fault: Exception) -> bool:
    cause: Any = getattr(fault, "kwargs", {}).get("error")
    seen = [cause, *getattr(cause, "args", ())]
    return any(isinstance(one, ssl.SSLCertVerificationError) for one in seen)


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
