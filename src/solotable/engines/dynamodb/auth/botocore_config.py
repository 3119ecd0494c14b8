"""Our own way, from what a client of botocore has found: endpoint, region, credentials, authorities."""

from __future__ import annotations

import os
import ssl
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from solotable.engines.dynamodb.http.botocore_transport import Channel
from solotable.engines.dynamodb.http.exchange import Address, Patience
from solotable.engines.dynamodb.http.pool import Pool
from solotable.engines.dynamodb.http.transport import Direct, Service, Wording
from solotable.errors import NotConfigured

from .credentials import Signers
from .sigv4 import AccessKey

_PORTS = {"http": 80, "https": 443}


def direct(client: Any, session: Any, *, key: AccessKey | None, patience: Patience) -> Direct:
    """Return the way to where the client would send; `key` signs in place of the session's credentials."""
    url: str = client.meta.endpoint_url
    model = client.meta.service_model
    prefix = model.metadata["targetPrefix"]
    service = Service(endpoint_url=url, targets={name: f"{prefix}.{name}" for name in model.operation_names})
    signers = Signers(session, region=client.meta.region_name, host=host_header(url), key=key)
    return Direct(
        service, Wording(service, signers), Pool(address(url, session), patience), aside=Channel(client)
    )


def host_header(url: str) -> str:
    """Return the Host header for a URL: the port only where it is not the scheme's own."""
    parts = urlsplit(url)
    name = parts.hostname or ""
    host = f"[{name}]" if ":" in name else name
    port = parts.port
    return host if port in (None, _PORTS[parts.scheme]) else f"{host}:{port}"


def address(url: str, session: Any) -> Address:
    """Return where to connect to, with the authorities that botocore would trust."""
    parts = urlsplit(url)
    tls = _trusting(session) if parts.scheme == "https" else None
    return Address(host=parts.hostname or "", port=parts.port or _PORTS[parts.scheme], tls=tls)


def _trusting(session: Any) -> ssl.SSLContext:
    from botocore.httpsession import get_cert_path

    # botocore: in this order, and else the authorities of certifi.
    named = session.get_config_variable("ca_bundle") or os.environ.get("REQUESTS_CA_BUNDLE") or True
    place = Path(get_cert_path(named))
    try:
        context = ssl.create_default_context(
            cafile=None if place.is_dir() else str(place), capath=str(place) if place.is_dir() else None
        )
    except OSError as fault:
        raise NotConfigured(
            f"The authorities in {place} cannot be read ({fault.strerror or fault}); "
            "AWS_CA_BUNDLE names a file of certificates in PEM form."
        ) from fault
    # As botocore does: authorities of companies are often not as strict as newer Pythons want.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
