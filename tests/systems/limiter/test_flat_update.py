"""Flat updates: what DynamoDB refuses cannot be built, and what the seed got wrong is known (C1.1-C1.4)."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from solotable._expressions.syntax.reserved_words import RESERVED
from solotable._protocol.decode.requests import decode_request
from solotable._protocol.encode.requests import encode_request
from solotable._protocol.requests import GetItem, Request, UpdateItem
from solotable._values import Item
from solotable.errors import DeclarationError, ServiceError
from solotable.systems.limiter import Limit
from solotable.systems.limiter.buckets.bucket import Bucket
from solotable.systems.limiter.buckets.writes.flat_update import FlatUpdate

from .either import either
from .ground import Place

KEY: Item = {"PK": {"S": "flat"}, "SK": {"S": "flat"}}
RPM, TPM = Limit.per_minute("rpm", 100), Limit.per_minute("tpm", 10_000)


def update(place: Place, expression: str, names: dict[str, str], **values: Any) -> None:
    members: dict[str, Any] = {
        "TableName": place.table,
        "Key": KEY,
        "UpdateExpression": expression,
        "ExpressionAttributeValues": {f":{name}": value for name, value in values.items()},
    }
    if names:
        members["ExpressionAttributeNames"] = names
    place.engine.handle(decode_request("UpdateItem", members))


def stored(place: Place) -> Item:
    from solotable._flows.scope import decode_item

    item = place.engine.handle(GetItem(table=place.table, key=KEY, consistent=True)).item
    assert item is not None
    return decode_item(item)


def writes_of(place: Place, limits: list[Limit]) -> list[UpdateItem]:
    """Return every kind of write that the limiter makes."""
    ours = either(place, "sync", limits=limits)
    ours.acquire("u", "r", {}).__enter__()
    for _ in range(3):
        with ours.acquire("u", "r", {"rpm": 1, "tpm": 5}) as lease:
            lease.adjust(tpm=7)
            lease.release(rpm=1)
    with ours.acquire("u", "r", {"rpm": 1}, limits=[RPM]):
        pass
    sent: list[Request[Any]] = list(place.journal.requests("UpdateItem"))
    return [each for each in sent if isinstance(each, UpdateItem)]


def test_s1_3_a_bucket_is_flat_however_it_is_written(place: Place) -> None:
    writes_of(place, [RPM, TPM])
    (bucket,) = place.raw("Bucket")
    assert {kind for value in bucket.values() for kind in value} == {"S", "N"}
    assert "data" not in bucket


def test_s1_4_every_name_in_every_expression_is_an_alias(place: Place) -> None:
    sent = writes_of(place, [RPM, TPM])
    assert len(sent) == 7
    for request in sent:
        _, wire = encode_request(request)
        for parameter in ("UpdateExpression", "ConditionExpression"):
            words = re.findall(r"[#:]?[A-Za-z_~][A-Za-z0-9_~]*", wire[parameter])
            bare = {word for word in words if word[0] not in "#:"}
            assert bare <= {
                "SET",
                "ADD",
                "REMOVE",
                "AND",
                "OR",
                "NOT",
                "if_not_exists",
                "attribute_exists",
                "attribute_not_exists",
            }
        assert {"resource", "entity"} & set(wire["ExpressionAttributeNames"].values()) or "rules" in set(
            wire["ExpressionAttributeNames"].values()
        )


def test_c1_3_many_more_words_are_reserved_than_the_seed_says() -> None:
    said = {"name", "resource", "action", "timestamp"}
    more = {
        "counter", "total", "ttl", "status", "type", "owner", "data", "read", "section", "element", "role",
        "order", "window", "date", "url", "source", "location", "limit", "value", "users",
    }  # fmt: skip
    assert {word.upper() for word in said | more} <= {word.upper() for word in RESERVED}


@pytest.mark.parametrize("word", ["name", "resource", "action", "timestamp", "counter", "ttl"])
def test_s1_5_an_unaliased_reserved_word_is_refused_by_the_engine(place: Place, word: str) -> None:
    with pytest.raises(ServiceError, match=f"reserved keyword: {word}") as refused:
        update(place, f"SET {word} = :val", {}, val={"S": "x"})
    assert refused.value.code == "ValidationException"


def test_s1_6_a_set_of_a_map_and_an_add_below_it_overlap(place: Place) -> None:
    with pytest.raises(ServiceError, match="Two document paths overlap with each other") as refused:
        update(
            place,
            "SET #data = if_not_exists(#data, :m) ADD #data.#counter :d",
            {"#data": "data", "#counter": "counter"},
            m={"M": {}},
            d={"N": "1"},
        )
    assert refused.value.code == "ValidationException"


def test_s1_7_the_second_writer_keeps_the_first_resource_and_the_counters_sum(place: Place) -> None:
    def write(writer: int) -> None:
        update(
            place,
            "SET #entity = :e, #resource = if_not_exists(#resource, :r) ADD #limit :d, #events :one",
            {"#entity": "entity_id", "#resource": "resource", "#limit": "rpm", "#events": "total_events"},
            e={"S": "u"},
            r={"S": f"r{writer}"},
            d={"N": "3"},
            one={"N": "1"},
        )

    write(0)
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(write, range(1, 24)))
    found = stored(place)
    assert found["resource"] == {"S": "r0"}
    assert (found["rpm"], found["total_events"]) == ({"N": "72"}, {"N": "24"})


def test_s1_8_only_what_an_item_is_is_guarded(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    for _ in range(2):
        place.clock.seconds += 1
        with ours.acquire("u", "r", {"rpm": 1}):
            pass
    (first, *_) = place.journal.requests("UpdateItem")
    _, wire = encode_request(first)
    names = wire["ExpressionAttributeNames"]
    guarded = re.findall(r"if_not_exists\((#\w+)", wire["UpdateExpression"])
    assert {names[alias] for alias in guarded} == {"_type", "entity", "resource", "namespace", "shard"}
    (bucket,) = place.raw("Bucket")
    assert bucket["at"] == {"N": str(int(place.clock() * 1_000_000))}


def test_s1_9_many_first_acquires_make_one_bucket_and_the_exact_sum(place: Place) -> None:
    many = [either(place, "sync", limits=[RPM], shard_above=None) for _ in range(8)]

    def first(ours: Any) -> None:
        with ours.acquire("u", "r", {"rpm": 3}):
            pass

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(first, many))
    (bucket,) = place.raw("Bucket")
    assert (bucket["consumed_rpm"], bucket["writes"]) == ({"N": "24000"}, {"N": "8"})


def test_c1_4_what_changes_is_not_guarded_and_so_not_ignored(place: Place, mode: str) -> None:
    ours = either(place, mode, limits=[RPM])
    with ours.acquire("u", "r", {"rpm": 1}):
        pass
    before = place.raw("Bucket")[0]
    place.clock.seconds += 3600
    with ours.acquire("u", "r", {"rpm": 1}, limits=[Limit.per_minute("rpm", 50)]):
        pass
    after = place.raw("Bucket")[0]
    for name in ("at", "expires", "rules", "used_rpm"):
        assert before[name] != after[name]


def test_c1_1_an_add_begins_at_zero_and_a_sum_of_nothing_is_refused(place: Place) -> None:
    update(place, "ADD #c :d", {"#c": "counter"}, d={"N": "5"})
    update(place, "ADD #c :d", {"#c": "counter"}, d={"N": "5"})
    assert stored(place)["counter"] == {"N": "10"}
    with pytest.raises(ServiceError, match="provided expression refers to an attribute that does not exist"):
        update(place, "SET #d = #d + :d", {"#d": "other"}, d={"N": "5"})
    with pytest.raises(ServiceError, match="document path provided in the update expression is invalid"):
        update(place, "ADD #m.#d :d", {"#m": "missing", "#d": "other"}, d={"N": "5"})


def test_c1_2_the_seeds_own_correction_fails_as_it_is_printed(place: Place) -> None:
    with pytest.raises(ServiceError, match="reserved keyword: counter"):
        update(
            place,
            "SET entity_id = if_not_exists(entity_id, :entity_id) ADD counter :delta",
            {},
            entity_id={"S": "u"},
            delta={"N": "1"},
        )


def test_s1_12_the_builder_cannot_write_a_violation() -> None:
    with pytest.raises(DeclarationError, match="occurs twice in one update"):
        FlatUpdate().set("data", "x").add("data", 1)
    with pytest.raises(DeclarationError, match="occurs twice"):
        FlatUpdate().set_if_missing("at", 1).remove("at")
    with pytest.raises(DeclarationError, match="strings and whole numbers; dict is neither"):
        FlatUpdate().set("data", {})  # type: ignore[arg-type]
    with pytest.raises(DeclarationError, match="bool is neither"):
        FlatUpdate().set("flag", True)
    with pytest.raises(DeclarationError, match="not empty"):
        FlatUpdate().set("", 1)
    # A dot is part of a name here: there is no path that could be below another one.
    assert [action.path for action in FlatUpdate().set("data", 1).add("data.counter", 1).build().actions] == [
        ("data",),
        ("data.counter",),
    ]


def test_s1_11_what_is_derived_from_changes_is_declared_in_one_place() -> None:
    """Usage is the one thing that follows from state changes; it reads the counters and nothing else."""
    import inspect

    from solotable.systems.limiter.usage import aggregate

    assert "used_" not in re.sub(r'""".*?"""|#.*', "", inspect.getsource(aggregate), flags=re.DOTALL)


def test_the_bucket_is_an_entity_that_a_store_can_read(place: Place) -> None:
    writes_of(place, [RPM, TPM])
    found = place.store.get(Bucket, entity="u", resource="r", shard=0)
    assert found is not None
    assert (found.rules, found.level) == ("rpm=100/60", 0)


def test_l3_a_copy_is_of_the_value_before_the_update(place: Place) -> None:
    """DynamoDB: every operand of an update is read from the item as it was; so a split needs no guess."""
    update(place, "SET a = :a", {}, a={"N": "7"})
    change = FlatUpdate().add("a", 5).copy("b", "a").set("level", 1)
    place.engine.handle(UpdateItem(table=place.table, key=KEY, update=change.build()))
    assert {name: value["N"] for name, value in stored(place).items() if "N" in value} == {
        "a": "12",
        "b": "7",
        "level": "1",
    }
    with pytest.raises(DeclarationError, match="occurs twice"):
        FlatUpdate().set("b", 1).copy("b", "a")
