"""A small app with one entity, for the tests of solotable.web."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request, Response
from fastapi.testclient import TestClient
from pydantic import BaseModel

from solotable import ANY, FROM_SCOPE, Entity, Key, Outbox, Query, Table, Version, pattern
from solotable._store import AsyncDatabase
from solotable.web import (
    ApiKey,
    Auth,
    CurrentPrincipal,
    HostStore,
    IfMatch,
    OptionalPrincipal,
    Page,
    Paging,
    TenantStore,
    etag,
    install,
    lifespan,
    requires,
)

shop = Table("Shop", tenant="tenant_id", ttl="expires_at", stream=True)

EDITOR_KEY = "editor-of-acme-0123456789"
BOTH_KEY = "editor-of-both-0123456789"
ADMIN_KEY = "admin-of-all-0123456789"
POWERLESS_KEY = "powerless-0123456789abcdef"
KEYS = [
    ApiKey.of(EDITOR_KEY, id="k-acme", roles=["EDITOR"], tenants=["acme"], name="Ann", email="a@x.org"),
    ApiKey.of(BOTH_KEY, id="k-both", roles=["EDITOR"], tenants=["acme", "zeta"]),
    ApiKey.of(ADMIN_KEY, id="k-admin", roles=["ADMIN"], tenants=None),
    ApiKey.of(POWERLESS_KEY, id="k-powerless", roles=[], tenants=[]),
]


class Thing(Entity, table=shop):
    """A stored entity."""

    key = Key("TENANT#{tenant_id}", "THING#{thing_id}")
    events = Outbox(title="name")

    tenant_id: str = FROM_SCOPE
    thing_id: str
    name: str
    version: Annotated[int, Version()] = 0

    @pattern
    @classmethod
    def every(cls) -> Query[Thing]:
        """All things of a tenant."""
        return cls.key.query()


class NewThing(BaseModel):
    """A request body."""

    thing_id: str
    name: str


async def resolve(database: AsyncDatabase, host: str) -> str | None:
    """Return the owner of the only host."""
    return {"shop.example": "acme", "xn--mnchen-3ya.example": "zeta"}.get(host)


def make(**settings: Any) -> FastAPI:
    """Return the app, installed with the usual settings and these."""
    app = FastAPI(lifespan=lifespan("sqlite://", shop))
    usual: dict[str, Any] = {"auth": Auth(api_keys=KEYS), "resolve_host": resolve}
    install(app, **(usual | settings))

    @app.post("/things", status_code=201, dependencies=[Depends(requires("EDITOR", "ADMIN"))])
    async def create(new: NewThing, store: TenantStore, response: Response) -> Thing:
        made = await store.create(Thing(**new.model_dump()))
        response.headers["etag"] = etag(made.version)
        return made

    @app.get("/things")
    async def listed(store: TenantStore, paging: Paging) -> Page[Thing]:
        return Page.of(await store.page(Thing.every(), limit=paging.limit, cursor=paging.cursor))

    @app.get("/things/{thing_id}")
    async def one(thing_id: str, store: TenantStore) -> Thing:
        return await store.require(Thing, thing_id=thing_id)

    @app.put("/things/{thing_id}")
    async def change(thing_id: str, new: NewThing, store: TenantStore, expected: IfMatch) -> Thing:
        version = ANY if expected is None else expected
        return await store.update(Thing, thing_id=thing_id, set={"name": new.name}, version=version)

    @app.get("/public/{thing_id}")
    async def public(thing_id: str, store: HostStore) -> Thing:
        return await store.require(Thing, thing_id=thing_id)

    @app.get("/me")
    async def me(caller: CurrentPrincipal) -> dict[str, Any]:
        return {"id": caller.id, "kind": caller.kind, "roles": sorted(caller.roles)}

    @app.get("/visitor")
    async def visitor(caller: OptionalPrincipal) -> str:
        return caller.kind

    @app.post("/raw")
    async def raw(request: Request) -> int:
        return len(await request.body())

    return app


@contextmanager
def client(app: FastAPI, key: str | None = None, **headers: str) -> Iterator[TestClient]:
    """Yield a client of the running app."""
    given = headers | ({} if key is None else {"x-api-key": key})
    with TestClient(app, headers=given, base_url="http://shop.example") as opened:
        yield opened
