"""boto3 clients and resources that an engine answers.

They read no AWS configuration of the machine, and cannot reach a network.
"""

from __future__ import annotations

import os
from functools import cache
from typing import Any, cast

from solotable._protocol.engine import Engine
from solotable.engines.sqlite import Durability
from solotable.fork_safe import new_lock

from .arguments import check_argument, open_engine, require
from .environment import REGION
from .respond import respond

# RFC 2606: names under .invalid never resolve.
_ENDPOINT = "http://solotable.invalid"
# boto3: creating clients is not thread-safe, using them is.
_making = new_lock()


def client(path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full") -> Any:
    """Return a boto3 DynamoDB client that the engine answers.

    The client owns the engine that it opens from a path: `client.close()` closes it. An engine that you
    pass stays open, and `durability` has no effect. Each call opens its path separately, so clients that
    share `":memory:"` must share an engine.
    """
    check_argument("client", path_or_engine)
    return _client("dynamodb", path_or_engine, durability)


def streams_client(
    path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full"
) -> Any:
    """Return a boto3 DynamoDB Streams client that the engine answers; see `client`."""
    check_argument("streams_client", path_or_engine)
    return _client("dynamodbstreams", path_or_engine, durability)


def resource(path_or_engine: str | os.PathLike[str] | Engine, *, durability: Durability = "full") -> Any:
    """Return a boto3 DynamoDB resource that the engine answers.

    See `client` for what is closed; the resource's client is `resource.meta.client`.
    """
    check_argument("resource", path_or_engine)
    session = isolated_session()
    engine, owned = open_engine(path_or_engine, durability)
    with _making:
        made = session.resource("dynamodb", endpoint_url=_ENDPOINT, config=_config())
    _attach(made.meta.client, engine, owned=owned)
    return made


def _client(service: str, path_or_engine: Any, durability: Durability) -> Any:
    session = isolated_session()
    engine, owned = open_engine(path_or_engine, durability)
    with _making:
        made = session.client(service, endpoint_url=_ENDPOINT, config=_config())
    _attach(made, engine, owned=owned)
    return made


def _attach(made: Any, engine: Engine, *, owned: bool) -> None:
    def answer(request: Any, **_: Any) -> Any:
        return respond(engine, request)

    made.meta.events.register_first("before-send", answer)
    if owned:
        made.solotable_engine = engine


class _OwnsEngine:
    """Base class of the clients: closes the engine that a client has opened."""

    solotable_engine: Engine | None = None

    def close(self) -> None:
        """Close the client, and the engine if the client has opened it."""
        cast(Any, super()).close()
        if self.solotable_engine is not None:
            self.solotable_engine.close()


@cache
def isolated_session() -> Any:
    """Return the session of the clients; it reads no AWS configuration of the machine."""
    boto3 = require("boto3")
    import botocore.session
    from botocore.configprovider import ConstantProvider

    session = botocore.session.Session()
    settings = session.get_component("config_store")
    for name, value in {
        "profile": None,
        "config_file": os.devnull,
        "credentials_file": os.devnull,
        "region": REGION,
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
