"""The routes of the Replicache protocol: statuses, bodies, credentials and pokes."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Iterator
from typing import Any

import pytest
from fastapi import FastAPI, HTTPException
from fastapi.testclient import TestClient

from solotable import AsyncDatabase, Database
from solotable._connect import to_async
from solotable.sync import Sync
from solotable.web import ApiKey, Auth, install
from solotable.web.replicache import replicache_router
from solotable.web.replicache.body import _beginning
from solotable.web.replicache.events import Tickets, poke_events
from tests.store.syncing import Todo, mutators, synced
from tests.waiting import HANG_SECONDS

KEYS = {"ann": "a" * 30, "bob": "b" * 30, "root": "r" * 30}
ORIGIN = "https://app.example.org"


@pytest.fixture
def db() -> Iterator[Database]:
    with synced.open("sqlite://") as opened:
        yield opened


@pytest.fixture
def client(db: Database) -> Iterator[TestClient]:
    with serving(Sync(db, mutators=mutators, poll_seconds=0, budget_seconds=HANG_SECONDS)) as found:
        yield found


def serving(sync: Sync, **options: Any) -> TestClient:
    app = FastAPI()
    keys = [
        ApiKey.of(KEYS["ann"], id="ann", roles=["USER"], tenants=["acme"]),
        ApiKey.of(KEYS["bob"], id="bob", roles=["USER"], tenants=["other"]),
        ApiKey.of(KEYS["root"], id="root", roles=["USER"], tenants=["acme", "other"]),
    ]
    install(app, auth=Auth(api_keys=keys), cors_origins=[ORIGIN])
    app.include_router(replicache_router(sync, **options))
    return TestClient(app)


def mutation(number: int, name: str = "put", **args: Any) -> dict[str, Any]:
    return {"id": number, "clientID": "c1", "name": name, "args": args, "timestamp": 943.8}


def push(*mutations: dict[str, Any], **more: Any) -> dict[str, Any]:
    own = {"profileID": "p", "clientGroupID": "g1", "mutations": list(mutations)}
    return {**own, "pushVersion": 1, "schemaVersion": "1", **more}


PULL = {"pullVersion": 1, "clientGroupID": "g1", "profileID": "p", "schemaVersion": "1", "cookie": None}


def key_of(user: str) -> dict[str, str]:
    return {"x-api-key": KEYS[user]}


def test_a_push_and_a_pull_answer_with_200(client: TestClient) -> None:
    pushed = client.post("/replicache/push", json=push(mutation(1, id="a")), headers=key_of("ann"))
    assert (pushed.status_code, pushed.json()) == (200, {})
    pulled = client.post("/replicache/pull", json=PULL, headers=key_of("ann"))
    assert pulled.status_code == 200
    assert pulled.headers["content-encoding"] == "gzip"
    assert pulled.json()["lastMutationIDChanges"] == {"c1": 1}
    assert set(pulled.json()["cookie"]) == {"order", "base", "spaces"}
    plain = client.post(
        "/replicache/pull", json=PULL, headers={**key_of("ann"), "accept-encoding": "identity"}
    )
    assert plain.json() == pulled.json()
    assert "content-encoding" not in plain.headers


def test_errors_of_the_protocol_are_bodies_with_200(client: TestClient) -> None:
    for path, body, error in (
        ("push", push(pushVersion=0), "VersionNotSupported"),
        ("pull", {**PULL, "pullVersion": 0}, "VersionNotSupported"),
        ("push", push(mutation(5, id="a")), "ClientStateNotFound"),
    ):
        answer = client.post(f"/replicache/{path}", json=body, headers=key_of("ann"))
        assert (answer.status_code, answer.json()["error"]) == (200, error)


def test_a_credential_decides_the_tenant(client: TestClient) -> None:
    client.post("/replicache/push", json=push(mutation(1, id="a")), headers=key_of("ann"))
    other = client.post("/replicache/pull", json={**PULL, "clientGroupID": "g2"}, headers=key_of("bob"))
    assert other.json()["patch"] == [{"op": "clear"}]
    for headers in ({}, {"authorization": ""}, {"authorization": "Bearer nonsense"}):
        assert client.post("/replicache/pull", json=PULL, headers=headers).status_code == 401
    assert client.post("/replicache/pull?tenant=acme", json=PULL, headers=key_of("bob")).status_code == 403
    assert client.post("/replicache/pull", json=PULL, headers=key_of("root")).status_code == 400
    body = {**PULL, "clientGroupID": "g3"}
    chosen = client.post("/replicache/pull?tenant=acme", json=body, headers=key_of("root"))
    assert [op.get("key") for op in chosen.json()["patch"]] == [None, "todo/a"]


def test_named_origins_may_send_the_headers_of_the_client(client: TestClient) -> None:
    asked = {
        "access-control-request-method": "POST",
        "access-control-request-headers": "authorization,content-type,x-replicache-requestid",
    }
    allowed = client.options("/replicache/push", headers={"origin": ORIGIN, **asked})
    assert (allowed.status_code, allowed.headers["access-control-allow-origin"]) == (200, ORIGIN)
    denied = client.options("/replicache/push", headers={"origin": "https://evil.example.org", **asked})
    assert denied.status_code == 400


def test_bodies_may_be_packed(client: TestClient) -> None:
    packed = gzip.compress(json.dumps(push(mutation(1, id="a"))).encode())
    headers = {**key_of("ann"), "content-encoding": "gzip"}
    assert client.post("/replicache/push", content=packed, headers=headers).json() == {}
    assert client.post("/replicache/push", content=b"nonsense", headers=headers).status_code == 400
    assert client.post("/replicache/push", content=b"{", headers=key_of("ann")).status_code == 400
    odd = {**key_of("ann"), "content-encoding": "br"}
    assert client.post("/replicache/push", content=packed, headers=odd).status_code == 415


@pytest.mark.parametrize("packed", [False, True])
def test_a_queue_that_is_too_large_arrives_in_parts(db: Database, packed: bool) -> None:
    """A 413 would be repeated for ever: the beginning of the body is run, and the rest is asked for."""
    text = "x" * 2_000
    queue = [mutation(number, id=str(number), text=text) for number in range(1, 41)]
    sync = Sync(db, mutators=mutators, schema_versions={"1"}, poll_seconds=0, budget_seconds=HANG_SECONDS)
    with serving(sync, max_body_bytes=50_000) as client:
        answers = []
        while queue:
            body = json.dumps(push(*queue)).encode()
            headers = {**key_of("ann"), **({"content-encoding": "gzip"} if packed else {})}
            sent = client.post(
                "/replicache/push", content=gzip.compress(body) if packed else body, headers=headers
            )
            answers.append(sent.status_code)
            pulled = client.post("/replicache/pull", json=PULL, headers=key_of("ann")).json()
            queue = queue[pulled["lastMutationIDChanges"]["c1"] - queue[0]["id"] + 1 :]
    assert answers == [503, 200]
    assert len(list(db.tenant("acme").all(Todo.listed()))) == 40


def test_a_body_of_50_mb_is_read_and_not_kept(client: TestClient) -> None:
    body = b'{"clientGroupID":"g1","mutations":[' + json.dumps(mutation(1, id="a")).encode()
    body += b',"' + b"x" * 50_000_000 + b'"]}'
    answer = client.post("/replicache/push", content=body, headers=key_of("ann"))
    assert answer.status_code == 503
    pulled = client.post("/replicache/pull", json=PULL, headers=key_of("ann")).json()
    assert pulled["lastMutationIDChanges"] == {"c1": 1}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", {}),
        ("[1,2", {}),
        (
            '{"clientGroupID" : "g" , "mutations" : [ {"id":1} , {"id"',
            {"clientGroupID": "g", "mutations": [{"id": 1}]},
        ),
        ('{"mutations":[],"clientGroupID":"g', {"mutations": []}),
        ('{"mutations":7,"x', {"mutations": 7}),
        ('{"a":[1,2],"mutations":[{}', {"a": [1, 2], "mutations": [{}]}),
    ],
)
def test_the_beginning_of_a_body(text: str, found: dict[str, Any]) -> None:
    assert _beginning(text) == {"pushVersion": 1, **found}


def test_backpressure_is_a_503(client: TestClient) -> None:
    client.post("/replicache/push", json=push(mutation(1, id="a")), headers=key_of("ann"))
    late = client.post("/replicache/push", json=push(mutation(9, id="a")), headers=key_of("ann"))
    assert late.status_code == 503
    assert late.json()["title"] == "Temporarily unavailable"


def test_pokes_are_events_that_come_together(db: Database) -> None:
    """One event for several commits, and a comment while there are none."""
    sync = Sync(db, mutators=mutators, poll_seconds=0, budget_seconds=HANG_SECONDS)

    async def listen() -> list[bytes]:
        events = poke_events(sync, "acme", "ann", pause_seconds=0.0, heartbeat_seconds=0.01)
        seen = [await anext(events), await anext(events)]
        for number in (1, 2):
            await asyncio.to_thread(sync.push, "acme", "ann", push(mutation(number, id="a")))
        while (event := await anext(events)) == b": heartbeat\n\n":
            pass
        seen += [event, await anext(events)]
        await events.aclose()
        return seen

    first, quiet, poke, after = asyncio.run(listen())
    assert first.endswith(b"data: poke\n\n")
    assert (quiet, poke, after) == (b": heartbeat\n\n", b"data: poke\n\n", b": heartbeat\n\n")


def test_a_poke_needs_a_credential_or_a_ticket(client: TestClient) -> None:
    assert client.get("/replicache/poke").status_code == 401
    assert client.get("/replicache/poke?ticket=nonsense").status_code == 401
    ticket = client.post("/replicache/ticket", headers=key_of("ann")).json()["ticket"]
    assert isinstance(ticket, str)


def test_a_ticket_is_valid_for_a_minute() -> None:
    now = 1000.0
    tickets = Tickets([b"s" * 32], lambda: now)
    ticket = tickets.issue("acme", "ann")
    assert tickets.verify(ticket) == ("acme", "ann")
    for wrong in (
        ticket[:-4],
        "x" + ticket,
        "é",
        "A" * 3000,
        Tickets([b"t" * 32], lambda: now).issue("acme", "ann"),
    ):
        with pytest.raises(HTTPException):
            tickets.verify(wrong)
    now += 61
    with pytest.raises(HTTPException):
        tickets.verify(ticket)


def test_an_async_database_is_served_as_well(db: Database) -> None:
    """Requests of an asyncio engine run on the loop of the server; a threaded one is called directly."""
    engine = to_async(db.engine)
    opened = AsyncDatabase(engine, db.scope)
    with serving(Sync(opened, mutators=mutators, poll_seconds=0, budget_seconds=HANG_SECONDS)) as client:
        body = push(mutation(1, "asyncPut", id="a", text="A"))
        assert client.post("/replicache/push", json=body, headers=key_of("ann")).json() == {}
    assert db.tenant("acme").require(Todo, todo_id="a").text == "A"


@pytest.mark.parametrize(
    "change",
    [
        {"order": 10**6, "spaces": {"": [10**6, "EPOCH"]}},
        {"order": 2**53 - 2, "base": 2**52 - 1, "spaces": {"": [2**52 - 1, "EPOCH"]}},
        {"order": 1, "spaces": {"": [1, "\ud800"]}},
        {"order": 1, "spaces": {"\ud800": [1, "EPOCH"]}},
        {"order": "\ud8000000000000000001", "prefix": "\ud800"},
        {"next": ["", 10**9, "TODO#a"]},
        {"next": ["", 0, "\ud800"]},
        {"next": ["", 1, "TODO#\0"]},
        {"recent": {"c1": [2**51, 2**51]}},
        {"recent": {"c1": "now"}},
        {"recent": 3},
    ],
)
def test_a_forged_cookie_gets_the_view_of_its_own_tenant(
    client: TestClient, db: Database, change: dict[str, Any]
) -> None:
    db.tenant("other").put(Todo(todo_id="secret"))
    client.post("/replicache/push", json=push(mutation(1, id="a")), headers=key_of("ann"))
    cookie = client.post("/replicache/pull", json=PULL, headers=key_of("ann")).json()["cookie"]
    # Without a change, the server would answer that there is none.
    db.tenant("acme").put(Todo(todo_id="b"))
    forged = json.dumps({**PULL, "cookie": {**cookie, **change}}).replace("EPOCH", cookie["spaces"][""][1])
    for body, user in ((forged, "ann"), (forged, "bob"), (json.dumps({**PULL, "cookie": cookie}), "bob")):
        answer = client.post("/replicache/pull", content=body, headers=key_of(user))
        assert answer.status_code == 200
        keys = {op["key"] for op in answer.json()["patch"] if op["op"] == "put"}
        assert ("todo/b" in keys, "todo/secret" in keys) == ((user == "ann"), (user == "bob"))
        assert answer.json()["lastMutationIDChanges"].keys() <= ({"c1"} if user == "ann" else set())


def test_a_foreign_group_is_neither_pushed_nor_pulled(client: TestClient) -> None:
    """The client then starts a new group; any other answer would be repeated for ever."""
    client.post("/replicache/push", json=push(mutation(1, id="a")), headers=key_of("ann"))
    thief = {**key_of("root"), "x-tenant-id": "acme"}
    stolen = push({**mutation(1, id="stolen"), "clientID": "c9"})
    for path, body in (("push", push(mutation(2, id="stolen"))), ("push", stolen), ("pull", PULL)):
        answer = client.post(f"/replicache/{path}", json=body, headers=thief)
        assert (answer.status_code, answer.json()) == (200, {"error": "ClientStateNotFound"})
    mine = client.post("/replicache/pull", json=PULL, headers=key_of("ann")).json()
    assert mine["lastMutationIDChanges"] == {"c1": 1}
    assert "stolen" not in str(mine)
