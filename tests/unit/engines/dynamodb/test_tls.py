"""TLS connections: which certificates they trust, and the errors for others."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from solotable._protocol.engine import Engine
from solotable._protocol.requests import GetItem, PutItem
from solotable.engines import dynamodb
from solotable.engines.dynamodb.http.exchange import HttpSettings
from solotable.errors import NotConfigured, OutcomeUnknown, TransportError

from .evil import GOOD, Act, evil, reply

KEY = {"pk": {"S": "a"}}
READ = GetItem(table="Things", key=KEY)
WRITE = PutItem(table="Things", item=KEY)


@pytest.fixture(autouse=True)
def configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")


def certificate(folder: Path, address: str = "127.0.0.1") -> Path:
    """A file with a key, and a certificate that it has signed itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "evil")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), critical=False)
        .sign(key, hashes.SHA256())
    )
    place = folder / f"{address}.pem"
    place.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        + made.public_bytes(serialization.Encoding.PEM)
    )
    return place


def serving(place: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(place)
    return context


@pytest.mark.parametrize("variable", ["AWS_CA_BUNDLE", "REQUESTS_CA_BUNDLE"])
def test_an_authority_may_be_named(
    variable: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened_at: Callable[..., Engine]
) -> None:
    place = certificate(tmp_path)
    monkeypatch.setenv(variable, str(place))
    large = {**KEY, "b": {"S": "x" * 400_000}}
    with evil(tls=serving(place)) as server:
        engine = opened_at(server.url)
        for _ in range(3):
            assert engine.handle(READ).item == KEY
            engine.handle(PutItem(table="Things", item=large))
        assert server.connections == 1
        server.acts = [Act(reply=reply()[:-1], hangs_up=True)]
        with pytest.raises(OutcomeUnknown):
            engine.handle(WRITE)
        server.acts = [GOOD, Act(resets=True), GOOD]
        engine.handle(READ)
        assert engine.handle(READ).item == KEY


@pytest.mark.parametrize("address", ["127.0.0.1", "127.0.0.2"])
def test_an_untrusted_certificate_raises(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened_at: Callable[..., Engine]
) -> None:
    place = certificate(tmp_path, address)
    if address != "127.0.0.1":
        # Trusted, but for another host.
        monkeypatch.setenv("AWS_CA_BUNDLE", str(place))
    with evil(tls=serving(place)) as server:
        engine = opened_at(server.url)
        for request in (READ, WRITE):
            with pytest.raises(TransportError, match="AWS_CA_BUNDLE") as refused:
                engine.handle(request)
            assert type(refused.value) is TransportError
            assert not refused.value.retryable
        assert server.requests == []


def test_a_server_that_does_not_encrypt_was_sent_nothing(opened_at: Callable[..., Engine]) -> None:
    with evil() as server:
        # It says nothing, so the client gives up.
        engine = opened_at(server.url.replace("http", "https"), HttpSettings(connect_seconds=0.3))
        server.hang_up()
        with pytest.raises(TransportError) as refused:
            engine.handle(WRITE)
        assert type(refused.value) is TransportError
        assert server.requests == []


@pytest.mark.parametrize("content", [None, "no certificate"])
def test_a_ca_bundle_that_cannot_be_read_raises(
    content: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "bundle.pem"
    if content is not None:
        place.write_text(content)
    monkeypatch.setenv("AWS_CA_BUNDLE", str(place))
    with pytest.raises(NotConfigured, match="AWS_CA_BUNDLE"):
        dynamodb.open(endpoint_url="https://127.0.0.1:1")
