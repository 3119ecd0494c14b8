"""HTTP requests with JSON replies to a configured server: no redirects, bounded size and time."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from solotable.systems.community.identity.port import ProviderUnavailable

_MOST_BYTES = 256 * 1024
_LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True)
class JsonReply:
    """A reply with a JSON object."""

    status: int
    headers: Mapping[str, str]
    body: Mapping[str, Any]


def is_secure(url: str) -> bool:
    """Return whether a URL is https, or http to this host.

    >>> is_secure("https://id.example"), is_secure("http://127.0.0.1:80/x"), is_secure("http://id.example")
    (True, True, False)
    """
    parts = urlsplit(url)
    return bool(parts.hostname) and (
        parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
    )


def send(
    method: str,
    url: str,
    *,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
    timeout_seconds: float,
) -> JsonReply:
    """Send a request, or raise ProviderUnavailable."""
    parts = urlsplit(url)
    if not is_secure(url):
        raise ProviderUnavailable(f"{url} is neither https nor on this host.")
    given = {"accept": "application/json", **(headers or {})}
    body = None
    if form is not None:
        body = urlencode(form).encode()
        given["content-type"] = "application/x-www-form-urlencoded"
    host = parts.hostname or ""
    connection = (
        http.client.HTTPSConnection(
            host, parts.port, timeout=timeout_seconds, context=ssl.create_default_context()
        )
        if parts.scheme == "https"
        else http.client.HTTPConnection(host, parts.port, timeout=timeout_seconds)
    )
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request(method, path, body=body, headers=given)
        response = connection.getresponse()
        data = response.read(_MOST_BYTES + 1)
        found = {name.lower(): value for name, value in response.getheaders()}
    except (OSError, http.client.HTTPException) as error:
        raise ProviderUnavailable(f"{host} cannot be reached ({type(error).__name__}).") from error
    finally:
        connection.close()
    return JsonReply(response.status, found, _parse(host, data))


def _parse(host: str, data: bytes) -> Mapping[str, Any]:
    if len(data) > _MOST_BYTES:
        raise ProviderUnavailable(f"The reply of {host} is larger than {_MOST_BYTES} bytes.")
    try:
        body = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ProviderUnavailable(f"The reply of {host} is not JSON.") from error
    if not isinstance(body, dict):
        raise ProviderUnavailable(f"The reply of {host} is not a JSON object.")
    return body
