"""boto3 and botocore answered by an engine in this process, without a socket.

`client`, `resource` and `streams_client` make clients of their own. They hook botocore's documented
`before-send` event: a handler that returns a response keeps the request from being sent, and all
the rest of botocore (validation, retries, exceptions, paginators, waiters) runs as ever. These
clients read no AWS configuration, sign nothing, and have an endpoint that cannot resolve, so that
they could not reach a network even without the handler.

`routed` is for code that makes its own clients. An event cannot reach clients that exist already,
nor those of any session to come, so it wraps the one method through which all of them send:
`botocore.httpsession.URLLib3Session.send`. Only requests to DynamoDB and DynamoDB Streams, told by
their X-Amz-Target, are answered; those of other services go where they would have gone. It also
keeps such requests from being signed, so that clients without credentials work, and clients whose
credentials have expired do not go looking for new ones.

Nothing here parses a request: bytes go in, bytes come out (`protocol.wire.answer`). Clients that
bring an HTTP stack of their own (aiobotocore, other languages) are not routed.
"""

from __future__ import annotations

import os
import re
import secrets
import threading
from base64 import b32hexencode
from collections.abc import Callable, Iterator
from contextlib import ContextDecorator
from email.utils import formatdate
from functools import cache
from types import TracebackType
from typing import Any, Generic, TypeVar, cast, overload
from urllib.parse import urlsplit
from zlib import crc32

from solotable.engines import sqlite
from solotable.engines.sqlite import Durability, SqliteEngine
from solotable.errors import EngineError, ServiceError
from solotable.protocol.engine import Engine
from solotable.protocol.requests import Request
from solotable.protocol.wire import answer

__all__ = ["client", "resource", "routed", "streams_client"]

EngineT = TypeVar("EngineT", bound=Engine)

_REGION = "us-east-1"
# RFC 2606: names under .invalid never resolve.
_ENDPOINT = "http://solotable.invalid"
_TARGETS = ("DynamoDB_20120810.", "DynamoDBStreams_20120810.")
_DYNAMODB_HOST = re.compile(
    r"(?:^|\.)(?:streams[.-])?(?:dynamodb|ddb)(?:-fips)?\.[a-z]+(?:-[a-z]+)+-\d+\."
    r"(?:vpce\.)?(?:amazonaws\.com(?:\.cn)?|api\.aws|api\.amazonwebservices\.com\.cn)$"
)


def client(path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full") -> Any:
    """Return a boto3 DynamoDB client that the engine answers.

    A path is opened as an engine that belongs to the client: `client.close()` closes it. An engine
    is used as it is and stays open; `durability` then says nothing. Every path is opened by itself,
    so clients that are to share `":memory:"` must share an engine.
    """
    return _own_client("dynamodb", path_or_engine, durability)


def streams_client(
    path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full"
) -> Any:
    """Return a boto3 DynamoDB Streams client that the engine answers; see `client`."""
    return _own_client("dynamodbstreams", path_or_engine, durability)


def resource(path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full") -> Any:
    """Return a boto3 DynamoDB resource that the engine answers.

    See `client` for who closes what; the resource's client is `resource.meta.client`.
    """
    session, lock = _session(), _session_lock
    engine, owned = _engine(path_or_engine, durability)
    with lock:
        made = session.resource("dynamodb", endpoint_url=_ENDPOINT, config=_config())
    _attach(made.meta.client, engine, owned=owned)
    return made


@overload
def routed(
    path_or_engine: str | os.PathLike[str], *, durability: Durability = "full"
) -> Routed[SqliteEngine]: ...
@overload
def routed(path_or_engine: EngineT, *, durability: Durability = "full") -> Routed[EngineT]: ...
def routed(path_or_engine: Any, *, durability: Durability = "full") -> Routed[Any]:
    """Route every botocore client of this process to the engine: a context manager, or a decorator.

    Clients and resources may be made before or inside the block, by any session, in any thread.
    The block's value is the engine. A path is opened on entry and closed on exit; an engine is used
    as it is and stays open. Blocks nest: the one entered last answers. Where neither credentials
    nor a region are configured, dummies are put into the environment and taken out again.

    A request to a DynamoDB host that is not of the 2012-08-10 API is refused, never sent.
    """
    return Routed(path_or_engine, durability=durability)


class Routed(ContextDecorator, Generic[EngineT]):
    """The context manager that `routed` returns; as a decorator it enters anew for every call."""

    def __init__(
        self, path_or_engine: str | os.PathLike[str] | EngineT, *, durability: Durability = "full"
    ) -> None:
        _need("botocore")
        self._path_or_engine = path_or_engine
        self._durability = durability
        self._route: _Route | None = None

    def _recreate_cm(self) -> Routed[EngineT]:
        return Routed(self._path_or_engine, durability=self._durability)

    def __enter__(self) -> EngineT:
        if self._route is not None:
            raise RuntimeError("This routed() block is active already; call routed() once per block.")
        engine, owned = _engine(self._path_or_engine, self._durability)
        self._route = _Route(engine, owned=owned)
        try:
            _routes.add(self._route)
        except BaseException:
            self._route.close()
            raise
        return cast(EngineT, engine)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        route, self._route = self._route, None
        if route is not None:
            _routes.remove(route)
            route.close()


class _Route:
    """One active block: its engine, and whether that ends with it."""

    def __init__(self, engine: Engine, *, owned: bool) -> None:
        self.engine = engine
        self._owned = owned

    def close(self) -> None:
        if self._owned:
            self.engine.close()


class _Routes:
    """The active blocks, and what is changed in botocore and the environment while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # Replaced, never changed, so that `current` needs no lock.
        self._active: tuple[_Route, ...] = ()
        self._undo: list[Callable[[], None]] = []

    def current(self) -> _Route | None:
        active = self._active
        return active[-1] if active else None

    def add(self, route: _Route) -> None:
        with self._lock:
            if not self._active:
                self._undo = [_supply_environment(), *_wrap_botocore(self)]
            self._active = (*self._active, route)

    def remove(self, route: _Route) -> None:
        with self._lock:
            # By identity, wherever it is: blocks of several threads need not end in order.
            self._active = tuple(active for active in self._active if active is not route)
            if not self._active:
                while self._undo:
                    self._undo.pop()()


_routes = _Routes()


def _wrap_botocore(routes: _Routes) -> Iterator[Callable[[], None]]:
    """Wrap sending and signing; yields how to undo each."""
    from botocore.httpsession import URLLib3Session
    from botocore.signers import RequestSigner

    send, sign = URLLib3Session.send, RequestSigner.sign

    def routed_send(self: Any, request: Any) -> Any:
        route = routes.current()
        if route is None:
            return send(self, request)
        if _is_dynamodb(request):
            return _respond(route.engine, request)
        host = urlsplit(request.url).hostname or ""
        if _DYNAMODB_HOST.search(host):
            raise EngineError(
                f"A request to {host} is not of DynamoDB's 2012-08-10 API: neither answered nor sent."
            )
        return send(self, request)

    def routed_sign(self: Any, operation_name: Any, request: Any, *args: Any, **kwargs: Any) -> Any:
        if routes.current() is not None and _is_dynamodb(request):
            return None
        return sign(self, operation_name, request, *args, **kwargs)

    yield _replace(URLLib3Session, "send", routed_send)
    yield _replace(RequestSigner, "sign", routed_sign)


def _replace(owner: Any, name: str, replacement: Any) -> Callable[[], None]:
    original = getattr(owner, name)
    setattr(owner, name, replacement)

    def undo() -> None:
        # Whoever has wrapped ours meanwhile keeps it; without an active route it only passes on.
        if getattr(owner, name) is replacement:
            setattr(owner, name, original)

    return undo


#: Where botocore looks for credentials without asking a network for their place.
_CREDENTIAL_VARIABLES = (
    "AWS_ACCESS_KEY_ID",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_CREDENTIAL_SETTINGS = {
    "aws_access_key_id",
    "credential_process",
    "login_session",
    "role_arn",
    "sso_session",
    "sso_start_url",
    "web_identity_token_file",
}


def _supply_environment() -> Callable[[], None]:
    """Set dummy credentials and a region if none are configured; return how to undo it."""
    import botocore.exceptions
    import botocore.session

    session = botocore.session.Session()
    dummies: dict[str, str] = {}
    try:
        if not any(map(os.environ.get, _CREDENTIAL_VARIABLES)) and not (
            _CREDENTIAL_SETTINGS & session.get_scoped_config().keys()
        ):
            dummies |= {"AWS_ACCESS_KEY_ID": "solotable", "AWS_SECRET_ACCESS_KEY": "solotable"}
        if session.get_config_variable("region") is None:
            dummies["AWS_DEFAULT_REGION"] = _REGION
    except botocore.exceptions.ProfileNotFound:
        pass  # the caller's own client says this better
    before = {name: os.environ.get(name) for name in dummies}
    os.environ.update(dummies)

    def undo() -> None:
        for name, value in before.items():
            if os.environ.get(name) != dummies[name]:
                continue  # set by somebody else meanwhile
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value

    return undo


def _is_dynamodb(request: Any) -> bool:
    return _target(request).startswith(_TARGETS)


def _target(request: Any) -> str:
    # Headers are text until a request is prepared, and bytes afterwards.
    target = request.headers.get("X-Amz-Target", "")
    return target.decode("latin-1") if isinstance(target, bytes) else str(target)


def _respond(engine: Engine, request: Any) -> Any:
    """Answer a prepared request with the response that botocore would have got from a socket."""
    from botocore.awsrequest import AWSResponse

    sent = request.body or b""
    watched = _Watched(engine)
    status, body = answer(watched, _target(request), sent.encode() if isinstance(sent, str) else bytes(sent))
    if watched.fault is not None:
        # As a status 500 it would be retried for half a minute, and then say nothing of its cause.
        raise watched.fault
    headers = {
        "Server": "solotable",
        "Date": formatdate(usegmt=True),
        "Content-Type": "application/x-amz-json-1.0",
        "Content-Length": str(len(body)),
        # DynamoDB: 52 characters; 32 bytes give as many, and then padding.
        "x-amzn-RequestId": b32hexencode(secrets.token_bytes(32))[:52].decode(),
        # botocore compares it with the body, and retries when they differ.
        "x-amz-crc32": str(crc32(body)),
    }
    return AWSResponse(request.url, status, headers, _Body(body))


class _Watched:
    """An engine for one request that remembers what went wrong besides DynamoDB's own refusals."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.fault: Exception | None = None

    def handle(self, request: Request[Any]) -> Any:
        try:
            return self._engine.handle(request)
        except ServiceError:
            raise
        except Exception as fault:
            self.fault = fault
            raise

    def close(self) -> None:
        """Leave the engine as it is: whoever opened it closes it."""


class _Body:
    """What botocore reads a response's content from."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def stream(self) -> Iterator[bytes]:
        yield self._content


class _OwnsEngine:
    """Mixed into our clients: closes the engine that was opened for the client."""

    solotable_engine: Engine | None = None

    def close(self) -> None:
        """Close the client, and the engine if the client was made from a path."""
        cast(Any, super()).close()
        if self.solotable_engine is not None:
            self.solotable_engine.close()


_session_lock = threading.Lock()


@cache
def _session() -> Any:
    """Return the session of our own clients; it reads none of the machine's AWS configuration."""
    boto3 = _need("boto3")
    import botocore.session
    from botocore.configprovider import ConstantProvider

    session = botocore.session.Session()
    settings = session.get_component("config_store")
    for name, value in {
        "profile": None,
        "config_file": os.devnull,
        "credentials_file": os.devnull,
        "region": _REGION,
        "ca_bundle": None,
        "defaults_mode": "legacy",
        "use_fips_endpoint": False,
        "use_dualstack_endpoint": False,
    }.items():
        settings.set_config_provider(name, ConstantProvider(value=value))

    def add_base(base_classes: list[type], **_: Any) -> None:
        base_classes.insert(0, _OwnsEngine)

    session.register("creating-client-class", add_base)
    return boto3.Session(botocore_session=session)


def _config() -> Any:
    from botocore import UNSIGNED
    from botocore.config import Config

    return Config(signature_version=UNSIGNED)


def _own_client(service: str, path_or_engine: Any, durability: Durability) -> Any:
    session, lock = _session(), _session_lock
    engine, owned = _engine(path_or_engine, durability)
    # boto3: making clients is not thread-safe, using them is.
    with lock:
        made = session.client(service, endpoint_url=_ENDPOINT, config=_config())
    _attach(made, engine, owned=owned)
    return made


def _attach(made: Any, engine: Engine, *, owned: bool) -> None:
    def respond(request: Any, **_: Any) -> Any:
        return _respond(engine, request)

    made.meta.events.register_first("before-send", respond)
    if owned:
        made.solotable_engine = engine


def _engine(path_or_engine: Any, durability: Durability) -> tuple[Engine, bool]:
    """Return the engine, and whether it was opened here."""
    if isinstance(path_or_engine, (str, os.PathLike)):
        return sqlite.open(path_or_engine, durability=durability), True
    return cast(Engine, path_or_engine), False


def _need(module: str) -> Any:
    try:
        return __import__(module)
    except ImportError as missing:
        raise ImportError(
            f"solotable.boto3 needs {module}, which is not installed. Try: pip install 'solotable[aws]'",
            name=module,
        ) from missing
