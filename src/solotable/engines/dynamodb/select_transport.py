"""Which way requests go: our own, or all the way through botocore.

Our own way does what DynamoDB needs and nothing else. Where something special is configured, botocore
knows how: a client, session or Config of the caller's; `?client=botocore` in the URL; a proxy for the
endpoint; an endpoint with a path or a user in it; client certificates; signatures other than plain
Version 4; endpoints that must be those of the account; plugins and hooks that others have put into
botocore, as moto does.

Tools that wrap botocore's methods while a program runs (`solotable.boto3.routed`, tracing) expect to
see every call, so each call asks whether they are as they were.
"""

from __future__ import annotations

import os
from functools import cache
from types import FunctionType
from typing import Any, Final
from urllib.parse import urlsplit

#: Settings of a client, with what our own way can do; None is what nobody has set.
_PLAIN: Final[dict[str, tuple[Any, ...]]] = {
    "signature_version": ("v4",),
    "client_cert": (None,),
    "proxies": (None,),
    "account_id_endpoint_mode": (None, "disabled", "preferred"),
    "auth_scheme_preference": (None,),
    "sigv4a_signing_region_set": (None,),
}
#: Methods that were found to be botocore's own, by their names.
_known: dict[str, Any] = {}
_PLUGINS: Final = "BOTOCORE_EXPERIMENTAL__PLUGINS"


def why_botocore(client: Any) -> str | None:
    """Return why a client of our own making is to be used itself; None when our own way does."""
    url = client.meta.endpoint_url
    if not _is_plain(url):
        return f"{url} is more than a host and a port"
    if _proxy(url):
        return f"there is a proxy for {url}"
    for name, plain in _PLAIN.items():
        if getattr(client.meta.config, name, plain[0]) not in plain:
            return f"{name} is set"
    if not _is_region(client.meta.region_name):
        return f"{client.meta.region_name} is signed for as another region"
    if os.environ.get(_PLUGINS):
        return f"{_PLUGINS} is set"
    if _are_hooked():
        return "others have put hooks into botocore"
    return None


def is_untouched() -> bool:
    """Return whether botocore's way to the network is its own at this moment."""
    for owner, name in _watched():
        method = getattr(owner, name)
        if method is not _known.get(name):
            if not _is_own(method):
                return False
            _known[name] = method
    return True


def _is_plain(url: str) -> bool:
    parts = urlsplit(url)
    bare = parts.path in ("", "/") and not parts.query and parts.username is None
    return parts.scheme in ("http", "https") and parts.hostname is not None and bare


def _is_region(name: str | None) -> bool:
    # botocore: these are endpoints rather than regions, and have a region of their own to sign for.
    return name is not None and name not in ("local", "aws-global") and "fips" not in name


def _proxy(url: str) -> str | None:
    from botocore.utils import get_environ_proxies

    found: str | None = get_environ_proxies(url).get(urlsplit(url).scheme)
    return found


def _are_hooked() -> bool:
    """Return whether somebody has added to what botocore gives every session."""
    from botocore.handlers import BUILTIN_HANDLERS

    makers = (
        getattr(entry[1], "__module__", None) or type(entry[1]).__module__ for entry in BUILTIN_HANDLERS
    )
    return any(not maker.startswith("botocore.") for maker in makers)


@cache
def _watched() -> tuple[tuple[type, str], ...]:
    from botocore.client import BaseClient
    from botocore.endpoint import Endpoint
    from botocore.httpsession import URLLib3Session

    return (BaseClient, "_make_api_call"), (Endpoint, "make_request"), (URLLib3Session, "send")


def _is_own(method: Any) -> bool:
    # A wrapper can take over a function's name and module, but not where its code looks names up.
    return type(method) is FunctionType and method.__globals__["__name__"].startswith("botocore.")
