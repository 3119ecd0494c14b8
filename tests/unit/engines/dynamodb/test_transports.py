"""Where clients come from, where they send their requests, and what becomes of those of others."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import boto3
import botocore.session
import pytest

from solotable._connect import to_async
from solotable._protocol.requests import Control, GetItem, PutItem, TransactWriteItems
from solotable._store.observation import ObservedAsyncEngine
from solotable.engines import dynamodb, sqlite
from solotable.errors import NotConfigured, ServiceError
from solotable.flow import is_amazon
from tests.serving import environment
from tests.unit.server.running import running

from .scripted import answer, scripted

KEY = {"pk": {"S": "a"}}
ITEM = {**KEY, "b": {"B": "AP8="}}
LOCAL: dict[str, Any] = {
    "region_name": "eu-west-1",
    "aws_access_key_id": "x",
    "aws_secret_access_key": "y",
}
LIST_STREAMS = Control(operation="ListStreams", members={})


def test_the_argument_goes_before_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with dynamodb.open() as engine:
        assert engine.endpoint_url == "http://127.0.0.1:1"
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:2")
    with dynamodb.open() as engine:
        assert engine.endpoint_url == "http://127.0.0.1:2"
    with dynamodb.open(endpoint_url="http://127.0.0.1:3") as engine:
        assert engine.endpoint_url == "http://127.0.0.1:3"


def test_a_profile_may_name_the_endpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config").write_text(
        "[profile dev]\nregion = eu-west-1\nservices = here\n"
        "[services here]\ndynamodb =\n  endpoint_url = http://127.0.0.1:4\n"
    )
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    with dynamodb.open(profile="dev") as engine:
        assert engine.endpoint_url == "http://127.0.0.1:4"


@pytest.mark.parametrize("variable", ["AWS_DEFAULT_REGION", "AWS_REGION"])
def test_the_environment_may_name_the_region(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "eu-north-1")
    with dynamodb.open() as engine:
        assert engine.endpoint_url == "https://dynamodb.eu-north-1.amazonaws.com"


def test_only_amazons_own_endpoint_is_amazon(url: str) -> None:
    with dynamodb.open(region="eu-north-1") as engine:
        assert engine.capabilities.amazon
        assert is_amazon(engine)
        assert is_amazon(to_async(engine))
        assert is_amazon(ObservedAsyncEngine(to_async(engine), print))
    with dynamodb.open(region="eu-north-1", botocore=True) as engine:
        assert is_amazon(to_async(engine))
    with dynamodb.open(endpoint_url=url) as engine:
        assert not is_amazon(engine)
        assert not is_amazon(to_async(engine))
    with sqlite.open(sqlite.MEMORY) as embedded:
        assert not is_amazon(embedded)
        assert not is_amazon(to_async(embedded))


def test_streams_go_to_the_same_local_server(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", url)
    with dynamodb.open() as engine:
        assert engine.handle(LIST_STREAMS) == {"Streams": []}
        assert engine.handle(LIST_STREAMS) == {"Streams": []}


def test_requests_are_signed_as_they_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    with running(keys={"AKID": "secret"}) as server:
        url = f"http://127.0.0.1:{server.port}"
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKID")
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
        with dynamodb.open(endpoint_url=url) as engine:
            engine.handle(PutItem(table="Things", item=ITEM))
            assert engine.handle(GetItem(table="Things", key=KEY)).item == ITEM
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
        with dynamodb.open(endpoint_url=url) as engine, pytest.raises(ServiceError) as refused:
            engine.handle(GetItem(table="Things", key=KEY))
        assert refused.value.code == "InvalidSignatureException"


def test_the_body_is_exactly_what_was_rendered() -> None:
    put = PutItem(table="Things", item=KEY)
    with scripted(answer({})) as server, dynamodb.open(endpoint_url=server.url) as engine:
        engine.handle(TransactWriteItems(actions=(put,)))
        # botocore would have added its own token, which would hide a missing one.
        assert server.requests == [
            b'{"TransactItems":[{"Put":{"TableName":"Things","Item":{"pk":{"S":"a"}}}}]}'
        ]


@pytest.mark.parametrize("kind", ["boto3", "botocore"])
def test_a_session_may_be_given(kind: str, url: str) -> None:
    session: Any = boto3.Session(**LOCAL)
    if kind == "botocore":
        session = botocore.session.Session()
        session.set_credentials("x", "y")
        session.set_config_variable("region", "eu-west-1")
    with dynamodb.open(session=session, endpoint_url=url) as engine:
        engine.handle(PutItem(table="Things", item=ITEM))
        assert engine.handle(GetItem(table="Things", key=KEY)).item == ITEM


def test_calls_of_others_on_a_given_client_stay_as_they_are(url: str) -> None:
    client: Any = boto3.client("dynamodb", endpoint_url=url, **LOCAL)
    engine = dynamodb.open(client=client)
    engine.handle(PutItem(table="Things", item=ITEM))
    assert client.get_item(TableName="Things", Key=KEY)["Item"]["b"] == {"B": b"\x00\xff"}
    assert engine.handle(GetItem(table="Things", key=KEY)).item == ITEM
    engine.close()
    client.put_item(TableName="Things", Item={**KEY, "b": {"B": b"a"}})
    assert client.get_item(TableName="Things", Key=KEY)["Item"]["b"] == {"B": b"a"}
    client.close()


def test_a_given_client_takes_every_operation(url: str) -> None:
    client: Any = boto3.client("dynamodb", endpoint_url=url, **LOCAL)
    engine = dynamodb.open(client=client)
    for name in client.meta.service_model.operation_names:
        # ErrorResponse by the service or not, but never by botocore before it was asked.
        with contextlib.suppress(ServiceError):
            engine.handle(Control(operation=name, members={}))
    assert engine.call("BatchGetItem", {"RequestItems": {"Things": {"Keys": [KEY]}}})["UnprocessedKeys"] == {}
    assert engine.call("BatchWriteItem", {"RequestItems": {"Things": [{"PutRequest": {"Item": ITEM}}]}})
    engine.close()
    client.close()


def test_the_client_of_a_resource_may_be_given(url: str) -> None:
    resource: Any = boto3.resource("dynamodb", endpoint_url=url, **LOCAL)
    with dynamodb.open(client=resource.meta.client) as engine:
        engine.handle(PutItem(table="Things", item=ITEM))
        assert engine.handle(GetItem(table="Things", key=KEY)).item == ITEM
        found = resource.Table("Things").get_item(Key={"pk": "a"})["Item"]
        assert found["b"].value == b"\x00\xff"
    resource.meta.client.close()


def test_a_given_client_has_no_streams_beside_it(url: str) -> None:
    client: Any = boto3.client("dynamodb", endpoint_url=url, **LOCAL)
    streams: Any = boto3.client("dynamodbstreams", endpoint_url=url, **LOCAL)
    with dynamodb.open(client=client) as engine, pytest.raises(NotConfigured, match="streams_client="):
        engine.handle(LIST_STREAMS)
    with dynamodb.open(client=client, streams_client=streams) as engine:
        assert engine.handle(LIST_STREAMS) == {"Streams": []}
    client.close()
    streams.close()


def test_a_client_and_settings_for_one_exclude_each_other(url: str) -> None:
    client: Any = boto3.client("dynamodb", endpoint_url=url, **LOCAL)
    with pytest.raises(NotConfigured, match="pass client= without them"):
        dynamodb.open(client=client, region="eu-west-1")
    client.close()


def test_without_botocore_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "botocore", None)
    with pytest.raises(ImportError, match=r"pip install 'solotable\[aws\]'"):
        dynamodb.open(endpoint_url="http://127.0.0.1:1")


def test_botocore_is_imported_only_when_an_engine_is_opened() -> None:
    program = "import sys, solotable.engines.dynamodb; print('botocore' in sys.modules)"
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment()
    )
    assert done.stdout == "False\n"
