"""E-mail by SMTP: TLS from the start, STARTTLS, or plain to a relay on this host."""

from __future__ import annotations

import smtplib
import ssl
from contextlib import suppress
from dataclasses import dataclass, field
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import formatdate
from typing import Any, Literal

from solotable.errors import DeclarationError

from .port import MailMessage, MailOutcomeUnknown, MailRejected, check_address

Security = Literal["tls", "starttls", "none"]
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class SmtpMailer:
    """A Mailer that opens one connection for each message.

    `security="none"` sends in the clear, so it takes no password, except to this host. A server without
    STARTTLS is an error: the mailer never falls back to a connection without encryption.
    """

    host: str
    sender: str
    port: int = 587
    security: Security = "starttls"
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    timeout_seconds: float = 10.0
    #: Trusted certificates; those of the system by default.
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        check_address(self.sender)
        if self.security not in ("tls", "starttls", "none"):
            raise DeclarationError(f"security= is 'tls', 'starttls' or 'none', got {self.security!r}.")
        if self.password is not None and self.security == "none" and self.host not in _LOCAL:
            raise DeclarationError(
                "SmtpMailer would send its password in the clear; use security='starttls' or 'tls'."
            )

    def send(self, message: MailMessage) -> None:
        """Send a message; see the port for its errors."""
        mail = encode_mail(message, self.sender)
        handed_over = False
        try:
            session = self._connect()
            try:
                session.send_message(mail, from_addr=self.sender, to_addrs=[message.to])
            finally:
                handed_over = session.handed_over
                # The reply to DATA decides. A server that is slow to say goodbye changes nothing.
                with suppress(OSError, smtplib.SMTPException):
                    session.quit()
                session.close()
        except smtplib.SMTPResponseException as error:
            raise MailRejected(f"The SMTP server rejected the message with {error.smtp_code}.") from error
        except smtplib.SMTPRecipientsRefused as error:
            raise MailRejected("The SMTP server rejected the recipient.") from error
        except (smtplib.SMTPException, OSError) as error:
            cause = f"{type(error).__name__}: {error}"
            if handed_over:
                raise MailOutcomeUnknown(f"No reply to the message was received ({cause}).") from error
            raise MailRejected(f"The SMTP server {self.host} cannot be used ({cause}).") from error

    def _connect(self) -> _Session | _TlsSession:
        tls = self.tls or ssl.create_default_context()
        session: _Session | _TlsSession
        if self.security == "tls":
            session = _TlsSession(self.host, self.port, timeout=self.timeout_seconds, context=tls)
        else:
            session = _Session(self.host, self.port, timeout=self.timeout_seconds)
        try:
            if self.security == "starttls":
                session.starttls(context=tls)
            if self.username is not None:
                session.login(self.username, self.password or "")
        except BaseException:
            session.close()
            raise
        return session


class _Session(smtplib.SMTP):
    """A session that remembers whether a message was handed over."""

    handed_over = False

    def data(self, msg: Any) -> tuple[int, bytes]:
        self.handed_over = True
        return super().data(msg)


class _TlsSession(smtplib.SMTP_SSL):
    """A session with TLS from the start that remembers whether a message was handed over."""

    handed_over = False

    def data(self, msg: Any) -> tuple[int, bytes]:
        self.handed_over = True
        return super().data(msg)


def encode_mail(message: MailMessage, sender: str) -> EmailMessage:
    """Return a message as MIME: text, and HTML as an alternative."""
    mail = EmailMessage(policy=SMTP_POLICY)
    mail["From"] = sender
    mail["To"] = message.to
    mail["Subject"] = message.subject
    mail["Date"] = formatdate()
    # RFC 3834: so that answering machines do not answer.
    mail["Auto-Submitted"] = "auto-generated"
    if message.message_id is not None:
        mail["Message-ID"] = message.message_id
    mail.set_content(message.text)
    if message.html is not None:
        mail.add_alternative(message.html, subtype="html")
    return mail
