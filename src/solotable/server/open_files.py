"""The operating system's limit on open files, sockets included."""

from __future__ import annotations

import contextlib
import sys

if sys.platform != "win32":  # which has no such limit
    import resource

_UNLIMITED = 1 << 20


def open_file_limit() -> int:
    """Return how many files this process may have open."""
    if sys.platform == "win32":
        return _UNLIMITED
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _UNLIMITED if soft == resource.RLIM_INFINITY else soft


def raise_open_file_limit(count: int) -> None:
    """Raise the limit to `count`, or as far as the system allows."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    target = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < target:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (target, hard))
