"""Client groups: forks with old cookies, lost state, restores, recovery of older groups, ownership."""

from __future__ import annotations

from tests.waiting import wait_until

from .conftest import World
from .server import mutation
from .test_wire import order


def test_a_new_group_with_an_old_cookie_goes_on(world: World) -> None:
    """New mutator names make a new group that begins with the snapshot, and the cookie, of the old one."""
    world.put("a", "one")
    with world.open(name=f"{world.tenant}/fork") as old:
        old.pull()
        old.mutate("createTodo", id="b")
        old.settle()
        old.persist()
    with world.open(name=f"{world.tenant}/fork", mutators="newer") as new:
        assert new.group != old.group
        world.put("c")
        new.mutate("createTodo", id="d")
        new.settle()
        pulls = new.log("/pull")
        assert pulls[0]["body"]["cookie"] is not None
        assert "error" not in pulls[0]["reply"]
        assert sorted(new.texts()) == ["a", "b", "c", "d"]
        assert not [event for event in new.events() if "NotFound" in event]


def test_an_unknown_client_that_has_pushed_before_gets_client_state_not_found(world: World) -> None:
    assert world.push(mutation(2, "createTodo", id="a")).json() == {"error": "ClientStateNotFound"}
    assert world.texts() == {}
    # A new client of an unknown group begins with 1, whatever its cookie.
    assert "error" not in world.push(mutation(1, "createTodo", id="a")).json()


def test_a_server_that_lost_everything_does_not_loop(own_world: World) -> None:
    """The client reloads once: its new group has the old cookie and gets everything that there is."""
    world = own_world
    with world.open(name="lost") as old:
        old.mutate("createTodo", id="a")
        old.settle()
        old.persist()
        world.server.kill()
        world.server.replace_with(None)
        world.server.start()
        world.put("new")
        old.move(world.server.url)
        old.mutate("createTodo", id="b")
        wait_until(lambda: old.push() and "ClientStateNotFound" in old.events())
    with world.open(name="lost", mutators="newer") as new:
        new.pull()
        assert new.texts() == {"new": ""}
        new.mutate("createTodo", id="c")
        new.settle()
        assert new.events() == []
    assert sorted(world.texts()) == ["c", "new"]


def test_after_a_restore_from_a_backup_no_client_stands_still(own_world: World) -> None:
    """Cookies are ahead of the server: it replies with everything, and an order above the client's."""
    world = own_world
    with world.open() as reader, world.open("ben") as idle:
        reader.mutate("createTodo", id="before")
        reader.settle()
        idle.pull()
        world.server.kill()
        copy = world.server.copy()
        world.server.start()
        for client in (reader, idle):
            client.move(world.server.url)
        for number in range(5):
            world.put(f"lost{number}")
        assert idle.pull() == "done"
        assert len(idle.texts()) == 6
        ahead = order(idle.log("/pull")[-1]["reply"])
        world.server.kill()
        world.server.replace_with(copy)
        world.server.start()
        world.server.reset()
        for client in (reader, idle):
            client.move(world.server.url)
        for number in range(3):
            world.put(f"new{number}")
        assert idle.pull() == "done"
        assert sorted(idle.texts()) == ["before", "new0", "new1", "new2"]
        assert order(idle.log("/pull")[-1]["reply"]) > ahead
        idle.mutate("createTodo", id="after")
        idle.settle()
        reader.settle()
        assert sorted(reader.texts()) == ["after", "before", "new0", "new1", "new2"]


def test_a_client_that_is_ahead_of_a_restore_can_write_again(own_world: World) -> None:
    """Its numbers are ahead too: those that the backup lacks were confirmed, and are gone."""
    world = own_world
    with world.open(name="ahead") as client:
        client.mutate("createTodo", id="a")
        client.settle()
        world.server.kill()
        copy = world.server.copy()
        world.server.start()
        client.move(world.server.url)
        client.mutate("createTodo", id="b")
        client.mutate("createTodo", id="c")
        client.settle()
        client.persist()
        world.server.kill()
        world.server.replace_with(copy)
        world.server.start()
        world.server.reset()
        client.move(world.server.url)
        client.mutate("createTodo", id="d")

        def ended() -> bool:
            client.push()
            client.pull()
            return client.pending() == 0 or "ClientStateNotFound" in client.events()

        wait_until(ended)
    with world.open(name="ahead", mutators="newer") as after:
        after.mutate("createTodo", id="e")
        after.settle()
        assert {"a", "e"} <= set(after.texts()) == set(world.texts()) <= {"a", "d", "e"}


def test_a_closed_tab_is_pushed_by_another_tab(world: World) -> None:
    """A push may carry the mutations of several clients of the group."""
    name = f"{world.tenant}/tabs"
    with world.open(name=name, network="offline") as first:
        first.mutate_many([("createTodo", {"id": "a"}), ("addTo", {"id": "a"})])
        first.persist()
    with world.open(name=name) as second:
        assert second.group == first.group
        second.mutate("addTo", id="a")
        second.settle()
        wait_until(lambda: world.counts() == {"a": 2}, seen=world.counts)


def test_a_newer_group_sends_what_an_older_one_left(world: World) -> None:
    """Mutation recovery: another group, the current credential, the old ids."""
    name = f"{world.tenant}/recovered"
    world.put("n")
    with world.open(name=name, network="offline") as old:
        old.mutate_many([("createTodo", {"id": f"old{number}"}) for number in range(3)])
        old.mutate("addTo", id="n")
        old.persist()
    with world.open(name=name, mutators="newer", recovery=True, pullInOpen=True) as new:
        assert new.group != old.group
        wait_until(lambda: {"old0", "old1", "old2"} <= set(world.texts()), seen=world.texts)
        wait_until(lambda: new.pull() == "done" and "old2" in new.texts())
        groups = {each["body"]["clientGroupID"] for each in new.log("/push")}
        assert old.group in groups
    assert world.counts()["n"] == 1


def test_a_group_belongs_to_its_user(world: World) -> None:
    """Another user of the tenant can neither push nor pull as a group of the first one."""
    assert world.push(mutation(1, "createTodo", id="a")).status_code == 200
    foreign = world.push(mutation(2, "createTodo", id="b"), user="eve")
    assert foreign.status_code != 200 or "error" in foreign.json()
    seen = world.pull(user="eve")
    assert seen.status_code != 200 or "error" in seen.json()
    assert list(world.texts()) == ["a"]
    assert world.pull().json()["lastMutationIDChanges"] == {"client000000000001": 1}
