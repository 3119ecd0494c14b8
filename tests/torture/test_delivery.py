"""kill -9 of who writes and of who delivers: every committed mutation has exactly one audit record."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

import solotable
from solotable.jobs.deliver import deliver
from solotable.jobs.sinks import AuditSink

from .blogger import TENANT, Post, opened
from .size import SEED, amount

ROUNDS = amount(5, 60)
ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.timeout(amount(240, 3600))


def started(role: str, path: Path, round_: int) -> subprocess.Popen[bytes]:
    sources = Path(solotable.__file__).parents[1]
    return subprocess.Popen(
        [sys.executable, "-m", "tests.torture.blogger", role, str(path), str(round_)],
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": f"{sources}{os.pathsep}{ROOT}"},
    )


def killed(process: subprocess.Popen[bytes]) -> list[tuple[str, int]]:
    """Kill a process and return what it has told; a line that was cut was not told."""
    process.kill()
    told, _ = process.communicate()
    lines = told.decode().split("\n")[:-1]
    return [(name, int(version)) for name, version in (line.split() for line in lines)]


def test_c0_12_every_committed_mutation_has_one_audit_record_whoever_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "blog.db"
    dice = random.Random(SEED)
    opened(str(path)).close()
    acknowledged: list[tuple[str, int]] = []
    for round_ in range(ROUNDS):
        writer, courier = started("write", path, round_), started("deliver", path, round_)
        for process in (writer, courier):
            assert process.stdout is not None
            assert process.stdout.readline(), "it did not start"
        time.sleep(dice.uniform(0.05, 0.6))
        victims = [writer, courier]
        dice.shuffle(victims)
        for process in victims:
            told = killed(process)
            acknowledged += told if process is writer else []
            time.sleep(dice.uniform(0.0, 0.1))
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
    _judge(audit, posts, acknowledged)


def _judge(
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


def _left_over(path: Path) -> None:
    """What the file's sink has: whole lines but perhaps for the last of each life, and every id known."""
    lines = Path(f"{path}.jsonl").read_bytes().split(b"\n")[:-1]
    assert lines
    assert all(json.loads(line)["id"] for line in lines)
