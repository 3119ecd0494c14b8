"""Host names: their canonical form, their owners, and the bounded cache of both."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable._store import AsyncDatabase
from solotable.errors import DeclarationError
from solotable.web import HostTenants, canonical_host
from solotable.web.tenancy import hostnames
from solotable.web.tenancy.proxies import TrustedProxies

from . import app as shop

NO_DATABASE = cast(AsyncDatabase, None)


@pytest.mark.parametrize(
    ("text", "host"),
    [
        ("shop.example", "shop.example"),
        ("SHOP.Example:8080", "shop.example"),
        ("shop.example.", "shop.example"),
        ("shop.example.:443", "shop.example"),
        ("shop.example:", "shop.example"),
        ("MÜNCHEN.example", "xn--mnchen-3ya.example"),
        ("xn--mnchen-3ya.example", "xn--mnchen-3ya.example"),
        ("127.0.0.1:80", "127.0.0.1"),
        ("[::1]:8080", "[::1]"),
        ("[0:0::1]", "[::1]"),
        ("", None),
        (".", None),
        (":80", None),
        ("shop..example", None),
        (".shop.example", None),
        ("shop.example..", None),
        ("shop.example:99999", None),
        ("shop.example:0", None),
        ("shop.example:80:80", None),
        ("shop.example, evil.example", None),
        ("user@shop.example", None),
        ("shop.example/path", None),
        ("shop.example#THING", None),
        ("shop example", None),
        ("-shop.example", None),
        ("[::1", None),
        ("[::1]x", None),
        ("a" * 64 + ".example", None),
        ("a." * 130 + "example", None),
        ("shop\x00.example", None),
        ("shop.example\n", None),
        ("\u202eshop.example", None),
    ],
)
def test_a_host_has_one_form(text: str, host: str | None) -> None:
    assert canonical_host(text) == host
    assert host is None or canonical_host(host) == host


def _get(http: TestClient, *pairs: tuple[str, str]) -> int:
    raw = [(name.encode(), value.encode()) for name, value in pairs]
    return int(http.get("/public/1", headers=raw).status_code)


def _with_a_thing(app: FastAPI, http: TestClient) -> None:
    headers = {"x-api-key": shop.ADMIN_KEY, "x-tenant-id": "acme"}
    made = http.post("/things", json={"thing_id": "1", "name": "x"}, headers=headers)
    assert made.status_code == 201


def test_the_owner_of_the_host_is_the_tenant() -> None:
    app = shop.make()
    with shop.client(app) as http:
        _with_a_thing(app, http)
        assert _get(http) == 200
        assert _get(http, ("host", "SHOP.example.:81")) == 200
        # Zeta's host, which does not have the item; sent in UTF-8.
        assert _get(http, ("host", "münchen.example")) == 404
        assert _get(http, ("host", "unknown.example")) == 404
        assert _get(http, ("host", "bad host")) == 400
        assert _get(http, ("host", "shop.example"), ("host", "evil.example")) == 400
        # x-tenant-id has no effect without a credential.
        assert _get(http, ("x-tenant-id", "zeta")) == 200


def test_a_forwarded_host_is_read_from_trusted_addresses_only() -> None:
    forwarded = ("x-forwarded-host", "shop.example")
    elsewhere = ("host", "inner.example")
    app = shop.make()
    with shop.client(app) as http:
        _with_a_thing(app, http)
        assert _get(http, elsewhere, forwarded) == 404
    for trusted, status in ((["10.0.0.0/8"], 200), (["10.0.0.7"], 200), (["10.0.0.8"], 404), ([], 404)):
        app = shop.make(trusted_hosts=trusted)
        with TestClient(app, client=("10.0.0.7", 1), base_url="http://inner.example") as http:
            _with_a_thing(app, http)
            assert _get(http, elsewhere, forwarded) == status
            assert _get(http, elsewhere, forwarded, forwarded) in (400, 404)
            # The peer's address decides, not its headers.
            assert _get(http, elsewhere, ("x-forwarded-for", "10.0.0.8"), forwarded) == status


def test_trusted_hosts_are_addresses() -> None:
    for wrong in (["proxy.example"], ["10.0.0.1/8"], "10.0.0.1"):
        with pytest.raises(DeclarationError):
            shop.make(trusted_hosts=wrong)


class Directory:
    """Owners that the test sets, and the lookups of them."""

    def __init__(self, **limits: float) -> None:
        self.owners: dict[str, str] = {"shop.example": "acme"}
        self.asked: list[str] = []
        self.now = 0.0
        self.hosts = HostTenants(
            self.resolve,
            proxies=TrustedProxies(),
            clock=lambda: self.now,
            **limits,  # type: ignore[arg-type]  # `most` is an int
        )

    async def resolve(self, database: AsyncDatabase, host: str) -> str | None:
        self.asked.append(host)
        await asyncio.sleep(0)
        return self.owners.get(host)

    def owner(self, host: str) -> str | None:
        return asyncio.run(self.hosts.owner(NO_DATABASE, host))


def test_owners_are_remembered_for_their_time() -> None:
    directory = Directory()
    for now, asked in ((0, 1), (299, 1), (301, 2)):
        directory.now = now
        assert directory.owner("shop.example") == "acme"
        assert len(directory.asked) == asked


def test_unowned_names_are_remembered_too_but_shorter() -> None:
    directory = Directory()
    for now, asked in ((0, 1), (29, 1), (31, 2)):
        directory.now = now
        assert directory.owner("new.example") is None
        assert len(directory.asked) == asked
    directory.owners["new.example"] = "zeta"
    directory.now = 62
    assert directory.owner("new.example") == "zeta"


def test_made_up_names_fill_no_memory_and_drive_out_no_real_one() -> None:
    directory = Directory(max_size=10)
    assert directory.owner("shop.example") == "acme"
    for number in range(100):
        directory.owner(f"made-up-{number}.example")
    asked = len(directory.asked)
    assert directory.owner("shop.example") == "acme"
    assert len(directory.asked) == asked
    assert (len(directory.hosts._owners), len(directory.hosts._unknown)) == (1, 10)


def test_many_at_once_ask_once() -> None:
    directory = Directory()

    async def ask() -> list[str | None]:
        return await asyncio.gather(*(directory.hosts.owner(NO_DATABASE, "shop.example") for _ in range(20)))

    assert asyncio.run(ask()) == ["acme"] * 20
    assert directory.asked == ["shop.example"]


def test_a_domain_that_changed_hands_can_be_forgotten() -> None:
    directory = Directory()
    assert directory.owner("shop.example") == "acme"
    directory.owners["shop.example"] = "zeta"
    directory.hosts.forget("shop.example")
    assert directory.owner("shop.example") == "zeta"


def test_a_failure_is_not_remembered() -> None:
    directory = Directory()
    owners = directory.owners
    directory.owners = None  # type: ignore[assignment]  # so that asking fails
    with pytest.raises(AttributeError):
        directory.owner("shop.example")
    directory.owners = owners
    assert directory.owner("shop.example") == "acme"


def test_a_text_that_is_too_long_for_a_name_is_not_remembered() -> None:
    # An Origin may have 64 KB, and the cache would hold thousands of them.
    before = hostnames._canonical.cache_info().currsize
    assert canonical_host("a" * 60_000) is None
    assert hostnames._canonical.cache_info().currsize == before


@pytest.mark.parametrize(
    ("peer", "forwarded", "client"),
    [
        ("10.0.0.7", ["192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["192.0.2.1, 10.0.0.9"], "192.0.2.1"),
        ("10.0.0.7", ["198.51.100.1, 192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["198.51.100.1", "192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["192.0.2.1:5000"], "192.0.2.1"),
        ("10.0.0.7", ["[2001:db8::7]:5000"], "2001:db8::7"),
        ("::ffff:10.0.0.7", ["2001:db8::7"], "2001:db8::7"),
        ("10.0.0.7", ["::ffff:192.0.2.1"], "192.0.2.1"),
        ("10.0.0.7", ["10.0.0.8, 10.0.0.9"], "10.0.0.8"),
        ("10.0.0.7", ["192.0.2.1, unknown"], "10.0.0.7"),
        ("10.0.0.7", ["192.0.2.1, unknown, 10.0.0.9"], "10.0.0.9"),
        ("10.0.0.7", ["192.0.2.1,"], "10.0.0.7"),
        ("10.0.0.7", ["１９２.0.2.1".encode().decode("latin-1")], "10.0.0.7"),
        ("10.0.0.7", [], "10.0.0.7"),
        ("127.0.0.1", ["192.0.2.1"], "127.0.0.1"),
        ("192.0.2.9", ["10.0.0.1"], "192.0.2.9"),
    ],
)
def test_the_client_is_the_address_that_trusted_proxies_name(
    peer: str, forwarded: list[str], client: str
) -> None:
    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in forwarded]
    found = TrustedProxies(["10.0.0.0/8"]).client_of(
        {"type": "http", "client": (peer, 5), "headers": headers}
    )
    assert found is not None
    assert found[0] == client
    assert TrustedProxies().client_of({"type": "http", "client": (peer, 5), "headers": headers}) == (peer, 5)
    assert (
        TrustedProxies(["10.0.0.0/8"]).client_of({"type": "http", "client": None, "headers": headers}) is None
    )
