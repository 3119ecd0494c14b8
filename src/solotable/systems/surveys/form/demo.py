"""`python -m solotable.systems.surveys.form.demo`: a form that works offline, on 127.0.0.1:8085.

It needs Node and npm: the Replicache client is fetched and bundled at the first start, and is not a part of
this package. Open the printed links in two browsers, switch one of them offline, edit in both, and back.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from solotable.systems.demo_server import Credential, Demo, make_auth
from solotable.systems.surveys.app import create_app
from solotable.systems.surveys.demo import credentials, link_secret, prepare

from .build import ClientMissing, build_form
from .pages import mount_form

if TYPE_CHECKING:
    import uvicorn


def cache_folder() -> Path:
    """Return where the client is installed: the repository's `.cache`, or that of the user."""
    root = Path(__file__).parents[5]
    if (root / "pyproject.toml").exists():
        return root / ".cache" / "replicache"
    return Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "solotable" / "replicache"


def greeting(keys: Sequence[Credential], port: int) -> str:
    """Return the text that the demo prints: a link for each user, and what to try."""
    base = f"http://127.0.0.1:{port}/form/#key="
    by_name = {each.name: each.key for each in keys}
    rows = [
        f"  {each.name:<5} {each.tenant:<7} {base}{by_name[each.name]}"
        for each in keys
        if each.role == "MEMBER" and each.tenant
    ]
    return "\n".join(
        [
            "The survey form works offline. Open the links of ann and ben in two browsers, or one in a",
            "private window: both edit the surveys of acme. Edits stay in the browser until they are sent.",
            *rows,
            "",
            "Try: switch one browser offline (developer tools, Network), edit, reload, and go online again.",
            "It needs a browser with IndexedDB, service workers and JavaScript. The key of a link signs in;",
            "photos wait in the browser too, and are uploaded after the texts.",
        ]
    )


def server(
    url: str, folder: Path, keys: Sequence[Credential], trusted_proxies: Sequence[str] = ()
) -> uvicorn.Server:
    """Return the demo's server: the surveys, with the form at `/form/`."""
    import uvicorn

    app = create_app(
        url,
        auth=make_auth(keys),
        storage=folder / "files",
        link_secrets=[link_secret(keys)],
        trusted_hosts=trusted_proxies,
    )
    mount_form(app, build_form(cache_folder()))
    return uvicorn.Server(
        uvicorn.Config(app, log_level="warning", proxy_headers=False, timeout_graceful_shutdown=1)
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run the demo; return 1 where the client cannot be built."""
    try:
        build_form(cache_folder())
    except ClientMissing as missing:
        sys.stderr.write(
            f"The survey form needs the Replicache client, which is not in this package. {missing}\n"
        )
        return 1
    demo = Demo(
        name="surveys",
        summary="A survey form that works offline.",
        port=8085,
        prepare=prepare,
        credentials=credentials,
        greeting=greeting,
        server=server,
    )
    return demo.run(argv)


if __name__ == "__main__":
    raise SystemExit(main())
