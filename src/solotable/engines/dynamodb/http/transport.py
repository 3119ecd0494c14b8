"""The lean way to an endpoint: own signatures, own connections, and JSON on both sides.

An UpdateItem takes an eighth of the CPU that it takes through botocore. What a request needs in order to
be sent and understood is here; who signs it, and where to, was found by botocore. One call is one
request, except where the first was certainly not carried out: it did not leave whole, it was a read on
a connection that had died, or it was refused for a clock that is wrong or for keys that have expired.
"""

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
from solotable.engines.dynamodb.auth.credentials import Signers
from solotable.engines.dynamodb.auth.sigv4 import Signer
from solotable.engines.dynamodb.idempotency import only_reads
from solotable.engines.dynamodb.select_transport import is_untouched

from .botocore_transport import Channel
from .error_body import Refused, code_and_message
from .exchange import Lost
from .pool import Pool
from .response import Answer, Unreadable

USER_AGENT: Final = f"solotable/{__version__} lang/python#{platform.python_version()} os/{platform.system()}"
_HEAD: Final = f"POST / HTTP/1.1\r\nUser-Agent: {USER_AGENT}\r\n"
_EXPIRED: Final = frozenset({"ExpiredToken", "ExpiredTokenException"})
_SKEWED: Final = frozenset({"RequestExpired", "RequestInTheFuture", "RequestTimeTooSkewed"})
#: DynamoDB: it has no code of its own for a clock that is wrong.
_SKEWED_SIGNATURES: Final = ("Signature expired", "Signature not yet current")
#: Less than this is no reason for a refusal: the clocks agree, and signing again would not help.
_LEAST_SKEW_SECONDS: Final = 60


#: A request to send, which gives its Answer, or something to call that may take its time.
Step = bytes | Callable[[], Any]
Talk = Generator[Step, Any, dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is asked where: the X-Amz-Target of each operation."""

    endpoint_url: str
    targets: Mapping[str, str]


class Wording:
    """Requests as bytes and answers as members; does no I/O, so that any way of sending can use it."""

    def __init__(self, service: Service, signers: Signers, *, clock: Callable[[], float] = time.time) -> None:
        self.signers = signers
        self._targets = service.targets
        self._clock = clock
        #: The server's clock less ours, once a server has refused ours.
        self._offset = 0.0

    def talk(self, operation: str, members: dict[str, Any], signer: Signer) -> Talk:
        """Yield what is to be done, get what came of it, and return the answer's members or raise Refused."""
        target = self._targets[operation]
        body = dumps(members)
        answer = yield self._request(signer, target, body)
        if answer.status >= 300:
            again = yield from self._corrected(answer, signer)
            if again is not None:
                answer = yield self._request(again, target, body)
        return read(operation, answer)

    def _request(self, signer: Signer, target: str, body: bytes) -> bytes:
        headers = signer.headers(target, body, self._clock() + self._offset)
        return f"{_HEAD}{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body

    def _corrected(self, answer: Answer, signer: Signer) -> Generator[Step, Any, Signer | None]:
        """Return who signs the same request again, when it was refused for its signature's age."""
        code, message = code_and_message(answer.status, answer.body)
        if code in _EXPIRED:
            renewed: Signer | None = yield partial(self.signers.renewed, signer)
            return renewed
        if code in _SKEWED or (
            code == "InvalidSignatureException" and message.startswith(_SKEWED_SIGNATURES)
        ):
            return signer if self._adjust(answer.headers.get(b"date", b"")) else None
        return None

    def _adjust(self, date: bytes) -> bool:
        try:
            moment = parsedate_to_datetime(date.decode("latin-1")).timestamp()
        except ValueError:
            return False
        offset = moment - self._clock()
        if abs(offset - self._offset) < _LEAST_SKEW_SECONDS:
            return False
        self._offset = offset
        return True


class Direct:
    """A channel of our own; it gives way to botocore's for as long as somebody has taken hold of that."""

    def __init__(self, service: Service, wording: Wording, pool: Pool, *, aside: Channel) -> None:
        self.endpoint_url = service.endpoint_url
        self.wording = wording
        self.aside = aside
        self.pool = pool

    def send(self, operation: str, members: dict[str, Any]) -> dict[str, Any]:
        """Return the members of the answer."""
        if not is_untouched():
            return self.aside.send(operation, members)
        talk = self.wording.talk(operation, members, self.wording.signers.current())
        try:
            step = next(talk)
            while True:
                if not isinstance(step, bytes):
                    step = talk.send(step())
                    continue
                try:
                    answer = self.pool.exchange(step)
                except Lost as lost:
                    if not lost.stale or not only_reads(operation, members):
                        raise
                    answer = self.pool.exchange(step, fresh=True)
                step = talk.send(answer)
        except StopIteration as done:
            found: dict[str, Any] = done.value
            return found

    def close(self) -> None:
        """Close the connections, and botocore's beside them."""
        self.pool.close()
        self.aside.close()


def read(operation: str, answer: Answer) -> dict[str, Any]:
    """Return the members of an answer, or raise Refused, or Unreadable for what is no JSON object."""
    body = answer.body
    if answer.status >= 300:
        raise Refused(answer.status, body)
    # None was asked for.
    if answer.headers.get(b"content-encoding", b"identity") != b"identity":
        raise Unreadable("It has an encoding that was not asked for.")
    if not body and operation in WITHOUT_REPLY:
        return {}
    try:
        members = loads(body)
    except ValueError as fault:
        raise Unreadable(f"It is no JSON: {fault}.") from fault
    if not isinstance(members, dict):
        raise Unreadable("It is no JSON object.")
    return members
