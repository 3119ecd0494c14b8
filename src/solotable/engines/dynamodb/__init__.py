"""The engine that asks Amazon DynamoDB, or any endpoint that speaks its protocol.

botocore finds region, endpoint and credentials; signing and sending are our own, for an eighth of its CPU,
where nothing special is configured (`ways` says what that is). It is imported when an engine is opened,
and not before: it belongs to the extra `aws`.
"""

from __future__ import annotations

from typing import Any

from .clients import Clients, Wanted
from .engine import DynamoEngine

__all__ = ["DynamoEngine", "open"]


def open(  # noqa: A001, PLR0913 - dynamodb.open(...) is how it reads; each is one thing a caller may have
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

    What is not given comes from where botocore looks for it: the environment, then the profile. A
    plain http endpoint needs neither a region nor credentials. `session` is a boto3 or botocore
    session; `config` is a botocore Config that goes over our own. With either of them, and with
    `botocore=True`, requests go through botocore all the way.

    `client` (and `streams_client` beside it) is a ready boto3 or botocore client: it is used as it
    is, its own retries included, and stays open when the engine is closed.
    """
    return DynamoEngine(
        Clients(
            Wanted(
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
