"""A process with an open store forks: parent and children write with every verb, and nothing is lost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from solotable.engines.sqlite.maintenance.checkup import examine
from tests.s3_server import FaultyS3, new_bucket
from tests.serving import environment, served
from tests.waiting import HANG_SECONDS

from .forking import shop

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")


def run(program: str, *arguments: str) -> None:
    """Run a program of `forking`."""
    sources = environment()["PYTHONPATH"]
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-m", "tests.unit.store.forking", program, *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        env=environment(PYTHONPATH=f"{sources}{os.pathsep}{Path(__file__).parents[3]}"),
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", ["verbs", "busy", "awaited"])
def test_parent_and_children_use_an_open_file(program: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    run(program, f"sqlite:///{path}", str(tmp_path / "blobs"))
    assert examine(str(path)).problems == []


@pytest.mark.parametrize("program", ["verbs", "busy", "awaited"])
def test_parent_and_children_use_a_server(program: str, tmp_path: Path) -> None:
    path = tmp_path / "shop.db"
    shop.open(f"sqlite:///{path}").close()
    with served(str(path)) as server:
        run(program, server.url, str(tmp_path / "blobs"))


def test_parent_and_children_use_an_s3_client(s3_endpoint: str) -> None:
    # moto closes each connection; the proxy keeps them alive, as S3 does.
    proxy = FaultyS3(s3_endpoint)
    try:
        run("s3", proxy.endpoint, new_bucket(s3_endpoint))
    finally:
        proxy.close()
