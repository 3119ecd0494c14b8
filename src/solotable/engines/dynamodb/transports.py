"""The transports of one engine: one for items and tables, and one for streams, opened on first use.

A botocore client finds the configuration; `select_transport` then decides whether that client sends. A plain
http endpoint is a local server: without configuration it gets a dummy region and dummy credentials, and
botocore does not ask the network for the credentials of a cloud machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final
from urllib.parse import urlsplit

from solotable._protocol.operations import STREAM_OPERATIONS
from solotable.errors import NotConfigured
from solotable.fork_safe import new_lock

from .auth.botocore_config import build_transport
from .auth.sigv4 import AccessKey
from .errors import translate_error
from .http.botocore_transport import BotocoreTransport
from .http.exchange import HttpSettings
from .http.transport import HttpTransport
from .select_transport import botocore_reason

_LOCAL_REGION: Final = "us-east-1"
_LOCAL_KEY: Final = AccessKey(id="local", secret="local")  # noqa: S106 - a dummy
_LOCAL_CREDENTIALS: Final = {
    "aws_access_key_id": _LOCAL_KEY.id,
    "aws_secret_access_key": _LOCAL_KEY.secret,
}
#: Credential providers that answer only on AWS's machines, and time out slowly elsewhere.
_CLOUD_PROVIDERS: Final = ("container-role", "iam-role")
_AWS_DOMAINS: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn")
# boto3: creating clients is not thread-safe, using them is.
_making = new_lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """The arguments of `open`; botocore finds what is None."""

    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    session: Any = None
    config: Any = None
    client: Any = None
    streams_client: Any = None
    #: Whether botocore sends every request.
    botocore: bool = False
    http: HttpSettings = field(default_factory=HttpSettings)


class Transports:
    """Opens the transports of one engine, and closes those that it has opened."""

    def __init__(self, options: EndpointOptions) -> None:
        require_botocore()
        settings = (options.region, options.endpoint_url, options.profile, options.session, options.config)
        if options.client is not None and any(setting is not None for setting in settings):
            raise NotConfigured(
                "A client has its own region, endpoint and credentials; pass client= without them."
            )
        self._options = options
        self._region = options.region
        self._endpoint_url = options.endpoint_url
        self._session = options.session
        self._opened: list[BotocoreTransport | HttpTransport] = []
        self._borrowed: list[BotocoreTransport] = []
        #: The dummy key for a local server without configured credentials.
        self._key: AccessKey | None = None
        self._streams: BotocoreTransport | HttpTransport | None = None
        self.items: BotocoreTransport | HttpTransport
        if options.client is not None:
            self.items = self._borrow(options.client)
        else:
            self.items = self._open_items()
        if options.streams_client is not None:
            self._streams = self._borrow(options.streams_client)

    def get(self, operation: str) -> BotocoreTransport | HttpTransport:
        """Return the transport for an operation."""
        return self._get_streams() if operation in STREAM_OPERATIONS else self.items

    @property
    def is_amazon(self) -> bool:
        """Whether the endpoint of items is Amazon's own."""
        return _is_aws(self.items.endpoint_url)

    def is_open(self, operation: str) -> bool:
        """Whether the transport for an operation is open already."""
        return operation not in STREAM_OPERATIONS or self._streams is not None

    def close(self) -> None:
        """Close the transports that were opened here, and detach from the caller's clients."""
        for opened in self._opened:
            opened.close()
        for borrowed in self._borrowed:
            borrowed.detach()
        self._opened, self._borrowed = [], []

    def _borrow(self, client: Any) -> BotocoreTransport:
        transport = BotocoreTransport(client)
        self._borrowed.append(transport)
        return transport

    def _get_streams(self) -> BotocoreTransport | HttpTransport:
        if self._streams is None:
            if self._borrowed:
                raise NotConfigured("Streams need a separate client; pass streams_client= with client=.")
            with _making:
                if self._streams is None:
                    self._streams = self._open_streams()
        return self._streams

    def _open_items(self) -> BotocoreTransport | HttpTransport:
        try:
            with _making:
                return self._open_first()
        except Exception as fault:
            profile = self._options.profile or os.environ.get("AWS_PROFILE")
            translated = translate_error(fault, None, self._endpoint_url or "", profile=profile)
            if translated is None:
                raise
            raise translated from fault

    def _open_first(self) -> BotocoreTransport | HttpTransport:
        own_session = self._session is None
        if own_session:
            from botocore.session import Session

            self._session = Session(profile=self._options.profile)
            self._session.register_component(
                "data_loader", _loader(self._session.get_config_variable("data_path"))
            )
        self._region = self._region or _region_of(self._session) or os.environ.get("AWS_REGION")
        # Only a client knows the configured endpoint.
        local = self._create("dynamodb", region=self._region or _LOCAL_REGION, **_LOCAL_CREDENTIALS)
        if urlsplit(local.meta.endpoint_url).scheme == "http":
            self._region = self._region or _LOCAL_REGION
            if own_session:
                resolver = self._session.get_component("credential_provider")
                for name in _CLOUD_PROVIDERS:
                    resolver.remove(name)
            if self._session.get_credentials() is None:
                self._key = _LOCAL_KEY
                return self._transport(local)
        local.close()
        return self._transport(self._create("dynamodb", region=self._region))

    def _open_streams(self) -> BotocoreTransport | HttpTransport:
        credentials = {} if self._key is None else _LOCAL_CREDENTIALS
        client = self._create("dynamodbstreams", region=self._region, **credentials)
        # A local server answers both services; AWS has a host for each.
        if _is_aws(client.meta.endpoint_url) and not _is_aws(self.items.endpoint_url):
            client.close()
            self._endpoint_url = self.items.endpoint_url
            client = self._create("dynamodbstreams", region=self._region, **credentials)
        return self._transport(client)

    def _transport(self, client: Any) -> BotocoreTransport | HttpTransport:
        options = self._options
        customized = options.session is not None or options.config is not None
        transport: BotocoreTransport | HttpTransport
        if options.botocore or customized or botocore_reason(client):
            transport = BotocoreTransport(client)
        else:
            transport = build_transport(client, self._session, key=self._key, settings=options.http)
        self._opened.append(transport)
        return transport

    def _create(self, service: str, *, region: str | None, **credentials: str) -> Any:
        create = getattr(self._session, "create_client", None) or self._session.client
        config = _botocore_config(self._options.http)
        if self._options.config is not None:
            config = config.merge(self._options.config)
        return create(
            service, region_name=region, endpoint_url=self._endpoint_url, config=config, **credentials
        )


def require_botocore() -> None:
    """Raise an ImportError that says what to install if botocore is missing."""
    try:
        import botocore  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "A DynamoDB endpoint needs botocore, which is not installed. Try: pip install 'solotable[aws]'",
            name="botocore",
        ) from missing


def _botocore_config(settings: HttpSettings) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=settings.connect_seconds,
        read_timeout=settings.read_seconds,
        max_pool_connections=settings.idle_connections,
        # Flows retry: they know which requests are safe to repeat.
        retries={"total_max_attempts": 1},
        tcp_keepalive=True,
        parameter_validation=False,
        user_agent_extra="lib/solotable",
    )


@lru_cache(maxsize=4)
def _loader(data_path: str | None) -> Any:
    """Return the loader of botocore's service descriptions; engines share what it has read."""
    from botocore.loaders import create_loader

    return create_loader(data_path)


def _region_of(session: Any) -> str | None:
    if hasattr(session, "region_name"):
        region: str | None = session.region_name
        return region
    configured: str | None = session.get_config_variable("region")
    return configured


def _is_aws(url: str) -> bool:
    return (urlsplit(url).hostname or "").endswith(_AWS_DOMAINS)
