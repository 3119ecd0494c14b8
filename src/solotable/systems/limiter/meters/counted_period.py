"""What meters share that count thousandths of tokens in periods of one length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from solotable.systems.limiter.admin.limits import MICROSECONDS, MILLI, Limit


@dataclass(frozen=True, slots=True)
class CountedPeriod:
    """A limit on the tokens of a period; its credits are thousandths of a token."""

    limit: Limit
    used: str
    consumed: str
    length: int
    depth: int
    price: int = 1
    splits: bool = False
    turns: bool = False

    @classmethod
    def of(cls, limit: Limit) -> Self:
        """Return the meter of a limit."""
        return cls(
            limit=limit,
            used=f"used_{limit.name}",
            consumed=f"consumed_{limit.name}",
            length=limit.period_seconds * MICROSECONDS,
            depth=limit.capacity * MILLI,
        )
