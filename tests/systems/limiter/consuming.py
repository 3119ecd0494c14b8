"""Writes of buckets as the limiter makes them, one UpdateItem each, for the tests of usage; and a program.

Run as `python -m tests.systems.limiter.consuming consume|count FILE SEED`: it consumes, or counts usage,
until it is killed.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from solotable import Database
from solotable._expressions.ast import Add, Assign, Const, Update
from solotable._protocol.engine import Engine
from solotable._protocol.requests import UpdateItem
from solotable._values import Item
from solotable.systems.limiter.table import limiter
from solotable.systems.limiter.usage import aggregate
from tests.killing import tell

RULES = "rpm=100/60;tpm=10000/60"
NAMESPACE = "acme"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(moment: datetime) -> int:
    """Return a moment as buckets keep it."""
    return (moment - _EPOCH) // timedelta(microseconds=1)


def bucket_key(entity: str, resource: str, shard: int = 0, namespace: str = NAMESPACE) -> Item:
    """Return the key of a bucket."""
    return {"PK": {"S": f"{namespace}#BUCKET#{entity}#{resource}#{shard:02d}"}, "SK": {"S": "BUCKET"}}


def consuming(
    table: str,
    entity: str,
    resource: str,
    at: datetime,
    amounts: Mapping[str, int],
    *,
    shard: int = 0,
    namespace: str = NAMESPACE,
) -> UpdateItem:
    """Return the write of an acquire: the state moves with time, the counters by what is consumed."""
    texts = {"namespace": namespace, "entity": entity, "resource": resource, "rules": RULES}
    numbers = {"shard": shard, "level": 0, "revision": 0, "at": micros(at)}
    update = Update(
        (
            Assign((limiter.internal_tag,), Const({"S": "Bucket"})),
            *(Assign((name,), Const({"S": text})) for name, text in texts.items()),
            *(Assign((name,), Const({"N": str(number)})) for name, number in numbers.items()),
            *(Assign((f"used_{name}",), Const({"N": str(micros(at) * 7)})) for name in amounts),
            Add(("writes",), {"N": "1"}),
            *(Add((f"consumed_{name}",), {"N": str(amount)}) for name, amount in amounts.items()),
        ),
        creates=True,
    )
    return UpdateItem(table=table, key=bucket_key(entity, resource, shard, namespace), update=update)


def opened(path: str) -> Database:
    """Open the file of both programs."""
    return limiter.open(f"sqlite:///{path}")


def consume(engine: Engine, table: str, seed: str) -> None:
    """Consume and give back without end, over some months and at their edges."""
    dice = random.Random(seed)
    # All within the time that rows are kept.
    now = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    while True:
        at = now - timedelta(hours=dice.randrange(24 * 60), microseconds=dice.choice((0, 1, 1_000_000)))
        amounts = {name: dice.randrange(-500, 5000) for name in dice.sample(["rpm", "tpm", "x.y-z"], 2)}
        entity, resource = f"user-{dice.randrange(12)}", dice.choice(("gpt", "api"))
        engine.handle(consuming(table, entity, resource, at, amounts, shard=dice.randrange(2)))
        tell("consumed")


def main() -> None:
    """Play the role until the end comes."""
    role, path, seed = sys.argv[1:]
    with opened(path) as db:
        tell("started")
        if role == "consume":
            consume(db.engine, db.scope.table(limiter), seed)
        else:
            aggregate(db, follow=True, poll_seconds=0.01, progress=lambda done: tell("counted"))


if __name__ == "__main__":
    main()
