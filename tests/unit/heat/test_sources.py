"""Where heat can be read: engines, stores, servers; and the way out where it cannot."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from solotable import Entity, Key, Table
from solotable.engines import dynamodb, sqlite
from solotable.heat import HeatUnavailable, read_heat
from tests.unit.server.running import running

shop = Table("Shop")


class Stock(Entity, table=shop):
    key = Key("STOCK#{sku}", "STOCK")
    sku: str


def test_a_store_and_an_observed_store_have_the_heat_of_their_engine() -> None:
    for observer in (None, lambda _: None):
        with shop.open("sqlite://", observer=observer) as db:
            db.put(Stock(sku="a"))
            (interval,) = read_heat(db).intervals
            assert (interval.table, interval.write_units) == ("Shop", 1.0)
            assert read_heat(db, since=interval.start + 60.0).intervals == ()


def test_a_database_without_heat_says_how_it_was_turned_off() -> None:
    with shop.open("sqlite://?heat=off") as db, pytest.raises(HeatUnavailable, match="heat=off"):
        read_heat(db)
    with sqlite.open(":memory:", heat=False) as engine, pytest.raises(HeatUnavailable, match="heat=False"):
        read_heat(engine)


def test_a_server_answers_for_its_engine() -> None:
    with running(":memory:") as server, shop.open(f"http://127.0.0.1:{server.port}/Things") as db:
        with server.client() as client:
            item = {"TableName": "Things", "Item": {"pk": {"S": "a"}}}
            client.call("PutItem", item)
        (interval,) = read_heat(db).intervals
        assert (interval.table, interval.write_units) == ("Things", 1.0)
        assert interval.partitions[0].key == {"pk": {"S": "a"}}


class _OtherServer(BaseHTTPRequestHandler):
    """Another program's server: it knows DynamoDB's operations only."""

    def do_POST(self) -> None:
        body = b'{"__type": "com.amazon.coral.service#UnknownOperationException"}'
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(400)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Type", "application/x-amz-json-1.0")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of the base class
        """Print nothing."""


@pytest.fixture
def other_server() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), _OtherServer) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_another_programs_server_has_no_heat(other_server: str) -> None:
    with dynamodb.open(endpoint_url=other_server) as engine, pytest.raises(HeatUnavailable) as raised:
        read_heat(engine)
    assert other_server in str(raised.value)


def test_amazon_has_no_heat_and_the_error_names_contributor_insights() -> None:
    with (
        dynamodb.open(region="eu-west-1", endpoint_url="https://dynamodb.eu-west-1.amazonaws.com") as engine,
        pytest.raises(HeatUnavailable, match="Contributor Insights"),
    ):
        read_heat(engine)
