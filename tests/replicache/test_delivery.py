"""How mutations arrive: in order, once, confirmed; what is rejected, and what is sent again (section 2)."""

from __future__ import annotations

from tests.torture.size import LONG
from tests.waiting import wait_until

from .conftest import World
from .server import mutation
from .test_wire import order


def test_mutations_run_in_order(world: World) -> None:
    with world.open() as client:
        client.mutate("createTodo", id="a")
        client.mutate_many([("renameTodo", {"id": "a", "text": str(number)}) for number in range(20)])
        client.settle()
        assert client.texts() == world.texts() == {"a": "19"}


def test_a_mutation_from_the_future_neither_runs_nor_counts(world: World) -> None:
    world.push(mutation(1, "createTodo", id="a"))
    world.push(mutation(3, "createTodo", id="c"))
    found = world.pull().json()
    assert found["lastMutationIDChanges"] == {"client000000000001": 1}
    assert list(world.texts()) == ["a"]
    world.push(mutation(2, "createTodo", id="b"), mutation(3, "createTodo", id="c"))
    assert world.pull(found["cookie"]).json()["lastMutationIDChanges"] == {"client000000000001": 3}
    assert sorted(world.texts()) == ["a", "b", "c"]


def test_several_clients_of_a_group_have_their_own_numbers(world: World) -> None:
    world.push(
        mutation(1, "createTodo", "tab-one", id="a"),
        mutation(1, "createTodo", "tab-two", id="b"),
        mutation(2, "addTo", "tab-one", id="b"),
        mutation(2, "addTo", "tab-two", id="b"),
    )
    assert world.pull().json()["lastMutationIDChanges"] == {"tab-one": 2, "tab-two": 2}
    assert world.counts() == {"a": 0, "b": 2}


def test_every_push_resends_what_no_pull_confirmed_and_nothing_runs_twice(world: World) -> None:
    """The client pushes [1], [1, 2], [1, 2, 3] and so on: duplicates are the normal case."""
    world.put("a")
    with world.open(pushDelay=100_000) as client:
        sizes = []
        for _ in range(4):
            client.mutate("addTo", id="a")
            assert client.push() == "done"
            sizes += [len(each["body"]["mutations"]) for each in client.log("/push")]
        assert sizes == [1, 2, 3, 4]
        assert client.pending() == 4
        assert world.counts() == {"a": 4}
        client.pull()
        assert client.pending() == 0


def test_pure_duplicates_do_not_move_the_cookie(world: World) -> None:
    world.push(mutation(1, "createTodo", id="a"))
    cookie = world.pull().json()["cookie"]
    assert world.push(mutation(1, "createTodo", id="a")).status_code == 200
    again = world.pull(cookie).json()
    assert again == {"cookie": cookie, "lastMutationIDChanges": {}, "patch": []}


def test_a_lost_reply_is_no_lost_mutation(world: World) -> None:
    world.put("a")
    with world.open(network="deaf", pushDelay=100_000) as client:
        client.mutate("addTo", id="a")
        client.push()
        client.push()
        assert world.counts() == {"a": 1}
        client.network("online")
        client.settle()
        assert client.read("todo/")["todo/a"]["count"] == 1
    assert world.counts() == {"a": 1}


def test_a_rejected_mutation_alone_in_its_push_is_confirmed_and_undone(world: World) -> None:
    """Its confirmation moves the cookie: with an equal one the client would drop it."""
    with world.open() as client:
        client.pull()
        before = client.log("/pull")[-1]["reply"]
        client.mutate("createTodo", id="no", text="forbidden")
        assert "no" in client.texts()
        client.settle()
        assert client.pending() == 0
        assert client.texts() == {}
        assert order(client.log("/pull")[-1]["reply"]) > order(before)
        (reason,) = client.read(f"control/rejected/{client.id}/").values()
        assert "forbidden" in str(reason)
        client.mutate("createTodo", id="yes")
        client.settle()
        assert client.events() == []
    assert list(world.texts()) == ["yes"]


def test_unknown_mutators_and_wrong_arguments_are_rejected_and_the_queue_goes_on(world: World) -> None:
    with world.open() as client:
        client.mutate("surprise", id="a")
        client.mutate("createTodo", id=5, text="a number")
        client.mutate("renameTodo", id="missing", text="x")
        client.mutate("createTodo", id="b")
        client.settle()
        assert list(client.texts()) == ["b"]
        rejected = client.read("control/rejected/")
        assert {key.rpartition("/")[2] for key in rejected} == {"1", "2", "3"}
    assert list(world.texts()) == ["b"]


def test_a_rejected_mutation_leaves_none_of_its_writes(world: World) -> None:
    """`transfer` changes one item and rejects at the second."""
    world.put("a", count=5)
    with world.open() as client:
        client.mutate("transfer", **{"from": "a", "to": "missing"})
        client.settle()
        assert client.read("todo/")["todo/a"]["count"] == 5
    assert world.counts() == {"a": 5}


def test_a_failing_engine_is_never_taken_for_a_rejection(world: World) -> None:
    """A push that was processed in part is not a 200: after a 200 nothing is sent again."""
    with world.open(maxDelayMs=5) as client:
        world.server.fail(12)
        client.mutate_many([("createTodo", {"id": f"n{number}"}) for number in range(30)])
        client.settle()
        assert 503 in {each["status"] for each in client.log("/push")}
        assert client.pending() == 0
        assert client.read("control/") == {}
    assert sorted(world.texts()) == sorted(f"n{number}" for number in range(30))


def test_a_push_alone_is_sent_again_until_it_is_done_without_a_new_mutation(world: World) -> None:
    """No stall: the client retries on its own, as long as the status is not 200."""
    with world.open(maxDelayMs=5) as client:
        world.server.fail(12)
        client.mutate("createTodo", id="a")
        wait_until(lambda: "a" in world.texts())
        pushes = client.log("/push")
        assert {each["status"] for each in pushes[:-1]} <= {503, None}


def test_offline_work_is_kept_and_arrives_once(world: World) -> None:
    world.put("a")
    with world.open() as client:
        client.pull()
        client.network("offline")
        client.mutate_many([("addTo", {"id": "a"})] * 200)
        assert client.read("todo/")["todo/a"]["count"] == 200
        client.network("online")
        client.settle()
    assert world.counts() == {"a": 200}


def test_a_queue_of_two_megabytes_is_one_push(world: World) -> None:
    count = 200 if LONG else 40
    text = "x" * (2_100_000 // count)
    with world.open(network="offline") as client:
        client.mutate_many([("createTodo", {"id": f"n{number:03}", "text": text}) for number in range(count)])
        client.network("online")
        client.log()
        client.settle()
        assert max(each["bytes"] for each in client.log("/push")) > 2_000_000
        assert len(client.texts()) == count
    assert len(world.texts()) == count


def test_deletes_reach_every_client(world: World) -> None:
    for name in "abc":
        world.put(name)
    with world.open() as one, world.open("ben") as two:
        one.pull()
        two.pull()
        world.delete("a")
        one.mutate("deleteTodo", id="b")
        one.settle()
        two.pull()
        assert list(one.texts()) == list(two.texts()) == ["c"]
        one.mutate("createTodo", id="a", text="again")
        one.settle()
        two.pull()
        assert two.texts() == {"a": "again", "c": ""}
        assert all(each["reply"]["patch"][:1] != [{"op": "clear"}] for each in two.log("/pull")[1:])


def test_the_last_writer_is_decided_by_the_server(world: World) -> None:
    world.put("a")
    with world.open() as one, world.open("ben") as two:
        for client in (one, two):
            client.pull()
            client.network("offline")
        one.mutate("renameTodo", id="a", text="by one")
        two.mutate("renameTodo", id="a", text="by two")
        two.network("online")
        two.settle()
        one.network("online")
        one.settle()
        two.pull()
        assert one.texts() == two.texts() == world.texts() == {"a": "by one"}
