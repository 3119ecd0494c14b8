"""DescribeHeat of the server: the guards of every other request, and its errors."""

from __future__ import annotations

import pytest

from solotable._protocol.heat import decode_heat
from solotable._protocol.operations import HEAT_TARGET

from .running import Client, Running, put, request, running


def test_heat_of_the_current_minute(server: Running, client: Client) -> None:
    client.ask(put("a"))
    reply = client.ask(request(target=HEAT_TARGET, payload={}))
    assert reply.status == 200
    found = [each for each in decode_heat(reply.json()).intervals if each.table == "Things"]
    assert found[-1].write_units >= 1.0
    late = client.ask(request(target=HEAT_TARGET, payload={"Since": 4e9}))
    assert decode_heat(late.json()).intervals == ()


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"Since": "yesterday"}', b'{"Since": true}'])
def test_a_bad_request_is_rejected(client: Client, body: bytes) -> None:
    assert client.ask(request(target=HEAT_TARGET, body=body)).status == 400


def test_another_host_name_is_rejected(client: Client) -> None:
    assert client.ask(request(target=HEAT_TARGET, host="evil.example")).status == 400


def test_a_page_of_another_origin_cannot_send_it_without_asking(client: Client) -> None:
    # A form or a simple fetch has one of these types; others need a preflight, which the server rejects.
    assert client.ask(request(target=HEAT_TARGET, content_type="text/plain")).status == 404


def test_with_keys_it_needs_a_signature() -> None:
    with running(keys={"id": "secret"}) as server, server.client() as client:
        reply = client.ask(request(target=HEAT_TARGET))
        assert (reply.status, "MissingAuthenticationToken" in reply.json()["__type"]) == (400, True)
