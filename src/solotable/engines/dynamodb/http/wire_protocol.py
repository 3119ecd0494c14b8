"""Encode and sign requests, and decode responses; no I/O, for blocking and async transports alike."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Final

from solotable import __version__
from solotable._protocol.json_codec import dumps, loads
from solotable._protocol.operations import WITHOUT_REPLY
from solotable.engines.dynamodb.auth.credentials import SignerSource
from solotable.engines.dynamodb.auth.sigv4 import Signer

from .error_body import ErrorResponse, code_and_message
from .response import HttpResponse, InvalidResponse
from .server_clock import ServerClock

USER_AGENT: Final = f"solotable/{__version__} lang/python#{platform.python_version()} os/{platform.system()}"
_HEAD: Final = f"POST / HTTP/1.1\r\nUser-Agent: {USER_AGENT}\r\n"
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
_SKEWED: Final = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
#: DynamoDB: it reports a wrong clock with the code of a wrong signature.
_SKEWED_SIGNATURES: Final = ("Signature expired", "Signature not yet current")
#: A smaller skew does not cause the rejection, so signing again would not help.
_MIN_SKEW_SECONDS: Final = 60

#: Request bytes, to be answered with an HttpResponse, or a function to call that may block.
Step = bytes | Callable[[], Any]
CallSteps = Generator[Step, Any, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """The URL of a service, and the X-Amz-Target of each operation."""

    endpoint_url: str
    targets: Mapping[str, str]


class WireProtocol:
    """Turns operations into signed requests, and responses into members."""

    def __init__(
        self, service: Service, signers: SignerSource, *, clock: Callable[[], float] = time.time
    ) -> None:
        self.signers = signers
        self._targets = service.targets
        self._clock = clock
        self.server_clock = ServerClock(clock)
        #: The server's clock minus ours, after a server has rejected ours.
        self._offset = 0.0

    def call_steps(self, operation: str, members: dict[str, Any], signer: Signer) -> CallSteps:
        """Yield each step, receive its result, and return the reply's members or raise ErrorResponse."""
        target = self._targets[operation]
        body = dumps(members)
        sent = self._clock()
        response = yield self._request(signer, target, body)
        self.server_clock.observe(response.headers.get(b"date"), sent)
        if response.status >= 300:
            new_signer = yield from self._correct(response, signer)
            if new_signer is not None:
                response = yield self._request(new_signer, target, body)
        return decode_response(operation, response)

    def _request(self, signer: Signer, target: str, body: bytes) -> bytes:
        headers = signer.headers(target, body, self._clock() + self._offset)
        return f"{_HEAD}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _correct(self, response: HttpResponse, signer: Signer) -> Generator[Step, Any, Signer | None]:
        """Return the signer for a second attempt if expired credentials or a wrong clock failed the first."""
        code, message = code_and_message(response.status, response.body)
        if code in _EXPIRED:
            renewed: Signer | None = yield partial(self.signers.renew, signer)
            return renewed
        if code in _SKEWED or (
            code == "InvalidSignatureException" and message.startswith(_SKEWED_SIGNATURES)
        ):
            return signer if self._adjust_clock(response.headers.get(b"date", b"")) else None
        return None

    def _adjust_clock(self, date: bytes) -> bool:
        try:
            moment = parsedate_to_datetime(date.decode("latin-1")).timestamp()
        except ValueError:
            return False
        offset = moment - self._clock()
        if abs(offset - self._offset) < _MIN_SKEW_SECONDS:
            return False
        self._offset = offset
        return True


def decode_response(operation: str, response: HttpResponse) -> dict[str, Any]:
    """Return the members of a response; raise ErrorResponse, or InvalidResponse without a JSON object."""
    body = response.body
    if response.status >= 300:
        raise ErrorResponse(response.status, body)
    # The request accepts no encoding.
    if response.headers.get(b"content-encoding", b"identity") != b"identity":
        raise InvalidResponse("It has an unrequested Content-Encoding.")
    if not body and operation in WITHOUT_REPLY:
        return {}
    try:
        members = loads(body)
    except ValueError as fault:
        raise InvalidResponse(f"It is not JSON: {fault}.") from fault
    if not isinstance(members, dict):
        raise InvalidResponse("It is not a JSON object.")
    return members
