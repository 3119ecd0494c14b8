"""Locks at a fork: a thread that is not in the child does not keep them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.waiting import HANG_SECONDS

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform has no fork()")

_HELD = """
import os, sys, threading
import solotable.boto3.clients, solotable.boto3.routes, solotable.engines.dynamodb.transports
from solotable import ids
from solotable._store.consumption import METER_LOCK
from solotable.blobs import MemoryStorage
from solotable.encryption import Keyring
from solotable.engines.sqlite.maintenance import index_backfill
from solotable.observe import EmfObserver, PrometheusObserver
from solotable.systems.limiter.buckets.local_cache import LocalCache
from solotable.systems.limiter.admin.resolve import LimitsCache

owners = [LocalCache(), LimitsCache(1.0, lambda: 0.0), solotable.boto3.routes.Routes()]
locks = [owners[0].lock, owners[1]._effective._lock, owners[2]._lock, ids._ulids._lock, index_backfill._lock]
locks += [solotable.boto3.clients._making, solotable.engines.dynamodb.transports._making]
used = [MemoryStorage(), Keyring({"k": bytes(32)}), EmfObserver(), PrometheusObserver()]
locks += [METER_LOCK, *(each._lock for each in used)]
held = threading.Event()

def hold():
    for lock in locks:
        lock.acquire()
    held.set()
    threading.Event().wait()

threading.Thread(target=hold, daemon=True).start()
held.wait()
child = os.fork()
if child == 0:
    taken = [lock.acquire(blocking=False) for lock in locks]
    os._exit(0 if all(taken) else 1)
status = os.waitpid(child, 0)[1]
assert all(lock.locked() for lock in locks), "the parent's locks were freed"
sys.stdout.flush()
os._exit(status != 0)
"""


def test_a_child_finds_the_librarys_locks_free() -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", _HELD], capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stderr
