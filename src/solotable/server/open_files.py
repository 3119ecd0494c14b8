"""How many files, sockets included, this process may have open; asked of the system, where it tells."""

from __future__ import annotations

import contextlib
import sys

if sys.platform != "win32":  # which has no such limit
    import resource

_WITHOUT_LIMIT = 1 << 20


def most_files() -> int:
    """Return how many files may be open."""
    if sys.platform == "win32":
        return _WITHOUT_LIMIT
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _WITHOUT_LIMIT if soft == resource.RLIM_INFINITY else soft


def want_files(count: int) -> None:
    """Raise the limit to this many, or as far as the system lets us."""
    if sys.platform == "win32":
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = count if hard == resource.RLIM_INFINITY else min(count, hard)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
