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

Requests come and go as bytes, as they would through a socket. Clients that bring an HTTP stack of
their own (aiobotocore, other languages) are not routed.
"""

from __future__ import annotations

from .clients import client, resource, streams_client
from .routing import routed

__all__ = ["client", "resource", "routed", "streams_client"]
