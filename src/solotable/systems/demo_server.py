"""The demo program of a system: new keys, a temporary folder, a greeting, and a server."""

from __future__ import annotations

import argparse
import contextlib
import secrets
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from solotable.pages.bind import PortInUse, bind_port
from solotable.web import ApiKey, Auth

if TYPE_CHECKING:
    import uvicorn


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One key of a demo, with its name, role and tenant."""

    name: str
    role: str
    #: None for all tenants.
    tenant: str | None
    key: str

    def api_key(self) -> ApiKey:
        """Return the record that the app authenticates with."""
        tenants = None if self.tenant is None else [self.tenant]
        email = f"{self.name}@{self.tenant or 'demo'}.example"
        return ApiKey.of(
            self.key, id=f"demo-{self.name}", roles=[self.role], tenants=tenants, name=self.name, email=email
        )


def make_credentials(users: Sequence[tuple[str, str, str | None]]) -> list[Credential]:
    """Return new keys for users, each a name, a role and a tenant."""
    return [
        Credential(name=name, role=role, tenant=tenant, key=f"{name}-{secrets.token_urlsafe(18)}")
        for name, role, tenant in users
    ]


def make_auth(keys: Sequence[Credential]) -> Auth:
    """Return the Auth of an app that accepts these keys."""
    return Auth(api_keys=[each.api_key() for each in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """The demo of one system: `Demo(...).run(argv)` is its program."""

    name: str
    summary: str
    port: int
    #: Writes the data at a URL, and returns a summary to print.
    prepare: Callable[[str], str]
    credentials: Callable[[], list[Credential]]
    greeting: Callable[[Sequence[Credential], int], str]
    #: From a URL, a folder, the keys, and the addresses of trusted proxies.
    server: Callable[[str, Path, Sequence[Credential], Sequence[str]], uvicorn.Server]

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Write the data, print the greeting, and serve until Ctrl-C."""
        given = self._arguments(argv)
        try:
            socket = None if given.seed_only else bind_port(given.port)
        except PortInUse as error:
            sys.stderr.write(f"{error}\n")
            return 1
        with self._folder(given.folder) as folder:
            url = f"sqlite:///{(folder / f'{self.name}.db').absolute()}"
            summary = self.prepare(url)
            keys = self.credentials()
            sys.stdout.write(f"{summary}{self.greeting(keys, given.port)}\n")
            if socket is None:
                return 0
            sys.stdout.write("\nPress Ctrl-C to stop.\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                self.server(url, folder, keys, given.trusted_proxy).run(sockets=[socket])
        return 0

    def port_of(self, argv: Sequence[str] | None) -> int:
        """Return the port that the arguments name, for a server that has to know its address."""
        port: int = self._arguments(argv).port
        return port

    def _arguments(self, argv: Sequence[str] | None) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=f"solotable.systems.{self.name}.demo", description=self.summary)
        parser.add_argument(
            "--folder", type=Path, help="where to store the data (default: a temporary folder)"
        )
        parser.add_argument("--port", type=int, default=self.port, help="default: %(default)s")
        parser.add_argument(
            "--seed-only", action="store_true", help="write the data, print the greeting, and exit"
        )
        parser.add_argument(
            "--trusted-proxy",
            action="append",
            default=[],
            metavar="ADDRESS",
            help="trust X-Forwarded-For, -Host and -Proto from this address or network (default: none)",
        )
        return parser.parse_args(argv)

    @contextmanager
    def _folder(self, given: Path | None) -> Iterator[Path]:
        if given is not None:
            given.mkdir(parents=True, exist_ok=True)
            yield given
            return
        with tempfile.TemporaryDirectory(prefix=f"solotable-{self.name}-") as name:
            yield Path(name)
