"""The community over HTTP for its tests: users with sessions, a neighbourhood with every role, a site."""

from __future__ import annotations

import itertools
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from fastapi import FastAPI
from fastapi.testclient import TestClient

from solotable import Database, connect
from solotable.systems.community.app import create_app
from solotable.systems.community.services.users import Users
from solotable.systems.community.settings import CommunitySettings
from solotable.systems.community.table import community
from solotable.systems.mail.port import MailMessage
from solotable.web import ApiKey
from tests.store.opening import Clock
from tests.systems import http
from tests.systems.http import Operation, operations

T = TypeVar("T")

SECRET = "a secret of the tests, 32 bytes or more"
OPERATOR_KEY = "key-of-the-operator-0123456789"
#: Who is in a cast; `leaving` has deleted their account, `user` has nothing to do with the neighbourhood.
ROLES = ("user", "member", "admin", "creator", "owner", "leaving", "operator")
_numbers = itertools.count()


@dataclass
class Outbox:
    """A mailer that keeps its messages."""

    messages: list[MailMessage] = field(default_factory=list)

    def send(self, message: MailMessage) -> None:
        self.messages.append(message)


@dataclass(frozen=True)
class Cast:
    """The sessions of users with one role each, and the ids of what they have."""

    tokens: dict[str, str]
    ids: dict[str, str]


@dataclass
class Api(http.Api):
    """A running community, with a clock that stands still."""

    clock: Clock = field(default_factory=Clock)
    outbox: Outbox = field(default_factory=Outbox)
    tokens: dict[str, str] = field(default_factory=dict)

    def headers_of(self, role: str | None, tenant: str) -> dict[str, str]:
        if role is None:
            return {}
        if role == "operator":
            return {"x-api-key": OPERATOR_KEY}
        return {"authorization": f"Bearer {self.tokens[role]}"}

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine on the loop of the app."""
        assert self.client.portal is not None
        found: T = self.client.portal.call(work)
        return found

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def sign_up(self, name: str, *, display_name: str = "") -> str:
        """Create a user with a session under a name, and return the DID."""
        did = f"did:plc:{name}"

        async def add() -> str:
            users = Users(self.app.state.database, now=self.now)
            await users.sign_in(did, handle=f"{name}.test", display_name=display_name or name.title())
            token: str = await self.app.state.sessions.open(did)
            return token

        self.tokens[name] = self.call(add)
        return did

    def log_in_again(self, name: str) -> None:
        """Open a session of a user whose account was deleted."""

        async def add() -> str:
            token: str = await self.app.state.sessions.open(f"did:plc:{name}")
            return token

        self.tokens[name] = self.call(add)

    def data(self, method: str, path: str, role: str | None, **more: Any) -> Any:
        """Send a request that succeeds, and return its body."""
        answer = self.ask(method, path, role, **more)
        assert answer.is_success, (method, path, answer.text)
        return answer.json() if answer.content else None

    def status(self, method: str, path: str, role: str | None, **more: Any) -> tuple[int, str]:
        """Send a request, and return its status and the code of its error."""
        answer = self.ask(method, path, role, **more)
        return answer.status_code, "" if answer.is_success else answer.json()["error"]["code"]

    def neighbourhood(self, role: str, **fields: Any) -> str:
        """Create a neighbourhood, and return its id."""
        body = {"name": f"Place {next(_numbers)}", **fields}
        found: str = self.data("POST", "/api/neighborhoods", role, json=body)["id"]
        return found

    def site(self, role: str, **fields: Any) -> str:
        """Create a site, and return its id."""
        body = {"title": f"Site {next(_numbers)}", "template": "blog", **fields}
        found: str = self.data("POST", "/api/sites", role, json=body)["site_id"]
        return found

    def joined(self, neighbourhood_id: str, role: str) -> None:
        """Make a user a member, also of a private neighbourhood, whose creator is `creator`."""
        code = self.data("POST", f"/api/neighborhoods/{neighbourhood_id}/invitations", "creator", json={})
        body = {"code": code["code"]}
        self.data("POST", f"/api/neighborhoods/{neighbourhood_id}/join", role, json=body)

    def use(self, cast: Cast) -> dict[str, str]:
        """Let the users of a cast act, and return its ids."""
        self.tokens.update(cast.tokens)
        return cast.ids

    def cast(self, **neighbourhood: Any) -> Cast:
        """Sign up new users, one for each role, who act from now on."""
        number = next(_numbers)
        dids = {}
        for role in ROLES[:-1]:
            dids[role] = self.sign_up(f"{role}{number}")
            self.tokens[role] = self.tokens[f"{role}{number}"]
        nid = self.neighbourhood("creator", **neighbourhood)
        for role in ("member", "admin"):
            self.joined(nid, role)
        self.data(
            "PUT", f"/api/neighborhoods/{nid}/members/{dids['admin']}", "creator", json={"role": "admin"}
        )
        ids = self._owned()
        self.data("DELETE", "/api/user", "leaving")
        self.log_in_again(f"leaving{number}")
        self.tokens["leaving"] = self.tokens[f"leaving{number}"]
        invited = self.data("POST", f"/api/neighborhoods/{nid}/invitations", "creator", json={})
        listed = self.data("GET", f"/api/neighborhoods/{nid}/invitations", "creator")["items"]
        ids |= {
            "any": nid,
            "neighbourhood_id": nid,
            "did": dids["member"],
            "digest": listed[0]["digest"],
            "code": invited["code"],
            "name": f"New {number}",
            "subdomain": f"new-{number}",
            "table": f"restored-{number}",
        }
        return Cast({role: self.tokens[role] for role in ROLES[:-1]}, ids)

    def _owned(self) -> dict[str, str]:
        """Create a site of the owner with a post, a build and a custom template."""
        site_id = self.site("owner")
        post = self.data("POST", f"/api/sites/{site_id}/content", "owner", json={"title": "First"})
        build = self.data("POST", f"/api/sites/{site_id}/build", "owner")
        manifest = {"name": "harbour", "version": "1.0.0", "layout": "blog"}
        body = {"manifest": manifest}
        template = self.data("POST", "/api/templates/custom", "owner", json=body)
        return {
            "site_id": site_id,
            "rkey": post["rkey"],
            "job_id": build["job_id"],
            "template_id": template["template_id"],
        }

    def body(self, operation: Operation, known: Mapping[str, str]) -> dict[str, Any]:
        if operation.path.endswith("/join"):
            return {}
        sent = super().body(operation, known)
        if operation.path == "/admin/restore":
            del sent["json"]["at"]
        return sent


def settings_of(clock: Clock, folder: Path, outbox: Outbox, **more: Any) -> CommunitySettings:
    given = {
        "secrets": [SECRET],
        "limiter_url": None,
        "storage": folder / "sites",
        "export_url": str(folder / "exports"),
        "mailer": outbox,
        "base_url": "http://testserver",
        "now": lambda: datetime.fromtimestamp(clock(), UTC),
        **more,
    }
    return CommunitySettings(**given)


def make_app(url: str, folder: Path, clock: Clock, outbox: Outbox, **settings: Any) -> FastAPI:
    operator = ApiKey.of(OPERATOR_KEY, id="op", roles=["operator"], tenants=[])
    return create_app(url, operators=[operator], settings=settings_of(clock, folder, outbox, **settings))


@contextmanager
def running(folder: Path, url: str | None = None, **settings: Any) -> Iterator[Api]:
    """Start the community on a file, or at a URL; without limits unless the settings say so."""
    clock, outbox = Clock(), Outbox()
    address = url or f"sqlite:///{folder / 'community.db'}?durability=relaxed"
    app = make_app(address, folder, clock, outbox, **settings)
    with TestClient(app, raise_server_exceptions=False, follow_redirects=False) as client:
        yield Api(app, client, address, clock=clock, outbox=outbox)


@contextmanager
def blocking(api: Api) -> Iterator[Database]:
    """Open a second connection, for jobs."""
    with connect(api.url, community, clock=api.clock) as db:
        yield db


def error_of(response: httpx2.Response) -> tuple[int, str]:
    return response.status_code, response.json()["error"]["code"]


#: For parametrize: an app that is not started, its document and its routes.
UNSTARTED = create_app("sqlite://")
DOCUMENT = UNSTARTED.openapi()
OPERATIONS = operations(UNSTARTED)
