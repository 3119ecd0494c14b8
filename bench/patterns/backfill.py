"""Backfilling in process: how many old items a second get the current schema version and a new index key."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from solotable import Entity, Index, Key, Table, connect, upgrade
from solotable.jobs.backfill import backfill

_old = Table("Profiles")
_new = Table("Profiles", indexes=[Index("GSI1")])


class _Old(Entity, table=_old, tag="Profile"):
    key = Key("USER#{user_id}", "PROFILE")
    user_id: str
    name: str
    city: str
    avatar_url: str


class _New(Entity, table=_new, tag="Profile", schema_version=2):
    key = Key("USER#{user_id}", "PROFILE")
    by_city = Key("CITY#{city}", "USER#{user_id}", index="GSI1")
    user_id: str
    name: str
    city: str
    images: dict[str, str]

    @upgrade(to=2, replaces=("avatar_url",))
    @staticmethod
    def avatars(record: dict[str, Any]) -> dict[str, Any]:
        return {**record, "images": {"avatar": record["avatar_url"]}}


def backfill_rate(items: int) -> float:
    """Return how many of so many old items are rewritten a second, each with a new index key."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{Path(folder) / 'backfill.db'}"
        with connect(url, _old) as before:
            for start in range(0, items, 5_000):
                with before.batch() as batch:
                    for number in range(start, min(start + 5_000, items)):
                        batch.put(
                            _Old(
                                user_id=f"{number:08d}",
                                name=f"Somebody {number}",
                                city=f"City {number % 500}",
                                avatar_url=f"https://img.example/{number}.png",
                            )
                        )
        with connect(url, _new) as after:
            started = time.perf_counter()
            done = backfill(after.admin(), _New, budget=items + 1_000)
            seconds = time.perf_counter() - started
        if done.tally.upgraded != items:
            raise RuntimeError(f"{done.tally.upgraded} of {items} items were upgraded.")
    return items / seconds
