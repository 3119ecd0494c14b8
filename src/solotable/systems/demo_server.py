"""What every system's demo has: keys that are made anew, a folder that goes, a port, a greeting, a server."""

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

from solotable.web import ApiKey, Auth
from solotable.web.bind import PortInUse, listening

if TYPE_CHECKING:
    import uvicorn


@dataclass(frozen=True, slots=True, kw_only=True)
class Credential:
    """One key of a demo: whom it stands for, and the key itself."""

    name: str
    role: str
    #: None reaches all.
    tenant: str | None
    key: str

    def record(self) -> ApiKey:
        """Return it as the application knows it."""
        held = None if self.tenant is None else [self.tenant]
        email = f"{self.name}@{self.tenant or 'demo'}.example"
        return ApiKey.of(
            self.key, id=f"demo-{self.name}", roles=[self.role], tenants=held, name=self.name, email=email
        )


def credentials_of(people: Sequence[tuple[str, str, str | None]]) -> list[Credential]:
    """Return new keys for people, each a name, a role and a tenant."""
    return [
        Credential(name=name, role=role, tenant=tenant, key=f"{name}-{secrets.token_urlsafe(18)}")
        for name, role, tenant in people
    ]


def auth_of(keys: Sequence[Credential]) -> Auth:
    """Return the authentication of an app that knows these keys."""
    return Auth(api_keys=[each.record() for each in keys])


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """One system's demo: `Demo(...).run(argv)` is its program."""

    name: str
    summary: str
    port: int
    #: Makes the data at a URL, and says what there is to say about it.
    prepare: Callable[[str], str]
    credentials: Callable[[], list[Credential]]
    greeting: Callable[[Sequence[Credential], int], str]
    #: Of a URL, a folder, the keys, and the addresses of proxies that are trusted.
    server: Callable[[str, Path, Sequence[Credential], Sequence[str]], uvicorn.Server]

    def run(self, argv: Sequence[str] | None = None) -> int:
        """Make the data, greet, and serve until somebody stops it."""
        given = self._arguments(argv)
        try:
            port = None if given.seed_only else listening(given.port)
        except PortInUse as refused:
            sys.stderr.write(f"{refused}\n")
            return 1
        with self._folder(given.folder) as folder:
            url = f"sqlite:///{(folder / f'{self.name}.db').absolute()}"
            told = self.prepare(url)
            keys = self.credentials()
            sys.stdout.write(f"{told}{self.greeting(keys, given.port)}\n")
            if port is None:
                return 0
            sys.stdout.write("\nCtrl-C stops it.\n")
            sys.stdout.flush()
            with contextlib.suppress(KeyboardInterrupt):
                self.server(url, folder, keys, given.trusted_proxy).run(sockets=[port])
        return 0

    def _arguments(self, argv: Sequence[str] | None) -> argparse.Namespace:
        parser = argparse.ArgumentParser(prog=f"solotable.systems.{self.name}.demo", description=self.summary)
        parser.add_argument("--folder", type=Path, help="keep the data here (default: a temporary folder)")
        parser.add_argument("--port", type=int, default=self.port)
        parser.add_argument(
            "--seed-only", action="store_true", help="make the data, say what there is, and end"
        )
        parser.add_argument(
            "--trusted-proxy",
            action="append",
            default=[],
            metavar="ADDRESS",
            help="believe X-Forwarded-For, -Host and -Proto from this address or network (default: none)",
        )
        return parser.parse_args(argv)

    @contextmanager
    def _folder(self, given: Path | None) -> Iterator[Path]:
        if given is not None:
            given.mkdir(parents=True, exist_ok=True)
            yield given
            return
        with tempfile.TemporaryDirectory(prefix=f"solotable-{self.name}-") as made:
            yield Path(made)
