"""Decide whether requests go through the HTTP transport or through botocore.

The HTTP transport covers what DynamoDB needs. botocore handles special configurations: a client, session or
Config of the caller; `?client=botocore` in the URL; a proxy for the endpoint; an endpoint with a path or a
user; client certificates; signatures other than plain Version 4; required account endpoints; plugins and
hooks in botocore, such as moto's.

Tools that patch botocore's methods at run time (`solotable.boto3.routed`, tracing) expect to see every
call, so the HTTP transport checks for patches before each call.
"""

from __future__ import annotations

import os
from functools import cache
from types import FunctionType
from typing import Any, Final
from urllib.parse import urlsplit

#: Settings of a client, and their values that the HTTP transport supports; None: not set.
_SUPPORTED: Final[dict[str, tuple[Any, ...]]] = {
    "signature_version": ("v4",),
    "client_cert": (None,),
    "proxies": (None,),
    "account_id_endpoint_mode": (None, "disabled", "preferred"),
    "auth_scheme_preference": (None,),
    "sigv4a_signing_region_set": (None,),
}
#: Methods that passed the check, by name.
_verified: dict[str, Any] = {}
_PLUGINS: Final = "BOTOCORE_EXPERIMENTAL__PLUGINS"


def botocore_reason(client: Any) -> str | None:
    """Return why a client's configuration needs botocore; None if the HTTP transport supports it."""
    url = client.meta.endpoint_url
    if not _is_plain(url):
        return f"{url} has more than a host and a port"
    if _proxy(url):
        return f"there is a proxy for {url}"
    for name, supported in _SUPPORTED.items():
        if getattr(client.meta.config, name, supported[0]) not in supported:
            return f"{name} is set"
    if not _is_region(client.meta.region_name):
        return f"{client.meta.region_name} signs for another region"
    if os.environ.get(_PLUGINS):
        return f"{_PLUGINS} is set"
    if _has_foreign_handlers():
        return "another package has added hooks to botocore"
    return None


def is_botocore_unpatched() -> bool:
    """Return whether the methods through which botocore sends are its own."""
    for owner, name in _watched():
        method = getattr(owner, name)
        if method is not _verified.get(name):
            if not _is_botocore_function(method):
                return False
            _verified[name] = method
    return True


def _is_plain(url: str) -> bool:
    parts = urlsplit(url)
    bare = parts.path in ("", "/") and not parts.query and parts.username is None
    return parts.scheme in ("http", "https") and parts.hostname is not None and bare


def _is_region(name: str | None) -> bool:
    # botocore: these name endpoints, which sign for another region.
    return name is not None and name not in ("local", "aws-global") and "fips" not in name


def _proxy(url: str) -> str | None:
    from botocore.utils import get_environ_proxies

    found: str | None = get_environ_proxies(url).get(urlsplit(url).scheme)
    return found


def _has_foreign_handlers() -> bool:
    """Return whether another package has added to the handlers of every session."""
    from botocore.handlers import BUILTIN_HANDLERS

    modules = (
        getattr(entry[1], "__module__", None) or type(entry[1]).__module__ for entry in BUILTIN_HANDLERS
    )
    return any(not module.startswith("botocore.") for module in modules)


@cache
def _watched() -> tuple[tuple[type, str], ...]:
    from botocore.client import BaseClient
    from botocore.endpoint import Endpoint
    from botocore.httpsession import URLLib3Session

    return (BaseClient, "_make_api_call"), (Endpoint, "make_request"), (URLLib3Session, "send")


def _is_botocore_function(method: Any) -> bool:
    # A wrapper can copy a function's name and module, but not its globals.
    return type(method) is FunctionType and method.__globals__["__name__"].startswith("botocore.")
