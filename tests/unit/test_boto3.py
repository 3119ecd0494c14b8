"""boto3 answered in process: own clients, routed clients, and what must never reach a network."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import sys
import threading
import time
import zlib
from collections.abc import AsyncGenerator, Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

import boto3
import botocore.session
import pytest
from boto3.dynamodb.conditions import Attr, Key
from botocore.config import Config
from botocore.exceptions import ClientError, EndpointConnectionError
from botocore.httpsession import URLLib3Session
from botocore.signers import RequestSigner

import solotable.boto3
from solotable._protocol.engine import Capabilities
from solotable._protocol.requests import Request
from solotable.boto3 import respond, routed
from solotable.boto3.clients import isolated_session
from solotable.boto3.routes import DYNAMODB_HOST
from solotable.engines import sqlite
from solotable.engines.sqlite import SqliteEngine
from solotable.errors import EngineError
from tests.closed_network import close_network

CREDENTIALS = {"aws_access_key_id": "a", "aws_secret_access_key": "b"}

#: Made when the module is imported, as programs do.
early = boto3.client("dynamodb", region_name="eu-west-1", **CREDENTIALS)


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    close_network(monkeypatch)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)


@pytest.fixture
def engine() -> Iterator[SqliteEngine]:
    with sqlite.open(":memory:") as opened:
        yield opened


@pytest.fixture
def client(engine: SqliteEngine) -> Any:
    made = solotable.boto3.client(engine)
    create(made)
    return made


def create(client: Any, name: str = "notes", **more: Any) -> None:
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=[
            {"AttributeName": "pk", "KeyType": "HASH"},
            {"AttributeName": "sk", "KeyType": "RANGE"},
        ],
        AttributeDefinitions=[
            {"AttributeName": "pk", "AttributeType": "S"},
            {"AttributeName": "sk", "AttributeType": "N"},
        ],
        **more,
    )
    client.get_waiter("table_exists").wait(TableName=name, WaiterConfig={"Delay": 0})


def put(client: Any, sk: int, **more: Any) -> Any:
    return client.put_item(TableName="notes", Item={"pk": {"S": "a"}, "sk": {"N": str(sk)}}, **more)


def table_names(client: Any) -> list[str]:
    names: list[str] = client.list_tables()["TableNames"]
    return names


class TestClient:
    def test_answers_from_the_engine(self, client: Any, engine: SqliteEngine) -> None:
        put(client, 1)
        assert client.get_item(TableName="notes", Key={"pk": {"S": "a"}, "sk": {"N": "1"}})["Item"] == {
            "pk": {"S": "a"},
            "sk": {"N": "1"},
        }
        assert engine.call("ListTables", {}) == {"TableNames": ["notes"]}

    def test_answers_with_the_headers_of_dynamodb(self, client: Any) -> None:
        metadata = put(client, 1)["ResponseMetadata"]
        assert metadata["HTTPStatusCode"] == 200
        assert metadata["RetryAttempts"] == 0
        assert re.fullmatch(r"[A-Z0-9]{52}", metadata["RequestId"])
        assert metadata["HTTPHeaders"]["content-type"] == "application/x-amz-json-1.0"
        assert metadata["HTTPHeaders"]["x-amz-crc32"] == "2745614147"  # of {}

    def test_a_wrong_crc32_would_be_noticed(self, client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
        sums = iter([0])
        monkeypatch.setattr(respond, "crc32", lambda body: next(sums, zlib.crc32(body)))
        monkeypatch.setattr(time, "sleep", lambda _: None)
        assert client.list_tables()["ResponseMetadata"]["RetryAttempts"] == 1

    def test_refusals_are_modelled_exceptions_with_their_members(self, client: Any) -> None:
        put(client, 1)
        with pytest.raises(client.exceptions.ConditionalCheckFailedException) as refused:
            put(
                client,
                1,
                ConditionExpression="attribute_not_exists(pk)",
                ReturnValuesOnConditionCheckFailure="ALL_OLD",
            )
        assert refused.value.response["Error"]["Message"] == "The conditional request failed"
        assert refused.value.response["Item"] == {"pk": {"S": "a"}, "sk": {"N": "1"}}
        assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 400
        with pytest.raises(client.exceptions.ResourceNotFoundException):
            client.describe_table(TableName="nope")
        with pytest.raises(client.exceptions.ResourceInUseException):
            create(client)
        with pytest.raises(ClientError) as unmodelled:
            client.get_item(TableName="notes", Key={"pk": {"S": "a"}})
        assert unmodelled.value.response["Error"] == {
            "Code": "ValidationException",
            "Message": "The provided key element does not match the schema",
        }

    def test_a_cancelled_transaction_tells_a_reason_per_action(self, client: Any) -> None:
        put(client, 1)
        action = {"TableName": "notes", "ConditionExpression": "attribute_not_exists(pk)"}
        with pytest.raises(client.exceptions.TransactionCanceledException) as refused:
            client.transact_write_items(
                TransactItems=[
                    {"Put": {**action, "Item": {"pk": {"S": "a"}, "sk": {"N": "2"}}}},
                    {
                        "Put": {
                            **action,
                            "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}},
                            "ReturnValuesOnConditionCheckFailure": "ALL_OLD",
                        }
                    },
                ]
            )
        assert refused.value.response["CancellationReasons"] == [
            {"Code": "None"},
            {
                "Code": "ConditionalCheckFailed",
                "Message": "The conditional request failed",
                "Item": {"pk": {"S": "a"}, "sk": {"N": "1"}},
            },
        ]

    def test_paginators_follow_every_page(self, client: Any) -> None:
        for sk in range(10):
            put(client, sk)
        pages = client.get_paginator("query").paginate(
            TableName="notes",
            KeyConditionExpression="pk = :a",
            ExpressionAttributeValues={":a": {"S": "a"}},
            PaginationConfig={"PageSize": 4},
        )
        assert [page["Count"] for page in pages] == [4, 4, 2]

    def test_waiters_see_tables_come_and_go(self, client: Any) -> None:
        client.get_waiter("table_exists").wait(TableName="notes")
        client.delete_table(TableName="notes")
        client.get_waiter("table_not_exists").wait(TableName="notes")

    @pytest.mark.parametrize("mode", ["legacy", "standard", "adaptive"])
    def test_a_fault_of_the_engine_reaches_the_caller_at_once_and_no_log(
        self, mode: str, caplog: pytest.LogCaptureFixture
    ) -> None:
        class Broken:
            capabilities = Capabilities()

            def handle(self, request: Request[Any]) -> Any:
                raise EngineError("the disk is on fire")

            def close(self) -> None: ...

        with routed(Broken()), pytest.raises(EngineError, match="the disk is on fire"):
            boto3.client("dynamodb", config=Config(retries={"mode": mode})).list_tables()
        with pytest.raises(EngineError, match="the disk is on fire"):
            solotable.boto3.client(Broken()).list_tables()
        assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []

    @pytest.mark.parametrize("wrong", [None, 5, b"notes.db", SqliteEngine, object()])
    def test_takes_a_path_or_an_engine_and_nothing_else(self, wrong: Any) -> None:
        for function in ("client", "streams_client", "resource", "routed"):
            with pytest.raises(TypeError, match=rf"^{function}\(\) takes a path or an engine, got"):
                getattr(solotable.boto3, function)(wrong)

    def test_a_path_is_opened_and_closed_with_the_client(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.db"
        first = solotable.boto3.client(path, durability="relaxed")
        create(first)
        first.close()
        with pytest.raises(EngineError, match="was closed"):
            first.list_tables()
        second = solotable.boto3.client(str(path))
        assert table_names(second) == ["notes"]
        second.close()
        second.close()

    def test_an_engine_outlives_its_clients(self, client: Any, engine: SqliteEngine) -> None:
        client.close()
        assert engine.call("ListTables", {}) == {"TableNames": ["notes"]}

    def test_clients_of_different_engines_keep_apart(self, client: Any) -> None:
        other = solotable.boto3.client(":memory:")
        assert (table_names(client), table_names(other)) == (["notes"], [])
        other.close()

    def test_needs_nothing_of_the_machines_aws_configuration(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_PROFILE", "not-there")
        monkeypatch.setenv("AWS_ENDPOINT_URL_DYNAMODB", "http://localhost:1")
        monkeypatch.setenv("AWS_DEFAULTS_MODE", "auto")
        monkeypatch.setenv("AWS_USE_FIPS_ENDPOINT", "true")
        isolated_session.cache_clear()
        made = solotable.boto3.client(engine)
        assert table_names(made) == []
        assert made.meta.endpoint_url == "http://solotable.invalid"

    def test_many_threads_may_use_one_client(self, client: Any) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda sk: put(client, sk), range(64)))
        assert client.scan(TableName="notes", Select="COUNT")["Count"] == 64

    def test_streams_have_their_own_client(self, engine: SqliteEngine) -> None:
        create(
            made := solotable.boto3.client(engine),
            StreamSpecification={"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"},
        )
        put(made, 1)
        streams = solotable.boto3.streams_client(engine)
        (stream,) = streams.list_streams(TableName="notes")["Streams"]
        description = streams.describe_stream(StreamArn=stream["StreamArn"])["StreamDescription"]
        iterator = streams.get_shard_iterator(
            StreamArn=stream["StreamArn"],
            ShardId=description["Shards"][0]["ShardId"],
            ShardIteratorType="TRIM_HORIZON",
        )["ShardIterator"]
        (record,) = streams.get_records(ShardIterator=iterator)["Records"]
        assert record["eventName"] == "INSERT"
        assert record["dynamodb"]["NewImage"] == {"pk": {"S": "a"}, "sk": {"N": "1"}}
        with pytest.raises(streams.exceptions.ResourceNotFoundException):
            streams.describe_stream(StreamArn=stream["StreamArn"][:-3] + "999")

    def test_without_boto3_the_extra_is_named(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        isolated_session.cache_clear()
        monkeypatch.setitem(sys.modules, "boto3", None)
        with pytest.raises(ImportError, match=re.escape("pip install 'solotable[aws]'")):
            solotable.boto3.client(engine)
        monkeypatch.setitem(sys.modules, "botocore", None)
        with pytest.raises(ImportError, match=re.escape("pip install 'solotable[aws]'")):
            routed(engine)


class TestResource:
    def test_tables_take_python_values_and_conditions(self, engine: SqliteEngine) -> None:
        dynamodb = solotable.boto3.resource(engine)
        create(dynamodb.meta.client)
        table = dynamodb.Table("notes")
        table.put_item(Item={"pk": "a", "sk": 1, "price": Decimal("1.50"), "tags": {"x", "y"}})
        with table.batch_writer() as batch:
            for sk in range(2, 40):
                batch.put_item(Item={"pk": "a", "sk": sk, "price": sk})
        found = table.query(
            KeyConditionExpression=Key("pk").eq("a") & Key("sk").lt(3),
            FilterExpression=Attr("price").gt(0),
            ReturnConsumedCapacity="TOTAL",
        )
        assert found["Items"] == [
            {"pk": "a", "sk": 1, "price": Decimal("1.5"), "tags": {"x", "y"}},
            {"pk": "a", "sk": 2, "price": 2},
        ]
        assert found["ConsumedCapacity"] == {"TableName": "notes", "CapacityUnits": 0.5}
        assert table.scan(Select="COUNT")["Count"] == 39

    def test_a_path_is_closed_with_the_resources_client(self, tmp_path: Path) -> None:
        dynamodb = solotable.boto3.resource(tmp_path / "notes.db")
        assert list(dynamodb.tables.all()) == []
        dynamodb.meta.client.close()
        with pytest.raises(EngineError, match="was closed"):
            list(dynamodb.tables.all())


class TestRouted:
    def test_reaches_clients_made_before_and_inside_from_any_session(self, engine: SqliteEngine) -> None:
        with routed(engine) as given:
            assert given is engine
            create(early)
            made = [
                boto3.client("dynamodb"),
                boto3.Session(region_name="us-west-2").client("dynamodb"),
                boto3.resource("dynamodb", endpoint_url="http://localhost:8000").meta.client,
                botocore.session.get_session().create_client("dynamodb", region_name="eu-north-1"),
            ]
            assert [table_names(client) for client in (early, *made)] == [["notes"]] * 5
            assert boto3.client("dynamodbstreams").list_streams()["Streams"] == []
            for sk in range(3):
                put(made[0], sk)
            with pytest.raises(early.exceptions.ConditionalCheckFailedException):
                put(early, 0, ConditionExpression="attribute_not_exists(pk)")
            assert early.get_waiter("table_exists").wait(TableName="notes") is None
        with pytest.raises(EndpointConnectionError):
            boto3.client(
                "dynamodb", region_name="eu-west-1", config=no_retries(), **CREDENTIALS
            ).list_tables()

    def test_leaves_our_own_clients_with_their_engine(self, client: Any) -> None:
        with routed(":memory:"):
            assert table_names(client) == ["notes"]

    def test_answers_the_discovery_of_endpoints(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("AWS_ENABLE_ENDPOINT_DISCOVERY", "true")
        with routed(engine):
            create(boto3.client("dynamodb"))
            put(boto3.client("dynamodb"), 1)

    def test_reaches_a_client_that_has_no_credentials(self) -> None:
        bare = boto3.client("dynamodb", region_name="eu-west-1")
        with routed(":memory:"):
            assert table_names(bare) == []

    def test_leaves_other_services_alone(self, engine: SqliteEngine) -> None:
        with routed(engine):
            for service, call in (("sqs", "list_queues"), ("sts", "get_caller_identity")):
                client = boto3.client(service, config=no_retries())
                with pytest.raises(EndpointConnectionError):
                    getattr(client, call)()

    def test_other_services_are_still_signed(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        sent: list[Any] = []

        def record(_: Any, request: Any) -> NoReturn:
            sent.append(request)
            raise OSError

        monkeypatch.setattr(URLLib3Session, "send", record)
        with routed(engine):
            with pytest.raises(OSError):
                boto3.client("sqs", config=no_retries()).list_queues()
            assert table_names(boto3.client("dynamodb")) == []
        (request,) = sent
        assert b"Credential=solotable/" in request.headers["Authorization"]

    def test_refuses_what_is_dynamodbs_but_cannot_be_answered(self, engine: SqliteEngine) -> None:
        client = boto3.client("dynamodb", region_name="eu-west-1", **CREDENTIALS)

        def change_target(request: Any, **_: Any) -> None:
            request.headers["X-Amz-Target"] = b"DynamoDB_20300101.ListTables"

        client.meta.events.register("before-send", change_target)
        with routed(engine), pytest.raises(EngineError, match="it was not sent"):
            client.list_tables()

    @pytest.mark.parametrize(
        ("host", "is_ours"),
        [
            ("dynamodb.us-east-1.amazonaws.com", True),
            ("dynamodb-fips.us-gov-west-1.amazonaws.com", True),
            ("streams.dynamodb.eu-west-1.amazonaws.com", True),
            ("streams-dynamodb.eu-west-1.api.aws", True),
            ("123456789012.ddb.eu-west-1.amazonaws.com", True),
            ("dynamodb.cn-north-1.amazonaws.com.cn", True),
            ("vpce-1-a.dynamodb.eu-west-1.vpce.amazonaws.com", True),
            ("dax.eu-west-1.amazonaws.com", False),
            ("my.dynamodb.s3.amazonaws.com", False),
            ("dynamodb-exports.s3.eu-west-1.amazonaws.com", False),
            ("sqs.eu-west-1.amazonaws.com", False),
        ],
    )
    def test_knows_the_hosts_of_dynamodb(self, host: str, is_ours: bool) -> None:
        assert bool(DYNAMODB_HOST.search(host)) is is_ours

    def test_supplies_credentials_and_region_and_takes_them_away(self, engine: SqliteEngine) -> None:
        before = dict(os.environ)
        with routed(engine):
            assert os.environ["AWS_ACCESS_KEY_ID"] == "solotable"
            assert boto3.Session().region_name == "us-east-1"
        assert dict(os.environ) == before

    def test_keeps_credentials_and_region_that_are_configured(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        config = tmp_path / "config"
        config.write_text("[default]\nregion = eu-south-1\ncredential_process = false\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(config))
        before = dict(os.environ)
        with routed(engine):
            assert dict(os.environ) == before
            assert boto3.Session().region_name == "eu-south-1"
        monkeypatch.setenv("AWS_PROFILE", "not-there")
        with routed(engine):
            assert table_names(early) == []

    def test_keeps_what_the_block_itself_puts_into_the_environment(self, engine: SqliteEngine) -> None:
        with routed(engine):
            os.environ["AWS_DEFAULT_REGION"] = "eu-west-3"
        assert os.environ.pop("AWS_DEFAULT_REGION") == "eu-west-3"

    def test_leaves_botocore_as_it_was_also_after_an_error(self, engine: SqliteEngine) -> None:
        before = URLLib3Session.send, RequestSigner.sign

        @routed(engine)
        def fail() -> NoReturn:
            assert URLLib3Session.send is not before[0]
            assert RequestSigner.sign is not before[1]
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            fail()
        assert (URLLib3Session.send, RequestSigner.sign) == before

    def test_lets_others_wrap_sending_inside_the_block(
        self, engine: SqliteEngine, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen: list[str] = []
        with monkeypatch.context() as patches:
            # Undone last, so that neither wrapper outlives the test.
            patches.setattr(URLLib3Session, "send", URLLib3Session.send)
            with routed(engine):
                ours = URLLib3Session.send

                def theirs(session: Any, request: Any) -> Any:
                    seen.append(request.url)
                    return ours(session, request)

                patches.setattr(URLLib3Session, "send", theirs)
                assert table_names(early) == []
            with pytest.raises(EndpointConnectionError):
                boto3.client("sqs", "eu-west-1", config=no_retries(), **CREDENTIALS).list_queues()
        assert len(seen) == 2

    def test_nests_and_the_innermost_block_answers(self, engine: SqliteEngine) -> None:
        with routed(engine):
            create(early)
            with routed(":memory:") as inner:
                assert isinstance(inner, SqliteEngine)
                assert table_names(early) == []
                create(early, "inner")
            assert table_names(early) == ["notes"]

    def test_blocks_may_end_in_any_order(self, engine: SqliteEngine) -> None:
        first, second = routed(engine), routed(":memory:")
        first.__enter__()
        create(early)
        second.__enter__()
        first.__exit__(None, None, None)
        assert table_names(early) == []
        second.__exit__(None, None, None)
        assert "AWS_ACCESS_KEY_ID" not in os.environ

    def test_one_block_is_entered_once(self, engine: SqliteEngine) -> None:
        block = routed(engine)
        with block, pytest.raises(RuntimeError, match="active already"), block:
            pass
        with block:
            assert table_names(early) == []

    def test_a_path_is_opened_on_entry_and_closed_on_exit(self, tmp_path: Path) -> None:
        with routed(tmp_path / "notes.db") as first:
            create(early)
        with pytest.raises(EngineError, match="was closed"):
            first.call("ListTables", {})
        with routed(tmp_path / "notes.db"):
            assert table_names(early) == ["notes"]

    def test_decorates_functions_and_enters_again_for_every_call(self) -> None:
        @routed(":memory:")
        def program() -> list[str]:
            create(early)
            return table_names(early)

        assert (program(), program()) == (["notes"], ["notes"])

    def test_reaches_every_thread(self, engine: SqliteEngine) -> None:
        with routed(engine):
            create(early)

            def work(worker: int) -> None:
                session = boto3.Session(region_name="eu-west-1", **CREDENTIALS)
                put(session.client("dynamodb"), worker)
                put(early, 100 + worker)

            threads = [threading.Thread(target=work, args=(worker,)) for worker in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert early.scan(TableName="notes", Select="COUNT")["Count"] == 12

    def test_works_from_a_thread_of_an_event_loop(self, engine: SqliteEngine) -> None:
        async def main() -> list[str]:
            with routed(engine):
                return await asyncio.to_thread(table_names, early)

        assert asyncio.run(main()) == []


class TestDecorator:
    """The block lasts for as long as the function runs, of whatever kind it is."""

    def test_a_coroutine_is_routed_until_it_is_done(self) -> None:
        @routed(":memory:")
        async def program(name: str) -> list[str]:
            create(early, name)
            await asyncio.sleep(0)
            return await asyncio.to_thread(table_names, early)

        assert asyncio.iscoroutinefunction(program)
        assert program.__name__ == "program"
        assert asyncio.run(program("one")) == ["one"]
        assert asyncio.run(program(name="two")) == ["two"]
        assert not is_routed()

    def test_a_coroutine_that_fails_ends_its_block(self) -> None:
        @routed(":memory:")
        async def program() -> NoReturn:
            await asyncio.sleep(0)
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            asyncio.run(program())
        assert not is_routed()

    def test_a_generator_is_routed_from_its_first_step_to_its_end(self) -> None:
        @routed(":memory:")
        def program() -> Generator[list[str], str, str]:
            create(early, (yield table_names(early)))
            try:
                yield table_names(early)
            except KeyError:
                yield ["caught"]
            return "done"

        steps = program()
        assert not is_routed()
        assert next(steps) == []
        assert is_routed()
        assert steps.send("sent") == ["sent"]
        assert steps.throw(KeyError()) == ["caught"]
        with pytest.raises(StopIteration) as ended:
            next(steps)
        assert ended.value.value == "done"
        assert not is_routed()

    def test_a_generator_that_is_closed_ends_its_block(self) -> None:
        @routed(":memory:")
        def program() -> Iterator[None]:
            yield

        steps = program()
        next(steps)
        assert is_routed()
        steps.close()  # type: ignore[attr-defined]  # a generator is what it is
        assert not is_routed()

    def test_an_async_generator_is_routed_from_its_first_step_to_its_end(self) -> None:
        @routed(":memory:")
        async def program() -> AsyncGenerator[list[str], str]:
            create(early, (yield table_names(early)))
            try:
                yield table_names(early)
            except KeyError:
                yield ["caught"]

        async def main() -> None:
            steps = program()
            assert not is_routed()
            assert await anext(steps) == []
            assert is_routed()
            assert await steps.asend("sent") == ["sent"]
            assert await steps.athrow(KeyError()) == ["caught"]
            assert [step async for step in steps] == []
            assert not is_routed()

        asyncio.run(main())

    def test_an_async_generator_that_is_closed_or_fails_ends_its_block(self) -> None:
        ended: list[bool] = []

        @routed(":memory:")
        async def program() -> AsyncGenerator[None, None]:
            try:
                yield
            finally:
                ended.append(is_routed())

        async def main() -> None:
            steps = program()
            await anext(steps)
            await steps.aclose()
            assert not is_routed()
            steps = program()
            await anext(steps)
            with pytest.raises(ZeroDivisionError):
                await steps.athrow(ZeroDivisionError())
            assert not is_routed()

        asyncio.run(main())
        assert ended == [True, True]

    def test_methods_of_every_kind_are_routed(self) -> None:
        class Program:
            @routed(":memory:")
            def method(self) -> list[str]:
                return table_names(early)

            @routed(":memory:")
            @staticmethod
            def static() -> list[str]:
                return table_names(early)

            @classmethod
            @routed(":memory:")
            def of_class(cls) -> list[str]:
                return table_names(early)

            async def __call__(self) -> list[str]:
                return table_names(early)

        assert Program().method() == Program().static() == Program.of_class() == []
        callable_ = routed(":memory:")(Program())
        assert asyncio.run(callable_()) == []
        assert asyncio.run(routed(":memory:")(partial(callable_))()) == []

    def test_a_function_that_hands_out_what_runs_later_is_refused(self) -> None:
        async def later() -> None: ...

        async def laters() -> AsyncGenerator[None, None]:
            yield

        def hands_out(make: Callable[[], Any]) -> Any:
            return make()

        for make in (later, laters, lambda: (table_names(early) for _ in "a")):
            with pytest.raises(TypeError, match="would run after its routed"):
                routed(":memory:")(hands_out)(make)

    def test_a_class_is_refused(self) -> None:
        with pytest.raises(TypeError, match="does not decorate classes"):

            @routed(":memory:")
            class TestNotes:
                pass

    def test_other_arguments_than_functions_are_rejected(self) -> None:
        with pytest.raises(TypeError, match="decorates functions, got 5"):
            routed(":memory:")(5)

    def test_without_a_path_or_an_engine_it_is_refused(self) -> None:
        with pytest.raises(TypeError, match=r"write @routed\(path_or_engine\)"):

            @routed  # type: ignore[call-overload]  # the mistake that this is about
            def program() -> None: ...


def is_routed() -> bool:
    return os.environ.get("AWS_ACCESS_KEY_ID") == "solotable"


def no_retries() -> Config:
    return Config(retries={"total_max_attempts": 1}, connect_timeout=1)
