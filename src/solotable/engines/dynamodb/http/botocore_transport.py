"""Transport through a botocore client: botocore signs, sends and pools connections.

botocore would convert every value along its service model twice. Its public events let this transport set
the JSON body before signing and take it before parsing, so values pass unchanged. Other calls on the same
client are unaffected.
"""

from __future__ import annotations

import threading
from typing import Any, Final
from zlib import crc32

from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.operations import WITHOUT_REPLY

from .response import InvalidResponse

#: The member with the reply's bytes in botocore's result, or in the `response` of its ClientError.
RAW: Final = "SolotableRawBody"
# The members that botocore's endpoint rules read.
_ROUTING = ("TableName", "ResourceArn", "StreamArn")


class _Call(threading.local):
    """The members that this thread is sending, or None."""

    members: dict[str, Any] | None = None


class BotocoreTransport:
    """Sends wire-form requests through a botocore client."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._call = _Call()
        self._methods = {name: method for method, name in client.meta.method_to_api_mapping.items()}
        self._service = client.meta.service_model.service_id.hyphenize()
        self._validates = client.meta.config.parameter_validation
        self._placeholders: dict[str, dict[str, Any]] = {}
        events = client.meta.events
        # First, so that a boto3 resource's client does not convert the values as Python objects.
        events.register_first(f"provide-client-params.{self._service}", self._route)
        events.register_last(f"before-call.{self._service}", self._set_body)
        events.register_last(f"before-parse.{self._service}", self._take_body)

    @property
    def endpoint_url(self) -> str:
        """Where the client sends its requests."""
        url: str = self._client.meta.endpoint_url
        return url

    def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the reply; botocore's errors propagate unchanged."""
        self._call.members = members
        try:
            parsed = getattr(self._client, self._methods[operation])()
        finally:
            self._call.members = None
        body = parsed[RAW]
        checksum = parsed["ResponseMetadata"]["HTTPHeaders"].get("x-amz-crc32")
        if checksum is not None and crc32(body) != int(checksum):
            raise InvalidResponse("Its checksum does not match the body.")
        if not body and operation in WITHOUT_REPLY:
            return {}
        try:
            reply: dict[str, Any] = loads(body)
        except ValueError as fault:
            raise InvalidResponse(f"It is not JSON: {fault}.") from fault
        return reply

    def detach(self) -> None:
        """Remove the handlers from the client."""
        events = self._client.meta.events
        events.unregister(f"provide-client-params.{self._service}", self._route)
        events.unregister(f"before-call.{self._service}", self._set_body)
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
            # The rules need the names of a batch's tables.
            entries = _placeholder(model.input_shape.members["RequestItems"].value)
            routing["RequestItems"] = dict.fromkeys(members["RequestItems"], entries)
        if not self._validates:
            return routing
        placeholder = self._placeholders.get(model.name)
        if placeholder is None:
            placeholder = self._placeholders[model.name] = _placeholder(model.input_shape)
        return {**placeholder, **routing}

    def _set_body(self, params: dict[str, Any], **_: Any) -> None:
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


def _placeholder(shape: Any) -> Any:
    """Return the smallest value that passes the validation of a client that validates."""
    match shape.type_name:
        case "structure":
            return {name: _placeholder(shape.members[name]) for name in shape.required_members}
        case "list":
            return [_placeholder(shape.member)] * max(shape.metadata.get("min", 0), 1)
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
