"""What goes over the wire: fields, statuses, errors, versions, credentials, cookies (sections 1 and 2)."""

from __future__ import annotations

from typing import Any

import httpx2
import pytest

from tests.waiting import HANG_SECONDS

from .conftest import World
from .server import mutation, token


def test_the_client_sends_what_the_server_expects(world: World) -> None:
    with world.open() as client:
        client.mutate("createTodo", id="a", text="first")
        client.settle()
        (push, *_) = client.log("/push")
        body = push["body"]
        assert body["pushVersion"] == 1
        assert body["clientGroupID"] == client.group
        assert len(client.group) == len(client.id) == 18
        assert body["mutations"][0] | {"timestamp": 0.5} == mutation(
            1, "createTodo", client.id, id="a", text="first"
        ) | {"timestamp": 0.5}
        assert isinstance(body["mutations"][0]["timestamp"], float | int)
        assert push["headers"]["authorization"] == world.auth()
        assert push["headers"]["x-replicache-requestid"].startswith(client.id)
        assert push["status"] == 200
    assert world.texts() == {"a": "first"}


def test_a_pull_has_a_cookie_the_changed_clients_and_a_patch(world: World) -> None:
    world.put("a", "one")
    first = world.pull().json()
    assert set(first) == {"cookie", "lastMutationIDChanges", "patch"}
    assert first["patch"][0] == {"op": "clear"}
    assert applied(first) == {"todo/a": {"todo_id": "a", "text": "one", "count": 0}}
    world.delete("a")
    second = world.pull(first["cookie"]).json()
    assert second["patch"] == [{"op": "del", "key": "todo/a"}]
    assert order(second) > order(first)


@pytest.mark.parametrize("status", [204, 403, 413, 429, 500, 503])
def test_only_200_is_success_and_everything_else_is_sent_again(world: World, status: int) -> None:
    with world.open(network=status) as client:
        client.mutate("createTodo", id="a")
        assert client.push().startswith("failed") or client.pending() == 1
        client.network("online")
        client.settle()
    assert list(world.texts()) == ["a"]


def test_an_expired_credential_is_renewed(world: World) -> None:
    """401 makes the client ask for a credential, at most eight times for a request."""
    with world.open(auth="Bearer expired") as client:
        client.mutate("createTodo", id="a")
        client.pull()
        asked = client.events().count("getAuth")
        assert asked >= 1
        client.set_auth(after_401=world.auth())
        client.settle()
        assert {each["status"] for each in client.log("/push")} <= {200, 401, None}
    assert list(world.texts()) == ["a"]


@pytest.mark.parametrize("path", ["push", "pull", "poke"])
@pytest.mark.parametrize("auth", [None, "", "Bearer x", "Basic YTpi"])
def test_nothing_answers_without_a_credential(world: World, path: str, auth: str | None) -> None:
    headers = {} if auth is None else {"authorization": auth}
    url = f"{world.server.url}/replicache/{path}"
    method = "GET" if path == "poke" else "POST"
    body = None if path == "poke" else {"pullVersion": 1}
    assert world.server.http.request(method, url, json=body, headers=headers).status_code == 401


def test_an_unknown_schema_version_asks_for_new_code(world: World) -> None:
    with world.open(schemaVersion="99") as client:
        client.mutate("createTodo", id="a")
        client.push()
        client.pull()
        assert "UpdateNeeded VersionNotSupported schema" in client.events()
    assert world.texts() == {}


def test_version_0_is_not_supported(world: World) -> None:
    old: dict[str, Any] = {"pushVersion": 0, "clientID": "client000000000001"}
    assert world.push(mutation(1, "createTodo", id="a"), **old).json() == {
        "error": "VersionNotSupported",
        "versionType": "push",
    }
    reply = world.pull(pullVersion=0, clientID="client000000000001", lastMutationID=0)
    assert (reply.status_code, reply.json()["versionType"]) == (200, "pull")


def test_a_browser_of_another_origin_may_ask_first(world: World) -> None:
    headers = {
        "origin": "https://app.example",
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-replicache-requestid",
    }
    reply = world.server.http.options(f"{world.server.url}/replicache/push", headers=headers)
    assert reply.is_success
    allowed = reply.headers["access-control-allow-headers"].lower()
    for name in ("authorization", "content-type", "x-replicache-requestid"):
        assert name in allowed


@pytest.mark.parametrize(
    "cookie",
    [
        *("text", 7, 10**15, -1, 1.5, True, [], {}),
        *(
            {"order": "x"},
            {"order": None},
            {"order": 3},
            {"order": 2, "spaces": 5},
            {"order": 1, "epoch": "none"},
        ),
        {"order": 10**14, "v": "NaN", "spaces": {"../../other": -1}},
    ],
    ids=str,
)
def test_a_damaged_cookie_gets_everything(world: World, cookie: Any) -> None:
    """A cookie that this server did not make is a full pull, with an order that the client accepts."""
    world.put("a", "one")
    reply = world.pull(cookie)
    assert reply.status_code == 200, reply.text
    found = reply.json()
    assert found["patch"][0] == {"op": "clear"}
    assert list(applied(found)) == ["todo/a"]
    if isinstance(cookie, dict) and isinstance(cookie.get("order"), int):
        assert order(found) > cookie["order"]
    elif isinstance(cookie, int | float) and not isinstance(cookie, bool):
        assert order(found) > cookie
    assert world.pull(found["cookie"]).json()["patch"] == []


def test_a_cookie_of_another_tenant_shows_nothing_of_it(world: World) -> None:
    world.server.put("secret", "of another tenant", tenant="other")
    foreign = world.server.pull(auth=token("ann", "other"), clientGroupID="group-of-the-other").json()[
        "cookie"
    ]
    world.put("a", "mine")
    found = world.pull(foreign).json()
    assert found["patch"][0] == {"op": "clear"}
    assert list(applied(found)) == ["todo/a"]


def test_two_tenants_may_have_the_same_ids(world: World) -> None:
    world.put("a", "mine")
    world.server.put("a", "theirs", tenant=f"{world.tenant}-b")
    with world.open() as mine, world.open(auth=token("ann", f"{world.tenant}-b")) as theirs:
        mine.pull()
        theirs.pull()
        theirs.mutate("deleteTodo", id="a")
        theirs.settle()
        mine.pull()
        assert mine.texts() == {"a": "mine"}
        assert theirs.texts() == {}


def test_every_commit_pokes_the_pusher_too(world: World) -> None:
    """A poke is an empty event, also to the client that pushed: no pull follows a push."""
    headers = {"authorization": world.auth()}
    with (
        httpx2.Client(timeout=HANG_SECONDS) as http,
        http.stream("GET", f"{world.server.url}/replicache/poke", headers=headers) as stream,
        world.open() as client,
    ):
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        next(lines)  # it is connected
        client.mutate("createTodo", id="a")
        assert next(line for line in lines if line.startswith("data:")) is not None
        assert client.log("/pull") == []
        world.put("b")
        assert next(line for line in lines if line.startswith("data:")) is not None


def order(reply: Any) -> float:
    """Return the order of a cookie."""
    cookie = reply["cookie"]
    return float(cookie["order"] if isinstance(cookie, dict) else cookie)


def applied(reply: Any) -> dict[str, Any]:
    """Return the keys and values of a client after a whole pull; a key may occur twice in the patch."""
    found: dict[str, Any] = {}
    for each in reply["patch"]:
        match each["op"]:
            case "clear":
                found.clear()
            case "put":
                found[each["key"]] = each["value"]
            case "del":
                found.pop(each["key"], None)
    return found
