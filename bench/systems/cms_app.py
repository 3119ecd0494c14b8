"""The CMS that `bench.cms` asks: its own app over a URL, and a route that returns a constant."""

from __future__ import annotations

import os

from fastapi.routing import APIRoute

from solotable.systems.cms.app import create_app

CONSTANT = {"title": "About us", "blocks": ["x" * 200] * 4}


async def constant() -> dict[str, object]:
    """Answer with what is known beforehand."""
    return dict(CONSTANT)


app = create_app(os.environ["BENCH_CMS_URL"])
# Before the pages' own route, which takes every path.
app.router.routes.insert(0, APIRoute("/-/constant", constant, methods=["GET"]))
