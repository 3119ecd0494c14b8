"""The botocore clients of one engine: for items and tables at once, for streams when first asked.

What a client needs is looked for where botocore looks. A plain http endpoint is somebody's local
server: it gets a region and credentials that mean nothing when there are none, and nobody asks the
network for the credentials of a cloud machine.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Final
from urllib.parse import urlsplit

from solotable.errors import NotConfigured
from solotable.protocol.shapes import STREAMS

from .channel import Channel
from .faults import explained

_CONNECT_SECONDS: Final = 3
_READ_SECONDS: Final = 15
_CONNECTIONS: Final = 50
_LOCAL_REGION: Final = "us-east-1"
_LOCAL_CREDENTIALS: Final = {"aws_access_key_id": "local", "aws_secret_access_key": "local"}
#: Places that answer only on Amazon's machines, and are slow to say nothing anywhere else.
_CLOUD_PROVIDERS: Final = ("container-role", "iam-role")
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn")
# boto3: making clients is not thread-safe, using them is.
_making = threading.Lock()


class Clients:
    """Makes the clients that it was not given, and closes only those."""

    def __init__(
        self,
        *,
        region: str | None = None,
        endpoint_url: str | None = None,
        profile: str | None = None,
        session: Any = None,
        config: Any = None,
        client: Any = None,
        streams_client: Any = None,
    ) -> None:
        need_botocore()
        settings = (region, endpoint_url, profile, session, config)
        if client is not None and any(setting is not None for setting in settings):
            raise NotConfigured(
                "A client comes with its region, endpoint and credentials; give either it or them."
            )
        self._region = region
        self._endpoint_url = endpoint_url
        self._profile = profile
        self._session = session
        self._config = config
        self._made: list[Channel] = []
        self._lent: list[Channel] = []
        self._credentials: dict[str, str] = {}
        self._user_agent: str | None = None
        if client is not None:
            self.items = self._lend(client)
        else:
            self.items = self._make_items()
        self._streams = None if streams_client is None else self._lend(streams_client)

    def channel(self, operation: str) -> Channel:
        """Return the channel that takes this operation."""
        return self._channel_of_streams() if operation in STREAMS else self.items

    def close(self) -> None:
        """Close the clients that were made here, and let go of the others."""
        for channel in self._made:
            channel.close()
        for channel in self._lent:
            channel.detach()
        self._made, self._lent = [], []

    def _lend(self, client: Any) -> Channel:
        channel = Channel(client)
        self._lent.append(channel)
        return channel

    def _channel_of_streams(self) -> Channel:
        if self._streams is None:
            if self._lent:
                raise NotConfigured(
                    "Streams have a client of their own; give streams_client= beside client=."
                )
            with _making:
                if self._streams is None:
                    self._streams = self._make_streams()
        return self._streams

    def _make_items(self) -> Channel:
        try:
            with _making:
                return self._make_first()
        except Exception as fault:
            profile = self._profile or os.environ.get("AWS_PROFILE")
            known = explained(fault, None, self._endpoint_url or "", profile=profile)
            if known is None:
                raise
            raise known from fault

    def _make_first(self) -> Channel:
        own = self._session is None
        if own:
            from botocore.session import Session

            self._session = Session(profile=self._profile)
            if not self._session.get_config_variable("user_agent_appid"):
                # botocore words it anew twice for every request, in a fifth of the time that it takes.
                self._user_agent = self._session.user_agent()
        self._region = self._region or _region_of(self._session) or os.environ.get("AWS_REGION")
        # Only a client knows where the configuration sends it.
        local = self._create("dynamodb", region=self._region or _LOCAL_REGION, **_LOCAL_CREDENTIALS)
        if urlsplit(local.meta.endpoint_url).scheme == "http":
            self._region = self._region or _LOCAL_REGION
            if own:
                resolver = self._session.get_component("credential_provider")
                for name in _CLOUD_PROVIDERS:
                    resolver.remove(name)
            if self._session.get_credentials() is None:
                self._credentials = dict(_LOCAL_CREDENTIALS)
                return self._keep(local)
        local.close()
        return self._keep(self._create("dynamodb", region=self._region))

    def _make_streams(self) -> Channel:
        made = self._create("dynamodbstreams", region=self._region, **self._credentials)
        # A local server takes the requests of both services; Amazon has a host for each.
        if _is_amazon(made.meta.endpoint_url) and not _is_amazon(self.items.endpoint_url):
            made.close()
            self._endpoint_url = self.items.endpoint_url
            made = self._create("dynamodbstreams", region=self._region, **self._credentials)
        return self._keep(made)

    def _keep(self, client: Any) -> Channel:
        channel = Channel(client)
        self._made.append(channel)
        return channel

    def _create(self, service: str, *, region: str | None, **credentials: str) -> Any:
        create = getattr(self._session, "create_client", None) or self._session.client
        config = _settings(self._user_agent)
        if self._config is not None:
            config = config.merge(self._config)
        return create(
            service, region_name=region, endpoint_url=self._endpoint_url, config=config, **credentials
        )


def need_botocore() -> None:
    """Raise an ImportError that says what to install when botocore is missing."""
    try:
        import botocore  # noqa: F401
    except ImportError as missing:
        raise ImportError(
            "A DynamoDB endpoint is reached through botocore, which is not installed. "
            "Try: pip install 'solotable[aws]'",
            name="botocore",
        ) from missing


def _settings(user_agent: str | None) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=_CONNECT_SECONDS,
        read_timeout=_READ_SECONDS,
        max_pool_connections=_CONNECTIONS,
        # The flows try again: they know what may be repeated, and for how long.
        retries={"total_max_attempts": 1},
        tcp_keepalive=True,
        parameter_validation=False,
        user_agent=user_agent,
        user_agent_extra="lib/solotable",
    )


def _region_of(session: Any) -> str | None:
    if hasattr(session, "region_name"):
        named: str | None = session.region_name
        return named
    configured: str | None = session.get_config_variable("region")
    return configured


def _is_amazon(url: str) -> bool:
    return (urlsplit(url).hostname or "").endswith(_AMAZON)
