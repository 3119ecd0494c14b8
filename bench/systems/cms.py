"""Pages of the CMS through HTTP beside a constant from the same app: uvicorn, one worker.

Asked with wrk; without it the figure is missing, never guessed.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.wire.peers import ROOT, Solotable
from solotable._connect import ensure, open_engine
from solotable.systems.cms import cms
from solotable.systems.cms.demo import prepare
from solotable.urls import Url
from tests.conformance import dynamodb_local

_HOST = "acme.localhost"
PATHS = {"constant": "/-/constant", "page": "/about-us"}


def measure(folder: Path, *, quick: bool) -> dict[str, dict[str, float]] | None:
    """Return requests a second by path, on the embedded engine and on the wire server; None without wrk."""
    if shutil.which("wrk") is None:
        return None
    figures = {}
    inside = f"sqlite:///{folder / 'cms.db'}"
    asyncio.run(prepare(inside))
    with _serving(inside) as port:
        figures["embedded engine"] = _race(port, quick=quick)
    server = Solotable()
    with server.serve("disk", folder / "wire") as running:
        url = f"http://127.0.0.1:{running.port}"
        engine = open_engine(Url.parse(url))
        ensure(engine, cms, cms.name)
        engine.close()
        asyncio.run(prepare(url))
        with _serving(url) as port:
            figures["wire server"] = _race(port, quick=quick)
    return figures


@contextmanager
def _serving(url: str) -> Iterator[int]:
    port = dynamodb_local.free_port()
    paths = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "bench.systems.cms_app:app", "--port", str(port)),
            *("--log-level", "error", "--no-access-log"),
        ],
        env={**os.environ, "BENCH_CMS_URL": url, "PYTHONPATH": paths},
        cwd=ROOT,
    )
    try:
        _wait(port)
        yield port
    finally:
        process.terminate()
        process.wait()


def _wait(port: int) -> None:
    for _ in range(200):
        try:
            request = urllib.request.Request(
                f"http://127.0.0.1:{port}{PATHS['page']}", headers={"Host": _HOST}
            )
            with urllib.request.urlopen(request) as answer:  # noqa: S310 - the loopback server started above
                answer.read()
        except OSError:
            time.sleep(0.1)
        else:
            return
    raise RuntimeError("the CMS did not answer with its page")


def _race(port: int, *, quick: bool) -> dict[str, float]:
    rates: dict[str, list[float]] = {name: [] for name in PATHS}
    for _ in range(2 if quick else 9):
        for name, path in PATHS.items():
            rates[name].append(_asked(port, path))
    return {name: statistics.median(each) for name, each in rates.items()}


def _asked(port: int, path: str) -> float:
    command = ["wrk", "-t1", "-c8", "-d1s", "-H", f"Host: {_HOST}", f"http://127.0.0.1:{port}{path}"]
    told = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    if "Non-2xx" in told:
        raise RuntimeError(f"{path} was not answered well:\n{told}")
    found = re.search(r"Requests/sec:\s+([0-9.]+)", told)
    assert found is not None
    return float(found[1])
