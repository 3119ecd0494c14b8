"""Answer requests in wire form: target and JSON bytes for servers, operation and dict in process.

`answer` never raises: a ServiceError becomes an error body, and any other error an InternalServerError and a
log record. Sockets, headers and signatures are the server's.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any, Final

from solotable.errors import ServiceError

from . import errors
from .constraints.operations import ITEMS
from .constraints.tables import STREAMS, TABLES
from .decode.requests import decode_request
from .encode.json_replies import encode_pieces
from .encode.replies import encode_reply
from .engine import Engine
from .error_texts import LATEST, ErrorTexts
from .json_codec import dumps, loads, plain_dumps
from .operations import WITHOUT_REPLY
from .replies import Reply
from .requests import Control, Request

_LOG = logging.getLogger(__name__)
_TARGETS: Final = {
    **{f"DynamoDB_20120810.{operation}": operation for operation in (*ITEMS, *TABLES)},
    **{f"DynamoDBStreams_20120810.{operation}": operation for operation in STREAMS},
}
_INTERNAL = "The request processing has failed because of an unknown error, exception or failure."


def answer(engine: Engine, target: str, body: bytes) -> tuple[int, bytes]:
    """Answer one request with a status and a JSON body; `target` is the X-Amz-Target header."""
    status, pieces = encode_response(
        target, lambda: engine.handle(decode_body(target, body, engine.capabilities.error_texts))
    )
    return status, b"".join(pieces)


def decode_body(target: str, body: bytes, texts: ErrorTexts = LATEST) -> Request[Any]:
    """Return the request of a target and a JSON body, or raise DynamoDB's error."""
    operation = _TARGETS.get(target)
    # DynamoDB: rejects invalid JSON before it reads the target, but accepts an empty body.
    payload = None
    if body or operation is not None:
        try:
            payload = loads(body)
        except ValueError:
            # DynamoDB: the message is empty.
            raise errors.unreadable("") from None
    if operation is None:
        raise errors.unknown_operation(target.removeprefix("DynamoDB_20120810."))
    return decode_request(operation, payload, texts)


def encode_response(target: str, reply: Callable[[], Reply]) -> tuple[int, list[bytes]]:
    """Return the status and JSON body, in pieces, of the reply or error of a function."""
    try:
        found = reply()
        # DynamoDB: some operations have no output in the API model; the body is empty, not "{}".
        return 200, [] if _TARGETS.get(target) in WITHOUT_REPLY else encode_pieces(found)
    except ServiceError as rejected:
        return encode_error(rejected)
    except Exception:  # noqa: BLE001  # process edge: the server survives an error of one request
        _LOG.exception("%s failed", target)
        return encode_error(ServiceError("InternalServerError", _INTERNAL, status=500))


def encode_error(rejected: ServiceError) -> tuple[int, list[bytes]]:
    """Return the status and JSON body of an error, in one piece."""
    return rejected.status, [dumps(rejected.body())]


def call(
    engine: Engine, operation: str, payload: dict[str, Any], *, texts: ErrorTexts | None = None
) -> dict[str, Any]:
    """Answer one request from dict to dict, or raise DynamoDB's error, in the engine's texts by default."""
    try:
        request = decode_request(operation, payload, texts or engine.capabilities.error_texts)
        if isinstance(request, Control):
            # Definitions are stored as escaped JSON, which accepts lone surrogates; no reply can carry them.
            _check_unicode(request.members)
        return encode_reply(engine.handle(request))
    except (TypeError, UnicodeEncodeError):
        # Dicts can hold lone surrogates, which fail when the engine encodes them. Bytes cannot.
        _check_unicode(payload)
        raise


def _check_unicode(payload: dict[str, Any]) -> None:
    try:
        plain_dumps(payload)
    except UnicodeEncodeError:
        raise errors.unreadable("") from None
