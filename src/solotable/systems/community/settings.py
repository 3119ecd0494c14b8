"""The options of an installation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from solotable.systems.limiter import Limit
from solotable.systems.mail.port import Mailer
from solotable.systems.storage import Storage

from .builds.stages import BuildSettings
from .identity.port import IdentityProvider
from .identity.sessions import utc_now


@dataclass(frozen=True, slots=True, kw_only=True)
class CommunitySettings:
    """The options of an installation; each has a safe default."""

    #: Sign session tokens and e-mail proofs, at least 32 bytes each. The first one signs, all of them verify.
    #: Without them, sessions end when the process does.
    secrets: Sequence[str] = field(default=(), repr=False)
    #: Proves who a user is; without one no user can log in.
    provider: IdentityProvider | None = None
    #: Sends the links that verify addresses; without one no address can be verified.
    mailer: Mailer | None = None
    #: The address of the app in links that it sends; `https://nbhd.example`.
    base_url: str = "http://127.0.0.1:8084"
    #: Keeps built sites; a folder, or a Storage.
    storage: Storage | str | Path | None = None
    #: Serve built sites at the subdomains of this domain, as `localhost`; None if another server does it.
    sites_domain: str | None = None
    builds: BuildSettings = field(default_factory=BuildSettings)
    #: Where `/admin/export` writes: a folder or an `s3://` URL. Without one it answers 404.
    export_url: str | None = None
    #: Stores the rate limits, by default in this process only; None for no limits.
    limiter_url: str | None = "sqlite://"
    #: By default those of `routes.requests.rate_limits`.
    limits: Sequence[Limit] | None = None
    name: str = "Neighbourhoods"
    trusted_hosts: Iterable[str] = ()
    cors_origins: Iterable[str] = ()
    hsts_seconds: int = 0
    now: Callable[[], datetime] = utc_now
