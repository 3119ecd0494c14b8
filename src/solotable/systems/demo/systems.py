"""The five systems of the demo: what each is, what to try, and how to load it.

A system is imported when it starts, so that the front page shows at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from solotable.systems.demo_server import Demo


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoSystem:
    """One system of the demo."""

    name: str
    title: str
    summary: str
    #: One thing to try, in a sentence.
    task: str
    #: The page to open; the root of the system if it has pages.
    path: str
    load: Callable[[int], Demo]
    #: The host of the page to open; a tenant's site has its own.
    host: str = "127.0.0.1"


def _cms(port: int) -> Demo:
    from solotable.systems.cms.demo import make_demo

    return make_demo(port)


def _limiter(port: int) -> Demo:
    from solotable.systems.limiter.demo import make_demo

    return make_demo(port)


def _surveys(port: int) -> Demo:
    from solotable.systems.surveys.demo import make_demo

    return make_demo(port)


def _portal(port: int) -> Demo:
    from solotable.systems.portal.demo import make_demo

    return make_demo(port)


def _community(port: int) -> Demo:
    from solotable.systems.community.demo.program import make_demo

    return make_demo(port)


SYSTEMS = (
    DemoSystem(
        name="cms",
        title="CMS",
        summary="Pages with versions and redirects, for two tenants.",
        task="Open /about at acme.localhost: the page was renamed, and its old address still works.",
        path="/",
        host="acme.localhost",
        load=_cms,
    ),
    DemoSystem(
        name="limiter",
        title="Rate limiter",
        summary="Token buckets for an LLM gateway, exact under load.",
        task="Send the chat request six times as user-2, and see the 429 and its Retry-After.",
        path="/docs",
        load=_limiter,
    ),
    DemoSystem(
        name="surveys",
        title="Surveys",
        summary="Building surveys with photos, a library of phrases, and reports.",
        task="Open the report: its link is signed, and needs no key.",
        path="/docs",
        load=_surveys,
    ),
    DemoSystem(
        name="portal",
        title="Portal",
        summary="Content with approvals, notifications and analytics, on four tables.",
        task="Sign in as vic and as mila, approve the draft as mila, and watch vic's inbox.",
        path="/",
        load=_portal,
    ),
    DemoSystem(
        name="community",
        title="Community",
        summary="Neighbourhoods, members, and sites that a worker builds.",
        task="Sign in as alice.test, make a site, and watch it being built.",
        path="/",
        load=_community,
    ),
)
