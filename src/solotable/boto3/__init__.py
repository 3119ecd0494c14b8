"""boto3 and botocore clients that an engine in this process answers, without a socket.

`client`, `resource` and `streams_client` create clients. They use botocore's documented `before-send`
event: a handler that returns a response replaces the network. The rest of botocore (validation, retries,
exceptions, paginators, waiters) runs unchanged. These clients read no AWS configuration, sign nothing, and
have an endpoint that cannot resolve, so they cannot reach a network.

`routed` serves code that creates its own clients. An event does not reach existing clients or those of
other sessions, so it wraps the method through which all of them send,
`botocore.httpsession.URLLib3Session.send`. It answers requests to DynamoDB and DynamoDB Streams, which it
recognizes by their X-Amz-Target, and sends those of other services. It does not sign the requests that it
answers, so clients without credentials work, and clients with expired credentials do not look for new ones.

Requests and replies are bytes, as through a socket. Clients with another HTTP stack (aiobotocore, other
languages) are not routed.
"""

from __future__ import annotations

from .clients import client, resource, streams_client
from .routing import routed

__all__ = ["client", "resource", "routed", "streams_client"]
