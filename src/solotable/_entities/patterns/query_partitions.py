"""The partitions that a query reads if its key has shards or time buckets, in order.

A query over time buckets needs a range with two ends; otherwise the number of buckets has no limit.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from solotable._entities.keys.access_path import AccessPath
from solotable._entities.keys.bounds import above, below, highest_with_prefix
from solotable._entities.keys.layout import TemplateLayout, bucket_fields, is_empty
from solotable._entities.keys.parts.time_buckets import BucketCodec, BucketText
from solotable._entities.keys.ranges import SortRange
from solotable._expressions.ast import KeyTerm
from solotable._values.lazy_dataclass import dataclass
from solotable.errors import DataError


@dataclass(frozen=True, slots=True)
class QueryPartitions:
    """The partitions of one query, and the sort key range in each of them."""

    partition: str
    #: The name of the sort key attribute; None if the index has no sort key.
    sort: str | None
    #: Partition keys by time bucket, the earliest first; one bucket if the key has no time.
    buckets: tuple[tuple[str, ...], ...]
    within: tuple[KeyTerm, ...]
    #: Identifies the query, independent of the clock.
    identity: str
    #: Whether the values in the sort key are escaped.
    escaped: bool = True

    @property
    def queries(self) -> int:
        """The number of partitions."""
        return sum(map(len, self.buckets))

    def terms(self, text: str, within: tuple[KeyTerm, ...] | None = None) -> tuple[KeyTerm, ...]:
        """Return the key condition for one partition."""
        partition = KeyTerm(self.partition, "=", ({"S": text},))
        return (partition, *(self.within if within is None else within))

    def range_from(self, text: str, *, forward: bool, including: bool) -> tuple[KeyTerm, ...] | None:
        """Return the range from a sort key on, in the query's direction; None when it is empty."""
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
                return texts[0], highest_with_prefix(texts[0], escaped=self.escaped)
            case ">=":
                return texts[0], None
            case "<=":
                return None, texts[0]
            case _:
                return texts[0], texts[1]


def partitions_of(
    path: AccessPath, arguments: Mapping[str, Any], sort_range: SortRange | None, now: datetime
) -> QueryPartitions:
    """Return the partitions of a query, or raise DataError if its range lacks an end."""
    partition, sort = path.partition, path.sort
    assert isinstance(partition, TemplateLayout)
    arguments, sort_range = _whole_day(partition, arguments, sort_range)
    within = () if sort is None else sort.within(arguments, sort_range)
    bucket = partition.bucket
    fixed = dict(arguments)
    starts: list[Mapping[str, Any]] = [arguments]
    if bucket is not None and bucket not in arguments:
        fixed[bucket] = BucketText("*")
        starts = [{**arguments, bucket: text} for text in _buckets(path, sort_range, now)]
    buckets = tuple(partition.partitions(each) for each in starts)
    return QueryPartitions(
        partition=partition.attribute,
        sort=sort.attribute if isinstance(sort, TemplateLayout) else None,
        buckets=() if is_empty(within) else buckets,
        within=within,
        identity=repr((partition.partitions(fixed), within)),
        escaped=not isinstance(sort, TemplateLayout) or sort.template.key_format.escape,
    )


def _whole_day(
    partition: TemplateLayout, arguments: Mapping[str, Any], sort_range: SortRange | None
) -> tuple[Mapping[str, Any], SortRange | None]:
    """Replace a date argument for a datetime field by the range of that day, in UTC."""
    bucket = partition.bucket
    day = None if bucket is None else arguments.get(bucket)
    if bucket is None or not isinstance(day, date) or isinstance(day, datetime):
        return arguments, sort_range
    if _codec(partition).source != "datetime":
        return arguments, sort_range
    if sort_range is not None:
        raise DataError(
            f"{bucket}={day} is a whole day, and {sort_range.verb}({sort_range.field}=...) is another range; "
            f"give one range: between({bucket}=(low, high))."
        )
    rest = {name: value for name, value in arguments.items() if name != bucket}
    start = datetime.combine(day, time(), UTC)
    if day == date.max:
        return rest, SortRange("since", bucket, (start,))
    return rest, SortRange("span", bucket, (start, start + timedelta(days=1)))


def _buckets(path: AccessPath, sort_range: SortRange | None, now: datetime) -> list[BucketText]:
    assert isinstance(path.partition, TemplateLayout)
    codec, field = _codec(path.partition), path.partition.bucket
    name = f"{path.owner}.{path.name}"
    low_end = sort_range is not None and sort_range.verb in ("since", "after", "between", "span")
    if sort_range is None or sort_range.field != field or not low_end:
        raise DataError(
            f"{name} is stored in time buckets ({codec.slot}), so a query needs two ends: "
            f"between({field}=(low, high)), or since({field}=low), which ends now."
        )
    low = codec.moment(sort_range.values[0])
    high = codec.moment(sort_range.values[1]) if len(sort_range.values) > 1 else max(low, now)
    if sort_range.verb == "span":
        high -= timedelta(microseconds=1)
    first, last = codec.number(low), codec.number(high)
    if last - first >= path.most_buckets:
        raise DataError(
            f"{name} would read {last - first + 1:,} buckets ({codec.slot}), more than most_buckets="
            f"{path.most_buckets:,}; use a shorter range, or raise most_buckets= of the key."
        )
    return [BucketText(codec.text(number)) for number in range(first, last + 1)]


def _codec(partition: TemplateLayout) -> BucketCodec:
    codec = bucket_fields(partition.template)[0].codec
    assert isinstance(codec, BucketCodec)
    return codec
