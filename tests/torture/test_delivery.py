"""kill -9 of who writes and of who delivers: every committed mutation has exactly one audit record."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from solotable.jobs.deliver import deliver
from solotable.jobs.sinks import AuditSink
from tests.killing import Start
from tests.waiting import jitter, wait_until

from .blogger import TENANT, Post, opened
from .size import LIMIT_SECONDS, SEED, amount

ROUNDS = amount(3, 60)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def test_c0_12_every_committed_mutation_has_one_audit_record_if_a_process_is_killed(
    tmp_path: Path, start: Start
) -> None:
    path = tmp_path / "blog.db"
    dice = random.Random(SEED)
    opened(str(path)).close()
    acknowledged: list[tuple[str, int]] = []

    def play_round(seed: int) -> None:
        """Let one process write and another deliver, and kill both."""
        before = _delivered(path)
        writer, courier = (
            start("-m", "tests.torture.blogger", role, str(path), str(seed)) for role in ("write", "deliver")
        )
        writer.wait_for_lines(dice.randrange(1, 100))
        wait_until(lambda: _delivered(path) > before)
        victims = [writer, courier]
        dice.shuffle(victims)
        for victim in victims:
            jitter(dice, 0.1)
            lines = [line.split() for line in victim.kill()]
            if victim is writer:
                acknowledged.extend((name, int(version)) for name, version in lines)

    for round_ in range(ROUNDS):
        play_round(round_)
    with opened(str(path)) as db:
        _left_over(path)
        deliver(db, [AuditSink()])
        audit: list[tuple[str, int, str]] = []
        cursor = None
        while True:
            page = db.tenant(TENANT).audit(limit=1000, cursor=cursor)
            for event in page:
                assert event.version is not None
                assert event.actor is not None
                audit.append((event.target.key["post_id"], event.version, event.verb))
            cursor = page.cursor
            if cursor is None:
                break
        posts = {post.post_id: post.version for post in db.admin().scan(Post, budget=1_000_000)}
    _check(audit, posts, acknowledged)


def _check(
    audit: list[tuple[str, int, str]], posts: dict[str, int], acknowledged: list[tuple[str, int]]
) -> None:
    assert len(audit) > ROUNDS
    assert [each for each, count in Counter(audit).items() if count > 1] == []
    written: dict[str, set[int]] = {}
    removed: set[str] = set()
    for name, version, verb in audit:
        if verb == "deleted":
            removed.add(name)
        else:
            written.setdefault(name, set()).add(version)
            assert (verb == "created") == (version == 1)
    # Versions count the mutations of a post: all of them have a record, and no record is of another.
    for name, versions in written.items():
        assert versions == set(range(1, max(versions) + 1))
        assert (name in removed) == (name not in posts)
        assert name in removed or posts[name] == max(versions)
    assert set(posts) <= set(written)
    assert removed <= set(written)
    for name, version in acknowledged:
        assert version in written[name] if version else name in removed


def _delivered(path: Path) -> int:
    """How many bytes the file's sink has."""
    sink = Path(f"{path}.jsonl")
    return sink.stat().st_size if sink.exists() else 0


def _left_over(path: Path) -> None:
    """What the file's sink has: whole lines but perhaps for the last of each life, and every id known."""
    lines = Path(f"{path}.jsonl").read_bytes().split(b"\n")[:-1]
    assert lines
    assert all(json.loads(line)["id"] for line in lines)
