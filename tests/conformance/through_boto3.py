"""A server as boto3 sees it: what boto3 can send goes through boto3, the rest as plain HTTP.

Before a request leaves, its body is compared with the case's own; when boto3 would send something else
(it drops what it does not know and cannot write wrong types) the case's bytes are sent instead.
Every reply must survive boto3: read by its models and written back, it is what the server sent.
"""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from binascii import Error as NotBase64
from collections import Counter
from datetime import datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import ClientError

from .harness import Json, Refused
from .targets import STREAMS, Http


class _Otherwise(Exception):
    """boto3 would send another request than the case's."""


class Boto3:
    """A server on this port, asked through boto3 wherever that is possible."""

    def __init__(self, port: int) -> None:
        self.plain = Http("127.0.0.1", port)
        #: How many requests went which way.
        self.sent: Counter[str] = Counter()
        self._wanted: Any = None
        self._raw: Json = {}
        self._clients = {name: self._client(name, port) for name in ("dynamodb", "dynamodbstreams")}

    def call(self, operation: str, request: Any) -> Json:
        client = self._clients["dynamodbstreams" if operation in STREAMS else "dynamodb"]
        model = client.meta.service_model
        if operation not in model.operation_names or not isinstance(request, dict):
            return self._plainly(operation, request)
        # As JSON says it: what the case shares between its steps is not shared here.
        self._wanted = json.loads(json.dumps(request))
        self._raw = {}
        try:
            arguments = _to_boto3(self._wanted, model.operation_model(operation).input_shape)
            reply: Json = client._make_api_call(operation, arguments)
        except ClientError as error:
            self.sent["boto3"] += 1
            raise self._refusal(error) from error
        except Exception:
            if self._raw:
                raise
            return self._plainly(operation, request)
        self.sent["boto3"] += 1
        assert reply.pop("ResponseMetadata")["HTTPStatusCode"] == 200
        written = _to_wire(reply)
        assert written == self._raw, "boto3 does not read all that was sent"
        return self._raw

    def _plainly(self, operation: str, request: Any) -> Json:
        self.sent["plain"] += 1
        return self.plain.call(operation, request)

    def _refusal(self, error: ClientError) -> Refused:
        response = dict(error.response)
        reason = response.pop("Error")
        response.pop("ResponseMetadata")
        shown = {name: value for name, value in _to_wire(response).items() if name.lower() != "message"}
        body = {
            name: value for name, value in self._raw.items() if name not in ("__type", "message", "Message")
        }
        assert shown == body, "boto3 does not read all that was sent"
        return Refused(reason["Code"], reason["Message"], self._raw)

    def _client(self, name: str, port: int) -> Any:
        client = boto3.client(
            name,
            endpoint_url=f"http://127.0.0.1:{port}",
            region_name="us-east-1",
            aws_access_key_id="key",
            aws_secret_access_key="secret",
            config=Config(parameter_validation=False, retries={"total_max_attempts": 1}),
        )
        client.meta.events.register(f"before-call.{name}", self._check)
        client.meta.events.register(f"before-parse.{name}", self._keep)
        return client

    def _check(self, params: dict[str, Any], **_: Any) -> None:
        sent = json.loads(params["body"])
        if "ClientRequestToken" not in self._wanted:
            sent.pop("ClientRequestToken", None)  # botocore makes one up
        # As text: to Python 1 is True, and to DynamoDB it is not.
        if json.dumps(sent, sort_keys=True) != json.dumps(self._wanted, sort_keys=True):
            raise _Otherwise

    def _keep(self, response_dict: dict[str, Any], **_: Any) -> None:
        self._raw = json.loads(response_dict["body"] or b"{}")

    def close(self) -> None:
        self.plain.close()
        for client in self._clients.values():
            client.close()


def _to_boto3(value: Any, shape: Any) -> Any:
    """The value as boto3 takes it: binary is bytes; whatever is not as its shape says stays as it is."""
    match getattr(shape, "type_name", None), value:
        case "structure", dict():
            return {name: _to_boto3(member, shape.members.get(name)) for name, member in value.items()}
        case "map", dict():
            return {name: _to_boto3(member, shape.value) for name, member in value.items()}
        case "list", list():
            return [_to_boto3(member, shape.member) for member in value]
        case "blob", str():
            try:
                return b64decode(value, validate=True)
            except (NotBase64, ValueError):
                return value
        case _:
            return value


def _to_wire(value: Any) -> Any:
    match value:
        case dict():
            return {name: _to_wire(member) for name, member in value.items()}
        case list():
            return [_to_wire(member) for member in value]
        case bytes():
            return b64encode(value).decode()
        case datetime():
            return value.timestamp()
        case _:
            return value
