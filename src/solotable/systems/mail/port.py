"""The port of e-mail: a message, which rejects line breaks in headers, and a mailer.

A mailer is blocking; call it in a thread, as jobs do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Protocol

from solotable.errors import SolotableError
from solotable.systems.errors import InvalidInput

#: One address: no display name, no list, no comment, no control character, no space.
_ADDRESS = re.compile(
    r"[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f-\x9f]{1,64}@[^\s@<>()\[\]\\,;:\"\x00-\x1f\x7f-\x9f]{1,255}"
)
_LONGEST_SUBJECT = 200
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class MailRejected(SolotableError):
    """The message was not sent: the server cannot be reached, or rejected it."""


class MailOutcomeUnknown(SolotableError):
    """The connection ended after the message was handed over: it may have been sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MailMessage:
    """An e-mail to one address, as text and as HTML."""

    to: str
    subject: str
    text: str
    html: str | None = None
    #: Identifies the message; a mail system may drop a second one.
    message_id: str | None = None

    def __post_init__(self) -> None:
        check_address(self.to)
        if not self.subject or len(self.subject) > _LONGEST_SUBJECT or _CONTROL.search(self.subject):
            raise InvalidInput(f"subject: write one line of 1 to {_LONGEST_SUBJECT} characters.")
        if self.message_id is not None and not re.fullmatch(r"<[!-;=?-~]+@[!-;=?-~]+>", self.message_id):
            raise InvalidInput("message_id: write it as <id@host>.")


class Mailer(Protocol):
    """Sends messages."""

    def send(self, message: MailMessage) -> None:
        """Send a message; raise MailRejected if it was not sent, MailOutcomeUnknown if it may have been."""


def check_address(address: str) -> None:
    """Raise InvalidInput for anything but one plain address."""
    if not _ADDRESS.fullmatch(address):
        raise InvalidInput("address: write one e-mail address, as ann@example.org.")
