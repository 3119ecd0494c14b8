"""The engine for Amazon DynamoDB, or any endpoint that speaks its protocol.

`engine` encodes requests and decodes replies. `transports` finds region, endpoint and credentials through
botocore, and opens the transport that `select_transport` picks: `http.transport`, which signs and sends for
an eighth of botocore's CPU time, or `http.botocore_transport` where the configuration needs botocore.
`errors` translates failures. botocore belongs to the extra `aws`; opening an engine imports it.
"""

from __future__ import annotations

from typing import Any

from .engine import DynamoEngine
from .transports import EndpointOptions, Transports

__all__ = ["DynamoEngine", "open"]


def open(  # noqa: A001, PLR0913 - callers write dynamodb.open(...); each parameter is one independent option
    *,
    region: str | None = None,
    endpoint_url: str | None = None,
    profile: str | None = None,
    session: Any = None,
    config: Any = None,
    client: Any = None,
    streams_client: Any = None,
    botocore: bool = False,
) -> DynamoEngine:
    """Open an engine on a DynamoDB endpoint.

    botocore finds what you leave out: in the environment, then in the profile. A plain http endpoint needs
    neither a region nor credentials. `session` is a boto3 or botocore session; `config` is a botocore
    Config that overrides the engine's own. With either of them, or with `botocore=True`, botocore sends
    every request.

    `client` (and `streams_client`) is a boto3 or botocore client. The engine uses it unchanged, with its
    retries, and does not close it.
    """
    return DynamoEngine(
        Transports(
            EndpointOptions(
                region=region,
                endpoint_url=endpoint_url,
                profile=profile,
                session=session,
                config=config,
                client=client,
                streams_client=streams_client,
                botocore=botocore,
            )
        )
    )
