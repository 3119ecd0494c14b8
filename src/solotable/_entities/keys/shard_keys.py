"""Partitions that are kept as several: which there are for a query, and what their keys must be like.

A query of such a key has lanes: for every bucket of time, in order, the partition of every shard. A
bucket needs a range with two ends, or the walk would have no end; that is refused here, before anything
is sent. Lanes are described, never read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, date, datetime, time, timedelta
from functools import partial
from typing import Any

from solotable._entities.declare.table import suggestion
from solotable._expressions.ast import KeyTerm
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError, DeclarationError

from .access_path import AccessPath
from .key import Key
from .layout import Bound, Composed, Native, Side, buckets_of, highest, meets_nothing
from .sharding import Spread, judge_counts
from .templates import above, below
from .time_buckets import BucketCodec, BucketText


@dataclass(frozen=True, slots=True)
class Lanes:
    """The partitions of one query, and the range that is read in each of them."""

    partition: str
    #: The name of the sort attribute; None where the index has no sort key.
    sort: str | None
    #: For each bucket, the earliest first, the texts of its partitions; one bucket where there is no time.
    buckets: tuple[tuple[str, ...], ...]
    within: tuple[KeyTerm, ...]
    #: What stays the same of the query whatever the clock says.
    identity: str

    @property
    def queries(self) -> int:
        """How many partitions are asked."""
        return sum(map(len, self.buckets))

    def terms(self, text: str, within: tuple[KeyTerm, ...] | None = None) -> tuple[KeyTerm, ...]:
        """Return the key condition of one partition."""
        partition = KeyTerm(self.partition, "=", ({"S": text},))
        return (partition, *(self.within if within is None else within))

    def beyond(self, text: str, *, forward: bool, including: bool) -> tuple[KeyTerm, ...] | None:
        """Return the range from a sort key on, in the direction of the query; None when nothing is left."""
        if self.sort is None or (self.within and self.within[0].operator == "="):
            return self.within if including else None
        low, high = self._ends()
        if forward:
            low = text if including else above(text)
            if low is None:
                return None
        else:
            high = text if including else below(text)
        if high is None:
            return (KeyTerm(self.sort, ">=", ({"S": low or ""},)),)
        if not low:
            return (KeyTerm(self.sort, "<=", ({"S": high},)),) if high else None
        return (KeyTerm(self.sort, "BETWEEN", ({"S": low}, {"S": high})),) if low <= high else None

    def _ends(self) -> tuple[str | None, str | None]:
        if not self.within:
            return None, None
        term = self.within[0]
        texts = [str(value["S"]) for value in term.values]
        match term.operator:
            case "begins_with":
                return texts[0], highest(texts[0])
            case ">=":
                return texts[0], None
            case "<=":
                return None, texts[0]
            case _:
                return texts[0], texts[1]


def lanes_of(path: AccessPath, arguments: Mapping[str, Any], bound: Bound | None, now: datetime) -> Lanes:
    """Return the lanes of a query, or say what it lacks."""
    partition, sort = path.partition, path.sort
    assert isinstance(partition, Composed)
    arguments, bound = _whole_day(partition, arguments, bound)
    within = () if sort is None else sort.within(arguments, bound)
    bucket = partition.bucket
    fixed = dict(arguments)
    starts: list[Mapping[str, Any]] = [arguments]
    if bucket is not None and bucket not in arguments:
        fixed[bucket] = BucketText("*")
        starts = [{**arguments, bucket: text} for text in _walked(path, bound, now)]
    buckets = tuple(partition.every(each) for each in starts)
    return Lanes(
        partition=partition.attribute,
        sort=sort.attribute if isinstance(sort, Composed) else None,
        buckets=() if meets_nothing(within) else buckets,
        within=within,
        identity=repr((partition.every(fixed), within)),
    )


def _whole_day(
    partition: Composed, arguments: Mapping[str, Any], bound: Bound | None
) -> tuple[Mapping[str, Any], Bound | None]:
    """Take a plain date in place of a time as all of that day, in UTC."""
    bucket = partition.bucket
    day = None if bucket is None else arguments.get(bucket)
    if bucket is None or not isinstance(day, date) or isinstance(day, datetime):
        return arguments, bound
    if _codec(partition).source != "datetime":
        return arguments, bound
    if bound is not None:
        raise DataError(
            f"{bucket}={day} is a whole day, and {bound.verb}({bound.field}=...) a range beside it; "
            f"give one range: between({bucket}=(low, high))."
        )
    rest = {name: value for name, value in arguments.items() if name != bucket}
    start = datetime.combine(day, time(), UTC)
    if day == date.max:
        return rest, Bound("since", bucket, (start,))
    return rest, Bound("span", bucket, (start, start + timedelta(days=1)))


def _walked(path: AccessPath, bound: Bound | None, now: datetime) -> list[BucketText]:
    assert isinstance(path.partition, Composed)
    codec, field = _codec(path.partition), path.partition.bucket
    name = f"{path.owner}.{path.name}"
    low_end = bound is not None and bound.verb in ("since", "after", "between", "span")
    if bound is None or bound.field != field or not low_end:
        raise DataError(
            f"{name} is kept in buckets ({codec.slot}), and a query of it needs two ends: "
            f"between({field}=(low, high)), or since({field}=low), which ends now."
        )
    low = codec.moment(bound.values[0])
    high = codec.moment(bound.values[1]) if len(bound.values) > 1 else max(low, now)
    if bound.verb == "span":
        high -= timedelta(microseconds=1)
    first, last = codec.number(low), codec.number(high)
    if last - first >= path.most_buckets:
        raise DataError(
            f"{name} would walk {last - first + 1:,} buckets ({codec.slot}) and may walk "
            f"{path.most_buckets:,}; take a shorter range, or raise most_buckets= of the key."
        )
    return [BucketText(codec.text(number)) for number in range(first, last + 1)]


def _codec(partition: Composed) -> BucketCodec:
    codec = buckets_of(partition.template)[0].codec
    assert isinstance(codec, BucketCodec)
    return codec


def settle_keys(declared: Mapping[str, Key], keys: Mapping[str, AccessPath]) -> dict[str, AccessPath]:
    """Return an entity's keys with their shards, or say which of them cannot be spread so."""
    for path in keys.values():
        _judge_buckets(path)
    primary = _spread(declared["key"], keys["key"], None)
    return {
        name: primary if name == "key" else _spread(declared[name], path, primary)
        for name, path in keys.items()
    }


def _judge_buckets(path: AccessPath) -> None:
    where = f"{path.owner}.{path.name}"
    if path.most_buckets < 1:
        raise DeclarationError(f"{where}: most_buckets={path.most_buckets}; a query walks at least one.")
    for side in (path.partition, path.sort):
        buckets = buckets_of(side.template) if isinstance(side, Composed) else []
        if not buckets or not isinstance(side, Composed):
            continue
        field, slot = buckets[0].field, buckets[0].codec.slot
        if side.role == "sort":
            raise DeclarationError(
                f"{where}: {slot} in the sort key would lose the time itself; write {{{field}}} there and "
                f"keep the bucket to the partition."
            )
        if len(buckets) > 1:
            raise DeclarationError(f"{where}: {side.template.text!r} has two buckets of time; keep one.")
        if not isinstance(path.sort, Composed) or field not in path.sort.fields:
            raise DeclarationError(
                f"{where}: {slot} says only roughly when; write {{{field}}} in full into the template of "
                f"its sort key."
            )


def _spread(key: Key, path: AccessPath, primary: AccessPath | None) -> AccessPath:
    where = f"{path.owner}.{path.name}"
    local = path.index is not None and path.index.local
    if local and primary is not None:
        shared = primary.partition.spread if isinstance(primary.partition, Composed) else None
        if key.shards != (shared and shared.shards) or key.shard_by is not None or key.was is not None:
            raise DeclarationError(
                f"{where}: a local index lies in the partitions of {path.owner}.key and takes its shards; "
                f"write {f'shards={shared.shards} and no more' if shared else 'no shards='}."
            )
        return path if shared is None else _with(path, shared)
    if key.shards is None:
        if key.shard_by is not None or key.was is not None:
            raise DeclarationError(f"{where}: shard_by= and was= say how shards are made; add shards=.")
        return path
    judge_counts(where, key.shards, key.was)
    if not isinstance(path.partition, Composed) or isinstance(path.sort, Native):
        raise DeclarationError(
            f"{where}: shards are merged in the order of one text; write templates instead of tuples."
        )
    if primary is None and key.was is not None:
        raise DeclarationError(
            f"{where}: the shard is part of the item's own key, so was= cannot be; "
            f"put the items anew under another literal, or shard an index instead."
        )
    by = _by(key, path, primary, where)
    return _with(path, Spread(where=where, shards=key.shards, was=key.was, by=by))


def _with(path: AccessPath, spread: Spread) -> AccessPath:
    assert isinstance(path.partition, Composed)
    return replace(path, partition=replace(path.partition, spread=spread))


def _by(
    key: Key, path: AccessPath, primary: AccessPath | None, where: str
) -> tuple[tuple[str, Callable[[Any], str]], ...]:
    """Return the fields that say which shard: those declared, or what tells one item from the others."""
    sides = [path.sort, path.partition]
    if primary is not None:
        own = [primary.sort, primary.partition]
        # What is always known of an item, whatever of it is changed: its own key.
        sides = own if key.shard_by is None else sides + own
    if key.shard_by is not None:
        names = key.shard_by
    elif primary is not None:
        names = primary.parts
    else:
        names = () if path.sort is None else path.sort.fields
    if not names or (key.shard_by is not None and set(names) <= set(path.partition.fields)):
        raise DeclarationError(
            f"{where}: nothing in shard_by tells two items of one partition apart, so they would all share "
            f"a shard; name a field of the sort key."
        )
    return tuple((name, _encoder(name, sides, where)) for name in names)


def _encoder(name: str, sides: list[Side | None], where: str) -> Callable[[Any], str]:
    for side in sides:
        if isinstance(side, Composed) and name in side.fields and name != side.bucket:
            return partial(side.template.encode, name)
        if isinstance(side, Native) and name in side.fields:
            return partial(_native_text, side, name)
    known = tuple(dict.fromkeys(field for side in sides if side is not None for field in side.fields))
    raise DeclarationError(
        f"{where}: shard_by names {name!r}, which is no part of this key or of the entity's own; "
        f"{suggestion(name, known)}"
    )


def _native_text(side: Native, name: str, value: Any) -> str:
    attribute = next(each for each in side.attributes if each.field == name)
    dumped = attribute.dump(value)
    if dumped is None:
        raise DataError(f"The key part {name!r} is missing; a shard is made of it.")
    return str(next(iter(dumped.values())))
