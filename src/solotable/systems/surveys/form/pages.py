"""`/form`: the files of a built survey form, with a policy that allows nothing from elsewhere."""

from __future__ import annotations

from pathlib import Path

from fastapi import FastAPI
from starlette.responses import RedirectResponse
from starlette.staticfiles import StaticFiles
from starlette.types import Message, Receive, Scope, Send

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; worker-src 'self'; "
    "img-src 'self' blob: data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    # The worker of the form keeps its files; the browser asks for new ones.
    (b"cache-control", b"no-cache"),
]


class FormFiles:
    """The files of a built form."""

    def __init__(self, folder: Path) -> None:
        self._files = StaticFiles(directory=folder, html=True)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one file."""

        async def send_with_policy(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = {name for name, _ in _HEADERS}
                kept = [each for each in message["headers"] if each[0].lower() not in own]
                message["headers"] = [*kept, *_HEADERS]
            await send(message)

        await self._files(scope, receive, send_with_policy)


def mount_form(app: FastAPI, folder: Path) -> None:
    """Serve the form of a folder at `/form/`, and lead `/` there."""
    app.mount("/form", FormFiles(folder))
    app.add_route("/", lambda _: RedirectResponse("/form/"), include_in_schema=False)
