"""The feed over streams that no engine here has: many shards, closed and trimmed ones, empty pages."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import pytest

from solotable import Entity, Key, Table
from solotable._flows.cursors import CursorSigner
from solotable._flows.feed.changes import changes_of
from solotable._flows.feed.checkpoints import Checkpoint, ShardCheckpoint
from solotable._flows.feed.feed import Feed, Since
from solotable._flows.feed.streams import Record
from solotable._flows.retry import Retries, Sleep
from solotable._flows.scope import Scope
from solotable._protocol.engine import Capabilities
from solotable._protocol.replies import Page, WroteItem
from solotable._protocol.requests import Control, PutItem, Query, Request
from solotable._store.runner import run
from solotable.errors import DeclarationError, FeedTrimmed, ServiceError, TableNotFound

NOW = 1_900_000_000.0
ARN = "arn:aws:dynamodb:eu-west-1:1:table/T/stream/1"
table = Table("Tab", stream=True)


class Cat(Entity, table=table):
    key = Key("CAT#{name}", "CAT")
    name: str


class Dog(Entity, table=table):
    key = Key("CAT#{name}", "CAT")
    name: str
    barks: bool = True


@dataclass
class FakeShard:
    id: str
    records: list[int]
    parent: str | None = None
    closed: bool = False
    trimmed: int = 0


@dataclass
class FakeStreams:
    """Answers what a stream of several shards would; an iterator is `shard/place`."""

    shards: list[FakeShard]
    status: str = "ENABLED"
    view: str = "NEW_AND_OLD_IMAGES"
    #: Empty pages before each page that has records, as DynamoDB gives them.
    empties: int = 0
    faults: list[tuple[str, ServiceError]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    slept: list[float] = field(default_factory=list)
    put: list[Any] = field(default_factory=list)
    _skipped: dict[str, int] = field(default_factory=dict)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(sleep=self.sleep)

    def handle(self, request: Request[Any], /) -> Any:
        if isinstance(request, Query):
            return Page(items=[], count=0, scanned=0)
        if isinstance(request, PutItem):
            self.put.append(request.item)
            return WroteItem()
        assert isinstance(request, Control)
        self.asked.append(request.operation)
        if self.faults and self.faults[0][0] == request.operation:
            raise self.faults.pop(0)[1]
        return getattr(self, f"_{request.operation}")(request.members)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)

    def close(self) -> None: ...

    def _DescribeTable(self, members: dict[str, Any]) -> Any:  # noqa: N802
        return {"Table": {"LatestStreamArn": ARN, "StreamSpecification": {"StreamViewType": self.view}}}

    def _DescribeStream(self, members: dict[str, Any]) -> Any:  # noqa: N802
        # Two shards a page.
        names = [shard.id for shard in self.shards]
        start = names.index(members["ExclusiveStartShardId"]) + 1 if "ExclusiveStartShardId" in members else 0
        some = self.shards[start : start + 2]
        told: dict[str, Any] = {"StreamStatus": self.status, "CreationRequestDateTime": 0, "Shards": []}
        for shard in some:
            numbers = {
                "StartingSequenceNumber": "1",
                **({"EndingSequenceNumber": "9"} if shard.closed else {}),
            }
            one = {"ShardId": shard.id, "SequenceNumberRange": numbers}
            told["Shards"].append(one if shard.parent is None else {**one, "ParentShardId": shard.parent})
        if start + 2 < len(self.shards):
            told["LastEvaluatedShardId"] = some[-1].id
        return {"StreamDescription": told}

    def _GetShardIterator(self, members: dict[str, Any]) -> Any:  # noqa: N802
        shard = self._shard(members["ShardId"])
        match members["ShardIteratorType"]:
            case "TRIM_HORIZON":
                place = sum(1 for each in shard.records if each <= shard.trimmed)
            case "LATEST":
                place = len(shard.records)
            case _:
                number = int(members["SequenceNumber"])
                if number <= shard.trimmed:
                    raise trimmed()
                place = sum(1 for each in shard.records if each <= number)
        return {"ShardIterator": f"{shard.id}/{place}"}

    def _GetRecords(self, members: dict[str, Any]) -> Any:  # noqa: N802
        name, place = members["ShardIterator"].split("/")
        shard, start = self._shard(name), int(place)
        if start < len(shard.records) and self._skipped.get(name, 0) < self.empties:
            self._skipped[name] = self._skipped.get(name, 0) + 1
            return {"Records": [], "NextShardIterator": members["ShardIterator"]}
        self._skipped[name] = 0
        some = shard.records[start : start + 2]
        end = start + len(some)
        told: dict[str, Any] = {"Records": [record(number) for number in some]}
        if not (shard.closed and end == len(shard.records)):
            told["NextShardIterator"] = f"{name}/{end}"
        return told

    def _shard(self, name: str) -> FakeShard:
        found = [shard for shard in self.shards if shard.id == name]
        if not found:
            raise TableNotFound
        return found[0]


def record(number: int) -> dict[str, Any]:
    image = {
        "_type": {"S": "Cat"},
        "PK": {"S": f"CAT#{number}"},
        "SK": {"S": "CAT"},
        "name": {"S": str(number)},
    }
    change = {"SequenceNumber": str(number), "ApproximateCreationDateTime": NOW - 100, "NewImage": image}
    return {"eventName": "INSERT", "dynamodb": change}


def trimmed() -> ServiceError:
    return ServiceError("TrimmedDataAccessException", "too old")


def scope(now: float = NOW) -> Scope:
    return Scope(
        names={"Tab": "Tab"},
        tables=(table,),
        clock=lambda: now,
        retries=Retries(random=lambda: 0.0),
        cursor_signer=CursorSigner(secrets=[b"a secret of enough bytes"], clock=lambda: now),
        tokens=lambda: "token",
    )


def numbers(record: Record) -> Iterable[int]:
    return [int(record.sequence)]


def feed(since: Since = "earliest") -> Feed[int]:
    return Feed(scope(), [table], numbers, since=since)


def read(streams: FakeStreams, feed: Feed[int]) -> list[int]:
    found: list[int] = []
    while run(feed.fill(), streams):
        while (change := feed.take()) is not None:
            found.append(change)
    return found


def mark(shard: str, sequence: int, *, seen: float = NOW - 10, done: bool = False) -> ShardCheckpoint:
    return ShardCheckpoint(stream=ARN, shard=shard, sequence=str(sequence), seen=seen, done=done)


def place(*marks: ShardCheckpoint) -> Checkpoint:
    return Checkpoint(shards=marks, begun=NOW - 10)


def test_parents_come_before_their_children() -> None:
    streams = FakeStreams(
        [
            FakeShard("c", [7, 8], parent="b"),
            FakeShard("b", [4, 5, 6], parent="a", closed=True),
            FakeShard("d", [9], parent="b"),
            FakeShard("a", [1, 2, 3], closed=True),
        ]
    )
    found = read(streams, feed())
    assert found[:6] == [1, 2, 3, 4, 5, 6]
    assert sorted(found[6:]) == [7, 8, 9]


def test_a_child_whose_parent_is_gone_is_read() -> None:
    assert read(FakeStreams([FakeShard("b", [4], parent="a")]), feed()) == [4]


def test_children_that_appear_later_are_found_when_their_parent_ends() -> None:
    streams = FakeStreams([FakeShard("a", [1])])
    mine = feed()
    assert read(streams, mine) == [1]
    streams.shards[0].closed = True
    streams.shards[0].records.append(2)
    streams.shards.append(FakeShard("b", [3], parent="a"))
    assert read(streams, mine) == [2, 3]


def test_an_empty_page_is_not_the_end() -> None:
    assert read(FakeStreams([FakeShard("a", [1, 2, 3])], empties=2), feed()) == [1, 2, 3]


def test_the_latest_leaves_closed_shards_out_and_reads_new_ones_whole() -> None:
    streams = FakeStreams([FakeShard("a", [1], closed=True), FakeShard("b", [2], parent="a")])
    mine = feed("latest")
    assert read(streams, mine) == []
    streams.shards[1].records.append(3)
    streams.shards[1].closed = True
    streams.shards.append(FakeShard("c", [4], parent="b"))
    assert read(streams, mine) == [3, 4]


def test_an_expired_iterator_repeats_nothing() -> None:
    streams = FakeStreams([FakeShard("a", [1, 2, 3, 4])])
    mine = feed()
    assert run(mine.fill(), streams)
    assert [mine.take(), mine.take()] == [1, 2]
    streams.faults = [("GetRecords", ServiceError("ExpiredIteratorException", "late"))]
    assert read(streams, mine) == [3, 4]
    assert streams.asked.count("GetShardIterator") == 2


def test_a_crowd_is_waited_for() -> None:
    streams = FakeStreams([FakeShard("a", [1])])
    streams.faults = [("GetRecords", ServiceError("LimitExceededException", "too many readers"))]
    assert read(streams, feed()) == [1]
    assert len(streams.slept) == 1


def test_a_failing_service_is_asked_again() -> None:
    streams = FakeStreams([FakeShard("a", [1])])
    streams.faults = [("GetRecords", ServiceError("InternalServerError", "oops", status=500))]
    assert read(streams, feed()) == [1]


def test_a_place_that_was_trimmed_after_a_silence_goes_on_from_the_horizon() -> None:
    streams = FakeStreams([FakeShard("a", [1, 5, 6], trimmed=1)])
    assert read(streams, feed(place(mark("a", 1, seen=NOW - 3600)))) == [5, 6]


def test_a_place_that_was_trimmed_with_changes_behind_it_is_a_loss() -> None:
    streams = FakeStreams([FakeShard("a", [1, 5, 6], trimmed=5)])
    with pytest.raises(FeedTrimmed, match="24 hours"):
        read(streams, feed(place(mark("a", 1, seen=NOW - 30 * 3600))))


def test_a_reader_behind_the_trim_horizon_gets_feed_trimmed() -> None:
    streams = FakeStreams([FakeShard("a", [1, 2, 3, 4])])
    mine = feed()
    run(mine.fill(), streams)
    mine.take()
    mine._streams[0].shards["a"].seen = NOW - 25 * 3600
    streams.faults = [("GetRecords", trimmed())]
    mine.take()
    with pytest.raises(FeedTrimmed):
        read(streams, mine)


def test_a_shard_that_vanished_before_it_was_read_to_its_end_is_a_loss() -> None:
    streams = FakeStreams([FakeShard("b", [4], parent="a")])
    with pytest.raises(FeedTrimmed, match="no longer exists"):
        read(streams, feed(place(mark("a", 1, seen=NOW - 30 * 3600))))
    assert read(streams, feed(place(mark("a", 1, seen=NOW - 3600)))) == [4]


def test_generations_of_shards_that_came_and_went_are_a_loss() -> None:
    streams = FakeStreams([FakeShard("c", [9], parent="b")])
    with pytest.raises(FeedTrimmed):
        read(streams, feed(place(mark("a", 1, seen=NOW - 90 * 3600, done=True))))


def test_a_stream_that_was_turned_off_is_read_to_its_end_and_then_refused() -> None:
    streams = FakeStreams([FakeShard("a", [1, 2], closed=True)], status="DISABLED")
    mine = feed()
    assert run(mine.fill(), streams)
    assert [mine.take(), mine.take()] == [1, 2]
    with pytest.raises(FeedTrimmed, match="disabled"):
        run(mine.fill(), streams)


def test_the_place_of_a_table_that_this_one_is_a_copy_of_is_refused() -> None:
    elsewhere = ShardCheckpoint(stream=ARN.replace("/T/", "/Source/"), shard="a", sequence="1", seen=NOW - 10)
    with pytest.raises(FeedTrimmed, match="another table"):
        read(FakeStreams([FakeShard("a", [1, 2])]), feed(place(elsewhere)))


def test_a_place_is_noted_where_changes_come_without_end_but_none_is_of_interest() -> None:
    streams = FakeStreams([FakeShard("a", [1, 2, 3, 4, 5])])
    mine: Feed[int] = Feed(scope(), [table], lambda record: [], consumer="mail")
    for _ in range(2):
        assert run(mine.fill(), streams)
        assert mine.take() is None
    (noted,) = streams.put
    assert (noted["sequence"], noted["seen"]) == ({"S": "2"}, {"N": repr(NOW - 100)})


def test_a_place_before_the_first_record_is_a_loss_once_it_is_old() -> None:
    streams = FakeStreams([FakeShard("a", [7])])
    nothing = ShardCheckpoint(stream=ARN, shard="a", sequence=None, seen=NOW - 30 * 3600)
    with pytest.raises(FeedTrimmed):
        read(streams, feed(place(nothing)))
    assert read(streams, feed(place(replace(nothing, seen=NOW - 3600)))) == [7]


def test_a_stream_without_images_is_refused() -> None:
    with pytest.raises(DeclarationError, match="KEYS_ONLY"):
        read(FakeStreams([], view="KEYS_ONLY"), feed())


def test_following_waits_between_two_looks() -> None:
    streams = FakeStreams([FakeShard("a", [])])
    flow = feed().fill(follow=True, poll_seconds=7)
    request = next(flow)
    while not isinstance(request, Sleep):
        request = flow.send(streams.handle(request))
    assert request.seconds == 7
    streams.shards[0].records.append(1)
    request = flow.send(None)
    for _ in range(2):
        if isinstance(request, Control) and request.operation == "GetRecords":
            break
        request = flow.send(streams.handle(request))
    with pytest.raises(StopIteration) as done:
        flow.send(streams.handle(request))
    assert done.value.value is True


def test_an_entity_that_takes_anothers_place_is_two_changes_of_one_sequence() -> None:
    cat, dog = ({"name": {"S": "Rex"}, "_type": {"S": kind}} for kind in ("Cat", "Dog"))
    told = Record(
        table=table,
        shard="a",
        sequence="5",
        at=datetime.fromtimestamp(NOW, UTC),
        kind="modified",
        before=cat,
        after=dog,
        by_ttl=False,
    )
    gone, made = changes_of(scope(), [], told)
    assert (gone.entity, gone.kind, gone.after, gone.sequence) == (Cat, "removed", None, "5")
    assert (made.entity, made.kind, made.before, made.current) == (Dog, "inserted", None, Dog(name="Rex"))
    assert [each.entity for each in changes_of(scope(), [Dog.plan()], told)] == [Dog]


def test_two_changes_of_one_record_are_handed_out_before_its_place_is_taken() -> None:
    streams = FakeStreams([FakeShard("a", [1, 2])])
    mine: Feed[int] = Feed(scope(), [table], lambda record: [int(record.sequence)] * 2)
    run(mine.fill(), streams)
    assert mine.take() == 1
    assert mine.checkpoint.shards[0].sequence is None
    assert mine.take() == 1
    assert mine.checkpoint.shards[0].sequence == "1"
