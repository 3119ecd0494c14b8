"""Hot buckets: one that is written more often than a DynamoDB partition allows has several shards.

The bound: all shards together have the tokens of the bucket, at any time; a split and a merge conserve them.
The cost: a shard may refuse a small charge although the others have some tokens left. A charge tries the
shards that have most, and one that needs more than a shard's part takes parts of several.
"""

from .holds import extend_holds
from .read import read_shards
from .reshard import merge, read_whole, rebalance, split
from .settle import TakenTokens, charge_one, settle
from .take import take
from .totals import plan_settlement, statuses, whole_state
from .tree import surviving_shard

__all__ = [
    "TakenTokens",
    "charge_one",
    "extend_holds",
    "merge",
    "plan_settlement",
    "read_shards",
    "read_whole",
    "rebalance",
    "settle",
    "split",
    "statuses",
    "surviving_shard",
    "take",
    "whole_state",
]
