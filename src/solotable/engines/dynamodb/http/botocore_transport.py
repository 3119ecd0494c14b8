"""One botocore client as a pipe for wire form: botocore finds the endpoint, signs, sends and reuses
connections; the JSON on both sides is ours.

botocore would walk every value along its service model twice, and turn base64 and times into Python
objects. Its public events let the body be put in before signing and taken out before parsing, so
values pass as they are. Calls that others make on the same client are left alone.
"""

from __future__ import annotations

import threading
from typing import Any, Final
from zlib import crc32

from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.operations import WITHOUT_REPLY

from .response import Unreadable

#: Where the answer's bytes are in what botocore returns, or in the `response` of its ClientError.
RAW: Final = "SolotableRawBody"
# What the endpoint's rules look at: the other members are of no use to botocore.
_ROUTING = ("TableName", "ResourceArn", "StreamArn")


class _Call(threading.local):
    """The members that this thread is sending through the channel, if it is sending any."""

    members: dict[str, Any] | None = None


class Channel:
    """A client of botocore, and the handlers that let wire form through it."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._call = _Call()
        self._methods = {name: method for method, name in client.meta.method_to_api_mapping.items()}
        self._service = client.meta.service_model.service_id.hyphenize()
        self._validates = client.meta.config.parameter_validation
        self._hollows: dict[str, dict[str, Any]] = {}
        events = client.meta.events
        # First, so that a client of a boto3 resource does not take our values for Python objects.
        events.register_first(f"provide-client-params.{self._service}", self._route)
        events.register_last(f"before-call.{self._service}", self._put_body)
        events.register_last(f"before-parse.{self._service}", self._take_body)

    @property
    def endpoint_url(self) -> str:
        """Where the client sends its requests."""
        url: str = self._client.meta.endpoint_url
        return url

    def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the answer; botocore's errors are raised as they are."""
        self._call.members = members
        try:
            parsed = getattr(self._client, self._methods[operation])()
        finally:
            self._call.members = None
        body = parsed[RAW]
        checksum = parsed["ResponseMetadata"]["HTTPHeaders"].get("x-amz-crc32")
        if checksum is not None and crc32(body) != int(checksum):
            raise Unreadable("Its checksum is that of another body.")
        if not body and operation in WITHOUT_REPLY:
            return {}
        try:
            answer: dict[str, Any] = loads(body)
        except ValueError as fault:
            raise Unreadable(f"It is no JSON: {fault}.") from fault
        return answer

    def detach(self) -> None:
        """Leave the client as it was before."""
        events = self._client.meta.events
        events.unregister(f"provide-client-params.{self._service}", self._route)
        events.unregister(f"before-call.{self._service}", self._put_body)
        events.unregister(f"before-parse.{self._service}", self._take_body)

    def close(self) -> None:
        """Close the client's connections."""
        self._client.close()

    def _route(self, model: Any, **_: Any) -> dict[str, Any] | None:
        members = self._call.members
        if members is None:
            return None
        routing = {name: members[name] for name in _ROUTING if name in members}
        if "RequestItems" in members:
            # The rules want the names of a batch's tables, and fail without any.
            part = _hollow(model.input_shape.members["RequestItems"].value)
            routing["RequestItems"] = dict.fromkeys(members["RequestItems"], part)
        if not self._validates:
            return routing
        hollow = self._hollows.get(model.name)
        if hollow is None:
            hollow = self._hollows[model.name] = _hollow(model.input_shape)
        return {**hollow, **routing}

    def _put_body(self, params: dict[str, Any], **_: Any) -> None:
        members = self._call.members
        if members is not None:
            params["body"] = dumps(members)

    def _take_body(
        self, response_dict: dict[str, Any], customized_response_dict: dict[str, Any], **_: Any
    ) -> None:
        if self._call.members is None:
            return
        customized_response_dict[RAW] = response_dict["body"]
        if response_dict["status_code"] < 300:
            response_dict["body"] = b"{}"


def _hollow(shape: Any) -> Any:
    """Return the least that botocore's own validation lets pass: its clients cannot go without it."""
    match shape.type_name:
        case "structure":
            return {name: _hollow(shape.members[name]) for name in shape.required_members}
        case "list":
            return [_hollow(shape.member)] * max(shape.metadata.get("min", 0), 1)
        case "map":
            return {}
        case "string":
            return "-" * max(shape.metadata.get("min", 0), 1)
        case "boolean":
            return False
        case "blob":
            return b""
        case _:
            return max(shape.metadata.get("min", 0), 1)
