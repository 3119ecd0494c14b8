"""The ways of one engine to its endpoint: for items and tables at once, for streams when first asked.

What a way needs is looked for where botocore looks, by a client of botocore's; then `ways` says whether
that client is used itself. A plain http endpoint is somebody's local server: it gets a region and
credentials that mean nothing when there are none, and nobody asks the network for the credentials of
a cloud machine.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import urlsplit

from solotable._protocol.constraints import STREAMS
from solotable.errors import NotConfigured
from solotable.fork_safe import new_lock

from .auth.botocore_config import direct
from .auth.sigv4 import AccessKey
from .errors import explained
from .http.botocore_transport import Channel
from .http.exchange import Patience
from .http.transport import Direct
from .select_transport import why_botocore

_LOCAL_REGION: Final = "us-east-1"
_LOCAL_KEY: Final = AccessKey(id="local", secret="local")  # noqa: S106 - opens nothing
_LOCAL_CREDENTIALS: Final = {
    "aws_access_key_id": _LOCAL_KEY.id,
    "aws_secret_access_key": _LOCAL_KEY.secret,
}
#: Places that answer only on Amazon's machines, and are slow to say nothing anywhere else.
_CLOUD_PROVIDERS: Final = ("container-role", "iam-role")
_AMAZON: Final = (".amazonaws.com", ".amazonaws.com.cn", ".api.aws", ".api.amazonwebservices.com.cn")
# boto3: making clients is not thread-safe, using them is.
_making = new_lock()


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the caller of `open` has said; None is what botocore shall find."""

    region: str | None = None
    endpoint_url: str | None = None
    profile: str | None = None
    session: Any = None
    config: Any = None
    client: Any = None
    streams_client: Any = None
    #: Whether to go through botocore, whatever is configured.
    botocore: bool = False
    patience: Patience = field(default_factory=Patience)


class Clients:
    """Makes the clients that it was not given, and closes only those."""

    def __init__(self, wanted: Wanted) -> None:
        need_botocore()
        settings = (wanted.region, wanted.endpoint_url, wanted.profile, wanted.session, wanted.config)
        if wanted.client is not None and any(setting is not None for setting in settings):
            raise NotConfigured(
                "A client comes with its region, endpoint and credentials; give either it or them."
            )
        self._wanted = wanted
        self._region = wanted.region
        self._endpoint_url = wanted.endpoint_url
        self._session = wanted.session
        self._made: list[Channel | Direct] = []
        self._lent: list[Channel] = []
        #: Set where nobody has any, for a local server.
        self._key: AccessKey | None = None
        self._streams: Channel | Direct | None = None
        self.items: Channel | Direct
        if wanted.client is not None:
            self.items = self._lend(wanted.client)
        else:
            self.items = self._make_items()
        if wanted.streams_client is not None:
            self._streams = self._lend(wanted.streams_client)

    def channel(self, operation: str) -> Channel | Direct:
        """Return the channel that takes this operation."""
        return self._channel_of_streams() if operation in STREAMS else self.items

    def is_made(self, operation: str) -> bool:
        """Whether the channel of this operation is there already."""
        return operation not in STREAMS or self._streams is not None

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

    def _channel_of_streams(self) -> Channel | Direct:
        if self._streams is None:
            if self._lent:
                raise NotConfigured(
                    "Streams have a client of their own; give streams_client= beside client=."
                )
            with _making:
                if self._streams is None:
                    self._streams = self._make_streams()
        return self._streams

    def _make_items(self) -> Channel | Direct:
        try:
            with _making:
                return self._make_first()
        except Exception as fault:
            profile = self._wanted.profile or os.environ.get("AWS_PROFILE")
            known = explained(fault, None, self._endpoint_url or "", profile=profile)
            if known is None:
                raise
            raise known from fault

    def _make_first(self) -> Channel | Direct:
        own = self._session is None
        if own:
            from botocore.session import Session

            self._session = Session(profile=self._wanted.profile)
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
                self._key = _LOCAL_KEY
                return self._keep(local)
        local.close()
        return self._keep(self._create("dynamodb", region=self._region))

    def _make_streams(self) -> Channel | Direct:
        credentials = {} if self._key is None else _LOCAL_CREDENTIALS
        made = self._create("dynamodbstreams", region=self._region, **credentials)
        # A local server takes the requests of both services; Amazon has a host for each.
        if _is_amazon(made.meta.endpoint_url) and not _is_amazon(self.items.endpoint_url):
            made.close()
            self._endpoint_url = self.items.endpoint_url
            made = self._create("dynamodbstreams", region=self._region, **credentials)
        return self._keep(made)

    def _keep(self, client: Any) -> Channel | Direct:
        wanted = self._wanted
        lent = wanted.session is not None or wanted.config is not None
        channel: Channel | Direct
        if wanted.botocore or lent or why_botocore(client):
            channel = Channel(client)
        else:
            channel = direct(client, self._session, key=self._key, patience=wanted.patience)
        self._made.append(channel)
        return channel

    def _create(self, service: str, *, region: str | None, **credentials: str) -> Any:
        create = getattr(self._session, "create_client", None) or self._session.client
        wanted = self._wanted
        config = _settings(wanted.patience)
        if wanted.config is not None:
            config = config.merge(wanted.config)
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


def _settings(patience: Patience) -> Any:
    from botocore.config import Config

    return Config(
        connect_timeout=patience.connect_seconds,
        read_timeout=patience.read_seconds,
        max_pool_connections=patience.idle_connections,
        # The flows try again: they know what may be repeated, and for how long.
        retries={"total_max_attempts": 1},
        tcp_keepalive=True,
        parameter_validation=False,
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
