"""Causes: which errors of a worker pass by themselves, and what the others mean for the operator."""

from __future__ import annotations

from solotable.errors import FeedTrimmed, ServiceError, TransactionCancelled, TransportError

from .sides import Side


def trimmed_text(side: Side, trimmed: FeedTrimmed) -> str:
    """Return why a migration stops after the stream of its serving side was trimmed, and what to do."""
    since = "" if trimmed.since is None else f" after {trimmed.since:%Y-%m-%d %H:%M:%S} UTC"
    lost = (
        f"The streams of {side.label} dropped changes{since}: no worker read them for 24 hours, or a stream "
        f"was disabled."
    )
    if side.name == "source":
        return f"{lost} Copy again with `solotable migrate start`."
    return f"{lost} Resume with `solotable migrate start`, then write them with `solotable migrate repair`."


def passes(error: ServiceError | TransportError) -> bool:
    """Return whether an error passes by itself, so that a worker tries again."""
    if isinstance(error, TransactionCancelled):
        return error.is_transient
    return isinstance(error, TransportError) or error.retryable
