"""Build an HTTP transport from the endpoint, region, credentials and CA bundle of a botocore client."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from solotable._protocol.operations import DESCRIBE_HEAT, HEAT_TARGET
from solotable.engines.dynamodb.http.botocore_transport import BotocoreTransport
from solotable.engines.dynamodb.http.exchange import Address, HttpSettings
from solotable.engines.dynamodb.http.pool import BlockingPool
from solotable.engines.dynamodb.http.transport import HttpTransport
from solotable.engines.dynamodb.http.wire_protocol import Service, WireProtocol
from solotable.errors import NotConfigured

from .credentials import SignerSource
from .sigv4 import AccessKey

_PORTS = {"http": 80, "https": 443}


def build_transport(
    client: Any, session: Any, *, key: AccessKey | None, settings: HttpSettings
) -> HttpTransport:
    """Return a transport to the client's endpoint; `key` replaces the session's credentials."""
    url: str = client.meta.endpoint_url
    model = client.meta.service_model
    prefix = model.metadata["targetPrefix"]
    targets = {name: f"{prefix}.{name}" for name in model.operation_names}
    service = Service(endpoint_url=url, targets=targets | {DESCRIBE_HEAT: HEAT_TARGET})
    signers = SignerSource(session, region=client.meta.region_name, host=host_header(url), key=key)
    pool = BlockingPool(resolve_address(url, session), settings)
    return HttpTransport(service, WireProtocol(service, signers), pool, fallback=BotocoreTransport(client))


def host_header(url: str) -> str:
    """Return the Host header for a URL, without the default port of the scheme."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    port = parts.port
    return host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"


def resolve_address(url: str, session: Any) -> Address:
    """Return the address of a URL, with the CA certificates that botocore would trust."""
    parts = urlsplit(url)
    tls = _tls_context(session) if parts.scheme == "https" else None
    return Address(host=parts.hostname or "", port=parts.port or _PORTS[parts.scheme], tls=tls)


def _tls_context(session: Any) -> ssl.SSLContext:
    from botocore.httpsession import get_cert_path

    # botocore: in this order, then certifi's CA bundle.
    configured = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or True
    path = Path(get_cert_path(configured))
    try:
        context = ssl.create_default_context(
            cafile=None if path.is_dir() else str(path), capath=str(path) if path.is_dir() else None
        )
    except OSError as fault:
        raise NotConfigured(
            f"Cannot read CA bundle {path} ({fault.strerror or fault}); "
            "set AWS_CA_BUNDLE to a file of certificates in PEM form."
        ) from fault
    # botocore: many company CAs do not meet the strict checks of newer Python versions.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
