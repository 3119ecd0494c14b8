"""Several processes that serve one file on one port: workers answer reads, one process writes.

`supervisor` starts the processes and replaces those that die. `process` is what they run. A worker sends
every request that does not read items to the writer (`forwarder`), which answers it (`writer`); `frames` is
what they send.
"""

from .supervisor import serve_with_workers

__all__ = ["serve_with_workers"]
