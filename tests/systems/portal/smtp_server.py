"""A real SMTP server for tests: it keeps what it receives, and can reject, drop or ask for TLS."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from typing import Any, cast

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, LoginPassword, Session


@dataclass
class Postbox:
    """What a server received, and how it answers."""

    envelopes: list[Envelope] = field(default_factory=list)
    #: The reply to a message; None drops the connection after the message was received.
    reply: str | None = "250 OK"
    recipient_reply: str = "250 OK"
    port: int = 0

    async def handle_RCPT(  # noqa: N802 - aiosmtpd's name
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        if self.recipient_reply.startswith("250"):
            envelope.rcpt_tos.append(address)
        return self.recipient_reply

    async def handle_DATA(self, server: SMTP, session: Session, envelope: Envelope) -> str:  # noqa: N802 - aiosmtpd's name
        self.envelopes.append(envelope)
        if self.reply is None:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "421 gone"
        return self.reply

    @property
    def mails(self) -> list[EmailMessage]:
        """The received messages, parsed."""
        contents = [cast(bytes, each.original_content) for each in self.envelopes]
        return [message_from_bytes(each, policy=default) for each in contents]


class _Controller(Controller):
    """A server on a free port."""

    def _trigger_server(self) -> None:
        assert isinstance(self.server, asyncio.Server)
        self.port = self.server.sockets[0].getsockname()[1]
        super()._trigger_server()  # type: ignore[no-untyped-call]  # aiosmtpd has no types here


@contextmanager
def serve_smtp(
    *,
    tls: ssl.SSLContext | None = None,
    starttls: ssl.SSLContext | None = None,
    password: bytes | None = None,
) -> Iterator[Postbox]:
    """Serve SMTP on a free port."""

    def authenticate(
        server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any
    ) -> AuthResult:
        is_right = isinstance(data, LoginPassword) and data.password == password
        return AuthResult(success=is_right, handled=is_right)

    box = Postbox()
    options: dict[str, Any] = {"tls_context": starttls, "require_starttls": starttls is not None}
    if password is not None:
        options |= {"authenticator": authenticate, "auth_required": True, "auth_require_tls": True}
    controller = _Controller(box, hostname="127.0.0.1", port=0, ssl_context=tls, **options)
    controller.start()
    try:
        box.port = controller.port
        yield box
    finally:
        controller.stop()
