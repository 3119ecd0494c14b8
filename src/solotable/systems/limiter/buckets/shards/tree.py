"""The numbers of shards: which one a random number selects, and which one another was split from.

A shard's number is the low `level` bits of a random number. A split of shard `n` at level `l` adds bit `l`:
the other half is `n | 1 << l`. So the shards of a bucket form a tree of halves with shard 0 as its root, they
may have different levels, and every random number selects one of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from solotable.systems.limiter.buckets.bucket import ShardState


def parent_of(shard: int) -> int:
    """Return the shard that another one was split from, and is merged into: without the highest bit."""
    return shard & ((1 << max(0, shard.bit_length() - 1)) - 1)


def surviving_shard(shard: int, existing: Iterable[int]) -> int:
    """Return a shard, or the one that it was merged into."""
    while shard and shard not in existing:
        shard = parent_of(shard)
    return shard


def new_half(shard: int, state: ShardState) -> int:
    """Return the other half of the last split of a shard."""
    return shard | 1 << (state.level - 1)


def select(shards: Mapping[int, ShardState], number: int) -> int:
    """Return the shard that a number selects, as far as the shards are known."""
    shard = 0
    while (state := shards.get(shard)) is not None:
        rest = (number ^ shard) & ((1 << state.level) - 1)
        child = shard | (rest & -rest)
        if not rest or (state.split and child == new_half(shard, state)):
            # Until its split is finished, a half is the other one's business.
            return shard
        shard = child
    return shard


def leaves(shards: Mapping[int, ShardState]) -> dict[int, ShardState | None]:
    """Return every shard of a bucket, None for one whose content is not known.

    The half of an unfinished split is among them, with the tokens that it will have.
    """
    found: dict[int, ShardState | None] = {}
    todo = [0]
    while todo:
        shard = todo.pop()
        state = found[shard] = shards.get(shard)
        if state is None:
            continue
        todo += [shard | 1 << bit for bit in range(shard.bit_length(), state.level)]
        if state.split:
            half = new_half(shard, state)
            todo.remove(half)
            found[half] = replace(state, shard=half, used=state.half, split=0, half={})
    return found
