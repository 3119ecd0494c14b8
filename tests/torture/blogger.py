"""Writes mutations that leave events, or delivers these events, until it is killed.

Run as `python -m tests.torture.blogger write|deliver FILE ROUND`; a writer tells each mutation that it
was acknowledged.
"""

from __future__ import annotations

import random
import sys
from typing import Annotated

from solotable import FROM_SCOPE, Actor, Database, Entity, Key, Outbox, Table, Version, connect
from solotable.jobs.deliver import deliver
from solotable.jobs.sinks import AuditSink, JsonLinesSink
from tests.killing import tell

TENANT = "acme"
blog = Table("Blog", tenant="tenant_id", ttl="expires_at", stream=True)


class Post(Entity, table=blog):
    """One post of a round."""

    key = Key("TENANT#{tenant_id}", "POST#{post_id}")
    events = Outbox(title="title", actor_required=True)
    tenant_id: str = FROM_SCOPE
    post_id: str
    title: str
    version: Annotated[int, Version()] = 0


def opened(path: str) -> Database:
    """Open the file of both."""
    return connect(f"sqlite:///{path}", blog)


def write(path: str, round_: str) -> None:
    """Make, change and remove posts without end."""
    dice = random.Random(round_)
    with opened(path) as db:
        store = db.tenant(TENANT).acting(Actor(id="u", email="u@example.org"))
        number = 0
        while True:
            number += 1
            name = f"{round_}-{number}"
            post = store.create(Post(post_id=name, title="first"))
            tell(f"{name} {post.version}")
            for _ in range(dice.randrange(4)):
                post = store.update(post, set={"title": f"at {post.version}"})
                tell(f"{name} {post.version}")
            if dice.random() < 0.3:
                store.delete(post)
                tell(f"{name} 0")


def deliver_all(path: str) -> None:
    """Deliver without end, to two sinks."""
    with opened(path) as db:
        tell("started")
        deliver(db, [AuditSink(), JsonLinesSink(f"{path}.jsonl")], follow=True, poll_seconds=0.01)


if __name__ == "__main__":
    role, path, round_ = sys.argv[1:]
    if role == "write":
        write(path, round_)
    else:
        deliver_all(path)
