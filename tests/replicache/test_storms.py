"""Many clients and other writers at once, snapshots, gaps, and a server that is killed (sections 2 and 6)."""

from __future__ import annotations

import itertools
import random
import threading
from typing import Any

from tests.torture.size import LONG, SEED
from tests.waiting import jitter

from .clients import Client, finished
from .conftest import World
from .test_wire import order

_CLIENTS = 20 if LONG else 6
_MUTATIONS = 60 if LONG else 10


def storm(world: World, plans: dict[Client, list[Any]], watchers: list[Client]) -> set[int]:
    """Run mutations of many clients at once; return the sums of all counts that watchers saw."""
    sent = [{"client": client.name, "mutations": found} for client, found in plans.items()]
    done = world.driver.call("storm", plans=sent, pulls=[each.name for each in watchers])
    return set(done["totals"])


def check_pulls(client: Client) -> None:
    """Cookies never go back; an equal cookie has no changes; only the first pull is whole."""
    replies = [each["reply"] for each in client.log("/pull") if each["status"] == 200]
    for before, after in itertools.pairwise(replies):
        assert order(after) >= order(before)
        assert {"op": "clear"} not in after["patch"]
        if order(after) == order(before):
            assert after["patch"] == []
            assert after["lastMutationIDChanges"] == {}
    assert client.events() == []


def test_a_storm_loses_nothing_and_runs_nothing_twice(world: World) -> None:
    world.put("sum")
    clients = [world.open(f"u{number}") for number in range(_CLIENTS)]
    plans = {
        client: [("addTo", {"id": "sum"}), ("createTodo", {"id": client.id})]
        + [("addTo", {"id": client.id if number % 2 else "sum"}) for number in range(_MUTATIONS)]
        for client in clients
    }
    storm(world, plans, [])
    shared = 1 + (_MUTATIONS + 1) // 2
    expected = {"sum": _CLIENTS * shared} | {client.id: _MUTATIONS // 2 for client in clients}
    assert world.counts() == expected
    for client in clients:
        client.pull()
        assert {key: each["count"] for key, each in client.read("todo/").items()} == {
            f"todo/{name}": count for name, count in expected.items()
        }
        check_pulls(client)
        client.close()


def test_no_pull_shows_half_of_a_mutation(world: World) -> None:
    """Transfers keep the sum; a client that pulls all the time sees no other one."""
    for name in "abcd":
        world.put(name, count=100)
    writers = [world.open(f"w{number}") for number in range(3)]
    watchers = [world.open(f"r{number}") for number in range(2)]
    dice = random.Random(SEED)
    for client in (*writers, *watchers):
        client.pull()
    plans = {
        client: [
            (
                "transfer",
                dict(zip(("from", "to"), dice.sample("abcd", 2), strict=True), amount=dice.randint(1, 9)),
            )
            for _ in range(_MUTATIONS)
        ]
        for client in writers
    }
    assert storm(world, plans, watchers) == {400}
    for client in (*writers, *watchers):
        check_pulls(client)
        client.close()


def test_no_gaps_between_pulls_while_others_write(world: World) -> None:
    """Other programs write at once; a client that pulls all the time has everything in the end."""
    readers = [world.open(f"r{number}") for number in range(2)]
    for reader in readers:
        reader.pull()
    writer = world.open("w")

    def write(lane: int) -> None:
        dice = random.Random(SEED + lane)
        for number in range(_MUTATIONS * 2):
            world.put(f"{lane}-{number}", f"v{number}")
            if number % 3 == 2:
                world.delete(f"{lane}-{number - 1}")
            jitter(dice, 0.003)

    threads = [threading.Thread(target=write, args=(lane,)) for lane in range(4)]
    for thread in threads:
        thread.start()
    storm(world, {writer: [("createTodo", {"id": f"w{number}"}) for number in range(_MUTATIONS)]}, readers)
    for thread in threads:
        thread.join()
    for client in (*readers, writer):
        client.pull()
        assert client.texts() == world.texts()
    for client in readers:
        check_pulls(client)
        client.close()
    writer.close()
    assert len(world.texts()) == _MUTATIONS + 4 * (_MUTATIONS * 2 - _MUTATIONS * 2 // 3)


def test_kill_9_of_the_server_loses_nothing_that_was_confirmed(own_world: World) -> None:
    """Clients work on while the server is killed again and again; everything runs exactly once."""
    world = own_world
    world.put("sum")
    dice = random.Random(SEED)
    clients = [world.open(f"u{number}", maxDelayMs=5) for number in range(3)]
    for client in clients:
        client.pull()
    for _ in range(8 if LONG else 3):
        for client in clients:
            client.mutate_many([("addTo", {"id": "sum"})] * 10)
        jitter(dice, 0.05)
        world.server.kill()
        for client in clients:
            client.mutate("addTo", id="sum")
        world.server.start()
        for client in clients:
            client.move(world.server.url)
    for settling in [client.start_settling() for client in clients]:
        finished(settling)
    expected = 3 * (8 if LONG else 3) * 11
    assert world.counts() == {"sum": expected}
    for client in clients:
        client.pull()
        assert client.read("todo/")["todo/sum"]["count"] == expected
        client.close()
