"""JSON requests to OpenSearch over kept-alive connections of the standard library."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode, urlsplit

from solotable.errors import DeclarationError
from solotable.fork_safe import new_lock
from solotable.systems.portal.search.port import SearchUnavailable

_MOST_IDLE = 8
#: Status codes that the caller handles: a missing index or document, and a version conflict.
_HANDLED = (404, 409)
#: Signs a request, or adds credentials: method, path with its query, and body to headers.
Headers = Callable[[str, str, bytes], Mapping[str, str]]


@dataclass(frozen=True, slots=True)
class Reply:
    """The status and the JSON of a reply."""

    status: int
    body: Any


class OpenSearchClient:
    """Blocking requests to one endpoint; for threads."""

    def __init__(
        self,
        url: str,
        *,
        headers: Headers | None = None,
        timeout_seconds: float = 5.0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.username or parts.query:
            raise DeclarationError(
                f"OpenSearch's URL is https://host:port without credentials, got {parts.scheme}://...; "
                f"pass credentials with headers=."
            )
        self._host, self._port = parts.hostname, parts.port
        self._prefix = parts.path.rstrip("/")
        self._tls = (tls or ssl.create_default_context()) if parts.scheme == "https" else None
        self._headers = headers
        self._timeout = timeout_seconds
        self._lock = new_lock()
        self._idle: list[http.client.HTTPConnection] = []

    def call(
        self, method: str, path: str, body: Any = None, *, parameters: Mapping[str, str | int] | None = None
    ) -> Reply:
        """Send a JSON body and return the reply."""
        data = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        return self._send(method, path, parameters, data, "application/json")

    def bulk(self, path: str, lines: Sequence[Any], *, parameters: Mapping[str, str | int]) -> Reply:
        """Send lines of JSON and return the reply."""
        data = b"".join(json.dumps(line, ensure_ascii=False).encode() + b"\n" for line in lines)
        return self._send("POST", path, parameters, data, "application/x-ndjson")

    def close(self) -> None:
        """Close idle connections."""
        with self._lock:
            for each in self._idle:
                each.close()
            self._idle.clear()

    def _send(
        self,
        method: str,
        path: str,
        parameters: Mapping[str, str | int] | None,
        data: bytes,
        content_type: str,
    ) -> Reply:
        target = self._prefix + path + (f"?{urlencode(parameters)}" if parameters else "")
        headers = {"content-type": content_type} if data else {}
        if self._headers is not None:
            headers |= self._headers(method, target, data)
        status, text = self._exchange(method, target, data, headers)
        try:
            body = json.loads(text) if text else None
        except ValueError as error:
            raise SearchUnavailable(f"OpenSearch's reply ({status}) is not JSON.") from error
        if status >= 300 and status not in _HANDLED:
            kind = body.get("error", {}).get("type") if isinstance(body, dict) else None
            raise SearchUnavailable(f"OpenSearch answered {method} {path} with {status} ({kind}).")
        return Reply(status, body)

    def _exchange(
        self, method: str, target: str, data: bytes, headers: Mapping[str, str]
    ) -> tuple[int, bytes]:
        """Send a request; once more if a kept-alive connection turns out to be closed.

        All requests of the adapter can be repeated: documents have versions, the checkpoint a condition.
        """
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        while True:
            is_fresh = connection is None
            connection = connection or self._connect()
            try:
                connection.request(method, target, body=data or None, headers=dict(headers))
                response = connection.getresponse()
                status, text = response.status, response.read()
            except (OSError, http.client.HTTPException) as error:
                connection.close()
                connection = None
                if is_fresh or isinstance(error, TimeoutError):
                    cause = f"{type(error).__name__}: {error}"
                    raise SearchUnavailable(f"OpenSearch cannot be reached ({cause}).") from error
            else:
                with self._lock:
                    if len(self._idle) < _MOST_IDLE and not response.will_close:
                        self._idle.append(connection)
                        return status, text
                connection.close()
                return status, text

    def _connect(self) -> http.client.HTTPConnection:
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        return http.client.HTTPSConnection(self._host, self._port, timeout=self._timeout, context=self._tls)
