"""Streams and time: what is trimmed, what expires, and what outlives its table."""

from __future__ import annotations

import pytest

from solotable.engines.sqlite import SqliteEngine
from solotable.errors import ServiceError, TableNotFound

from .clocked import DAY, HOUR, Clock, Json, create, opened, put

STREAMED = {"StreamSpecification": {"StreamEnabled": True, "StreamViewType": "NEW_IMAGE"}}


def switch(engine: SqliteEngine, *, on: bool) -> None:
    specification = STREAMED["StreamSpecification"] if on else {"StreamEnabled": False}
    engine.call("UpdateTable", {"TableName": "Things", "StreamSpecification": specification})


def streams(engine: SqliteEngine) -> list[str]:
    return [stream["StreamArn"] for stream in engine.call("ListStreams", {})["Streams"]]


def shard(engine: SqliteEngine, arn: str) -> Json:
    (only,) = engine.call("DescribeStream", {"StreamArn": arn})["StreamDescription"]["Shards"]
    return dict(only)


def iterator(engine: SqliteEngine, arn: str, kind: str = "TRIM_HORIZON", **members: str) -> Json:
    place = {"StreamArn": arn, "ShardId": shard(engine, arn)["ShardId"], "ShardIteratorType": kind, **members}
    return engine.call("GetShardIterator", place)


def read(engine: SqliteEngine, arn: str) -> list[str]:
    page = engine.call("GetRecords", iterator(engine, arn))
    return [record["dynamodb"]["Keys"]["pk"]["S"] for record in page["Records"]]


def test_a_stream_shows_nothing_from_before_it_was_enabled() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        put(engine, "first")
        switch(engine, on=False)
        put(engine, "between")
        clock.move(1)
        switch(engine, on=True)
        put(engine, "second")
        one, two = streams(engine)
        assert (read(engine, one), read(engine, two)) == (["first"], ["second"])


def test_changes_recorded_for_backups_do_not_show_in_a_later_stream() -> None:
    with opened() as engine:
        create(engine)
        recovery = {"PointInTimeRecoveryEnabled": True}
        engine.call(
            "UpdateContinuousBackups",
            {"TableName": "Things", "PointInTimeRecoverySpecification": recovery},
        )
        put(engine, "before")
        switch(engine, on=True)
        put(engine, "after")
        assert read(engine, streams(engine)[0]) == ["after"]


def test_streams_of_one_millisecond_have_different_labels() -> None:
    with opened() as engine:
        create(engine, **STREAMED)
        switch(engine, on=False)
        switch(engine, on=True)
        assert len(set(streams(engine))) == 2


def test_a_deleted_table_s_stream_can_be_read_for_a_day() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        put(engine, "1")
        (arn,) = streams(engine)
        clock.move(HOUR)
        engine.call("DeleteTable", {"TableName": "Things"})
        assert read(engine, arn) == ["1"]
        assert "EndingSequenceNumber" in shard(engine, arn)["SequenceNumberRange"]
        clock.move(DAY + 1)
        assert streams(engine) == []
        with pytest.raises(TableNotFound, match=r"Stream: .* not found"):
            engine.call("DescribeStream", {"StreamArn": arn})
        engine.sweep()
        with engine.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM streams").fetchone() == (0,)


def test_the_last_page_of_an_ended_stream_has_no_next_iterator() -> None:
    with opened() as engine:
        create(engine, **STREAMED)
        put(engine, "1")
        put(engine, "2")
        (arn,) = streams(engine)
        switch(engine, on=False)
        page = engine.call("GetRecords", {**iterator(engine, arn), "Limit": 1})
        rest = engine.call("GetRecords", {"ShardIterator": page["NextShardIterator"]})
        assert len(rest["Records"]) == 1
        assert "NextShardIterator" not in rest


def test_an_iterator_holds_for_fifteen_minutes() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        held = iterator(engine, streams(engine)[0])
        clock.move(15 * 60)
        engine.call("GetRecords", held)
        clock.move(1)
        with pytest.raises(ServiceError) as refused:
            engine.call("GetRecords", held)
        assert refused.value.code == "ExpiredIteratorException"


@pytest.mark.parametrize("swept", [False, True])
def test_a_record_over_a_day_old_is_trimmed(swept: bool) -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        (arn,) = streams(engine)
        put(engine, "old")
        (record,) = engine.call("GetRecords", iterator(engine, arn))["Records"]
        clock.move(DAY + 1)
        put(engine, "new")
        if swept:
            engine.sweep()
        assert read(engine, arn) == ["new"]
        number = record["dynamodb"]["SequenceNumber"]
        for kind in ("AT_SEQUENCE_NUMBER", "AFTER_SEQUENCE_NUMBER"):
            with pytest.raises(ServiceError) as refused:
                iterator(engine, arn, kind, SequenceNumber=number)
            assert refused.value.code == "TrimmedDataAccessException"


def test_an_iterator_whose_record_was_trimmed_since_is_refused() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        (arn,) = streams(engine)
        put(engine, "old")
        clock.move(DAY - 60)
        held = iterator(engine, arn)
        clock.move(120)
        with pytest.raises(ServiceError) as refused:
            engine.call("GetRecords", held)
        assert refused.value.code == "TrimmedDataAccessException"


def test_an_idle_stream_can_be_followed_past_what_was_trimmed() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        (arn,) = streams(engine)
        put(engine, "old")
        page = engine.call("GetRecords", iterator(engine, arn))
        for _ in range(300):
            clock.move(5 * 60)
            page = engine.call("GetRecords", {"ShardIterator": page["NextShardIterator"]})
        engine.sweep()
        assert engine.call("GetRecords", {"ShardIterator": page["NextShardIterator"]})["Records"] == []


def test_streams_are_listed_in_pages() -> None:
    with opened() as engine:
        create(engine, **STREAMED)
        switch(engine, on=False)
        switch(engine, on=True)
        first = engine.call("ListStreams", {"Limit": 1})
        second = engine.call(
            "ListStreams", {"Limit": 1, "ExclusiveStartStreamArn": first["LastEvaluatedStreamArn"]}
        )
        assert "LastEvaluatedStreamArn" not in second
        assert first["Streams"] != second["Streams"]


def test_changes_kept_for_backups_are_trimmed_from_the_stream_all_the_same() -> None:
    clock = Clock()
    with opened(clock=clock) as engine:
        create(engine, **STREAMED)
        recovery = {"PointInTimeRecoveryEnabled": True}
        engine.call(
            "UpdateContinuousBackups",
            {"TableName": "Things", "PointInTimeRecoverySpecification": recovery},
        )
        put(engine, "old")
        clock.move(DAY + 1)
        put(engine, "new")
        engine.sweep()
        assert read(engine, streams(engine)[0]) == ["new"]
        with engine.database.read() as connection:
            assert connection.execute("SELECT count(*) FROM changes").fetchone() == (2,)
