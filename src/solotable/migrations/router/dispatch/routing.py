"""Which side serves a read or a write: a pure function of the routing record."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Literal

#: A side of a migration: the old tables or the new one.
SideName = Literal["source", "target"]

#: Buckets of readers; a per cent is a hundred of them, so that 0.01 % can be routed.
BUCKETS = 10_000
_SWITCHING = frozenset({"SwitchingWrites"})
#: States after which the source is no longer kept up to date.
_ENDED = frozenset({"Completed"})
_WITHOUT_FENCES = frozenset({"Created", "Completed", "Cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Routing:
    """Where reads and writes go, as the control record says it."""

    #: Grows with every transition.
    epoch: int = 0
    #: Grows with every change of the side that takes writes.
    flips: int = 0
    state: str = "Created"
    writes: SideName = "source"
    #: The share of eventually consistent reads that the target serves, from 0 to 100.
    reads_percent: float = 0.0
    #: The same for single entities, by class name.
    reads_by_entity: Mapping[str, float] = field(default_factory=dict)
    #: The share of reads that are repeated on the other side and compared.
    mirror_percent: float = 0.0

    @property
    def is_switching(self) -> bool:
        """Whether writes must check that their side is open."""
        return self.state in _SWITCHING

    @property
    def flips_possible(self) -> bool:
        """Whether the migration exists and has fences: it is neither new nor over."""
        return self.state not in _WITHOUT_FENCES

    @property
    def has_ended(self) -> bool:
        """Whether only the target serves."""
        return self.state in _ENDED

    def percent(self, entity: str | None) -> float:
        """Return the share of reads of an entity that the target serves."""
        if entity is not None and entity in self.reads_by_entity:
            return self.reads_by_entity[entity]
        return self.reads_percent

    def read_side(self, entity: str | None, sticky: str, *, consistent: bool = False) -> SideName:
        """Return the side that serves a read.

        `sticky` is the tenant, or the partition key of an item without a tenant. One value stays on one side
        while the share grows. Consistent reads go to the side that takes writes.
        """
        if self.has_ended:
            return "target"
        if consistent:
            return self.writes
        return "target" if bucket(sticky) < self.percent(entity) * BUCKETS / 100 else "source"


def bucket(sticky: str) -> int:
    """Return the bucket of a tenant or partition key; it never changes, in any process or version."""
    return int.from_bytes(blake2b(sticky.encode(), digest_size=8).digest()) % BUCKETS


def other_side(side: SideName) -> SideName:
    """Return the other side."""
    return "target" if side == "source" else "source"
