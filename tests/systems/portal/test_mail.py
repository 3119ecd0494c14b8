"""E-mail of the portal over a real SMTP server: TLS, unicode, and headers that cannot be injected."""

from __future__ import annotations

import datetime
import ipaddress
import socket
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from solotable.errors import DeclarationError
from solotable.systems.errors import InvalidInput
from solotable.systems.mail.port import MailMessage, MailOutcomeUnknown, MailRejected
from solotable.systems.mail.smtp import Security, SmtpMailer

from .smtp_server import Postbox, serve_smtp

SENDER = "portal@example.org"


def mailer(
    box: Postbox, security: Security = "none", tls: ssl.SSLContext | None = None, **more: str
) -> SmtpMailer:
    return SmtpMailer(host="127.0.0.1", port=box.port, sender=SENDER, security=security, tls=tls, **more)  # type: ignore[arg-type]  # names of texts only


def message(**fields: str) -> MailMessage:
    return MailMessage(**{"to": "vic@example.org", "subject": "Hello", "text": "Hello\n", **fields})


@pytest.fixture
def box() -> Iterator[Postbox]:
    with serve_smtp() as found:
        yield found


@pytest.fixture(scope="module")
def contexts(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context with a certificate, and a client's that trusts it."""
    folder: Path = tmp_path_factory.mktemp("tls")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(
            x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    (folder / "cert.pem").write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    (folder / "key.pem").write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(folder / "cert.pem", folder / "key.pem")
    client = ssl.create_default_context(cafile=str(folder / "cert.pem"))
    return server, client


def test_a_message_arrives_as_text_and_as_html_with_its_characters(box: Postbox) -> None:
    text = "Grüße aus Köln \N{HOT BEVERAGE}\n.\nA line with a dot alone above.\n"
    mailer(box).send(message(subject="Überblick \N{BELL}", text=text, html="<p>Grüße</p>"))
    [mail] = box.mails
    assert (mail["From"], mail["To"], mail["Subject"]) == (SENDER, "vic@example.org", "Überblick \N{BELL}")
    body = mail.get_body(("plain",))
    assert body is not None
    assert body.get_content().replace("\r\n", "\n") == text
    html = mail.get_body(("html",))
    assert html is not None
    assert html.get_content().strip() == "<p>Grüße</p>"
    assert mail["Auto-Submitted"] == "auto-generated"


@pytest.mark.parametrize(
    "fields",
    [
        {"subject": "Hi\r\nBcc: eve@example.org"},
        {"subject": "Hi\nBcc: eve@example.org"},
        {"subject": "Hi\x00"},
        {"subject": "Hi\u2028Bcc: eve@example.org"},
        {"subject": ""},
        {"to": "vic@example.org\r\nBcc: eve@example.org"},
        {"to": "vic@example.org, eve@example.org"},
        {"to": "Vic <vic@example.org>"},
        {"to": "vic"},
        {"to": "vic@example.org "},
        {"message_id": "<a@b>\r\nBcc: eve@example.org"},
        {"message_id": "a@b"},
    ],
)
def test_headers_cannot_be_injected(fields: dict[str, str]) -> None:
    with pytest.raises(InvalidInput):
        message(**fields)


def test_a_long_subject_of_other_scripts_stays_one_header(box: Postbox) -> None:
    subject = "\N{CJK UNIFIED IDEOGRAPH-6F22}" * 150
    mailer(box).send(message(subject=subject))
    [mail] = box.mails
    assert mail["Subject"] == subject
    assert mail["Bcc"] is None


def test_an_address_with_other_letters_is_sent_as_it_is(box: Postbox) -> None:
    mailer(box).send(message(to="jürgen@example.org"))
    assert box.envelopes[0].rcpt_tos == ["jürgen@example.org"]


def test_a_rejected_message_is_known_to_be_unsent(box: Postbox) -> None:
    box.reply = "554 spam"
    with pytest.raises(MailRejected, match="554"):
        mailer(box).send(message())
    box.recipient_reply = "550 no such user"
    with pytest.raises(MailRejected, match="recipient"):
        mailer(box).send(message())


def test_a_connection_that_ends_after_the_message_leaves_its_outcome_unknown(box: Postbox) -> None:
    box.reply = None
    with pytest.raises(MailOutcomeUnknown):
        mailer(box).send(message())


def test_a_server_that_is_not_there_is_a_rejection() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with pytest.raises(MailRejected, match="cannot be used"):
        SmtpMailer(host="127.0.0.1", port=port, sender=SENDER, security="none").send(message())


@pytest.mark.parametrize("security", ["tls", "starttls"])
def test_a_message_is_sent_over_tls_with_a_password(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext], security: Security
) -> None:
    server, client = contexts
    options = {"tls": server} if security == "tls" else {"starttls": server}
    password = b"open sesame" if security == "starttls" else None
    credentials = {} if password is None else {"username": "portal", "password": password.decode()}
    with serve_smtp(**options, password=password) as box:
        mailer(box, security, client, **credentials).send(message())
        assert len(box.mails) == 1
        if password is not None:
            with pytest.raises(MailRejected, match="535"):
                mailer(box, security, client, username="portal", password="wrong").send(message())


def test_a_certificate_that_is_not_trusted_is_rejected(
    contexts: tuple[ssl.SSLContext, ssl.SSLContext],
) -> None:
    with serve_smtp(starttls=contexts[0]) as box:
        with pytest.raises(MailRejected, match="CERTIFICATE_VERIFY_FAILED"):
            mailer(box, "starttls").send(message())
        assert box.envelopes == []


def test_a_server_without_starttls_gets_nothing(box: Postbox) -> None:
    with pytest.raises(MailRejected, match="STARTTLS"):
        mailer(box, "starttls").send(message())
    assert box.envelopes == []


def test_a_password_is_not_sent_in_the_clear() -> None:
    with pytest.raises(DeclarationError, match="in the clear"):
        SmtpMailer(host="mail.example.org", sender=SENDER, security="none", username="a", password="b")
    assert "secret" not in repr(
        SmtpMailer(host="mail.example.org", sender=SENDER, username="a", password="secret")
    )
