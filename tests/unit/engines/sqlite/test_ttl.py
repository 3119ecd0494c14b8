"""The sweeper: what expires, what does not, and what it leaves behind."""

from __future__ import annotations

from solotable.engines.sqlite import SqliteEngine, ttl
from tests.conformance.tables import index

from .clocked import DAY, HOUR, START, Clock, create, keys, opened, put

NEW_AND_OLD = {"StreamEnabled": True, "StreamViewType": "NEW_AND_OLD_IMAGES"}


def expiring(clock: Clock, **more: object) -> SqliteEngine:
    engine = opened(clock=clock)
    create(engine, **more)
    engine.call(
        "UpdateTimeToLive",
        {"TableName": "Things", "TimeToLiveSpecification": {"AttributeName": "expires", "Enabled": True}},
    )
    return engine


def at(seconds: float) -> dict[str, str]:
    return {"N": str(int(seconds))}


def test_an_item_goes_once_its_time_has_passed() -> None:
    clock = Clock()
    with expiring(clock) as engine:
        put(engine, "soon", expires=at(START + 10))
        put(engine, "later", expires=at(START + DAY))
        assert engine.sweep() == 0
        clock.move(11)
        assert engine.sweep() == 1
        assert keys(engine) == ["later"]


def test_only_numbers_expire_and_only_at_the_top() -> None:
    with expiring(Clock()) as engine:
        put(engine, "text", expires={"S": str(int(START - 10))})
        put(engine, "none")
        put(engine, "nested", inner={"M": {"expires": at(START - 10)}})
        put(engine, "other", expired=at(START - 10))
        assert engine.sweep() == 0


def test_an_item_five_years_late_stays() -> None:
    with expiring(Clock()) as engine:
        put(engine, "old", expires=at(START - 5 * 365 * DAY - 10))
        put(engine, "millis", expires=at(START * 1000))
        put(engine, "late", expires=at(START - 4 * 365 * DAY))
        assert engine.sweep() == 1
        assert keys(engine) == ["millis", "old"]


def test_a_table_without_time_to_live_is_not_swept() -> None:
    with opened() as engine:
        create(engine)
        put(engine, "past", expires=at(START - 10))
        assert engine.sweep() == 0


def test_an_index_loses_what_expired() -> None:
    with expiring(Clock(), types={"g": "S"}, gsi=[index("byg", "g")]) as engine:
        put(engine, "past", g={"S": "x"}, expires=at(START - 10))
        put(engine, "kept", g={"S": "x"})
        assert engine.sweep() == 1
        assert keys(engine, IndexName="byg") == ["kept"]


def test_more_items_than_one_batch_expire() -> None:
    with expiring(Clock()) as engine:
        for place in range(250):
            put(engine, f"{place}", expires=at(START - 10))
        assert engine.sweep() == 250
        assert keys(engine) == []


def test_the_stream_says_that_the_service_did_it() -> None:
    with expiring(Clock(), StreamSpecification=NEW_AND_OLD) as engine:
        put(engine, "past", expires=at(START - 10))
        engine.sweep()
        (stream,) = engine.call("ListStreams", {})["Streams"]
        arn = {"StreamArn": stream["StreamArn"]}
        (shard,) = engine.call("DescribeStream", arn)["StreamDescription"]["Shards"]
        place = {**arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON"}
        inserted, removed = engine.call("GetRecords", engine.call("GetShardIterator", place))["Records"]
        assert "userIdentity" not in inserted
        assert removed["eventName"] == "REMOVE"
        assert removed["userIdentity"] == {"Type": "Service", "PrincipalId": "dynamodb.amazonaws.com"}


def test_an_item_that_got_more_time_meanwhile_stays() -> None:
    with expiring(Clock()) as engine:
        put(engine, "past", expires=at(START - 10))
        with engine.database.read() as connection:
            found, _ = ttl._candidates(connection, engine.table("Things"), "expires", 0, START)
        assert len(found) == 1
        put(engine, "past", expires=at(START + DAY))
        assert ttl._remove(engine, "Things", "expires", found) == 0
        assert keys(engine) == ["past"]


def changes(engine: SqliteEngine) -> int:
    with engine.database.read() as connection:
        asked = "SELECT count(*) FROM changes WHERE old IS NOT NULL OR new IS NOT NULL"
        return int(connection.execute(asked).fetchone()[0])


def test_changes_are_kept_for_a_day() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, StreamSpecification=NEW_AND_OLD)
        put(engine, "1")
        clock.move(23 * HOUR)
        put(engine, "2")
        engine.sweep()
        assert changes(engine) == 2
        clock.move(2 * HOUR)
        engine.sweep()
        assert changes(engine) == 1


def test_changes_are_kept_longer_when_the_table_can_be_brought_back() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        engine.call(
            "UpdateContinuousBackups",
            {
                "TableName": "Things",
                "PointInTimeRecoverySpecification": {
                    "PointInTimeRecoveryEnabled": True,
                    "RecoveryPeriodInDays": 3,
                },
            },
        )
        put(engine, "1")
        clock.move(2 * DAY)
        engine.sweep()
        assert changes(engine) == 1
        clock.move(2 * DAY)
        engine.sweep()
        assert changes(engine) == 0


def test_no_sequence_number_is_given_out_twice_though_every_change_was_trimmed() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, StreamSpecification=NEW_AND_OLD)
        for name in "123":
            put(engine, name)
        clock.move(2 * DAY)
        engine.sweep()
        engine.sweep()
        assert changes(engine) == 0
        put(engine, "4")
        with engine.database.read() as connection:
            rows = connection.execute(
                "SELECT sequence, new IS NULL FROM changes ORDER BY sequence"
            ).fetchall()
        # The last number is kept, and nothing of what it was about.
        assert rows == [(3, 1), (4, 0)]
        clock.move(2 * DAY)
        engine.sweep()
        with engine.database.read() as connection:
            assert connection.execute("SELECT sequence FROM changes").fetchall() == [(4,)]


def test_tokens_are_forgotten_after_their_time() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine)
        write = {"Put": {"TableName": "Things", "Item": {"pk": {"S": "1"}}}}
        engine.call("TransactWriteItems", {"TransactItems": [write], "ClientRequestToken": "once"})
        clock.move(HOUR)
        engine.sweep()
        with engine.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM tokens").fetchone() == (0,)
