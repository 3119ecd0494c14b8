"""Read the streams of tables in a flow: records in order within a shard, with checkpoints."""

from solotable._flows.feed.checkpoints import Checkpoint, ShardCheckpoint, sequence_order
from solotable._flows.feed.feed import Feed, Since
from solotable._flows.feed.streams import Record

__all__ = ["Checkpoint", "Feed", "Record", "ShardCheckpoint", "Since", "sequence_order"]
