"""Check a mapping with items of its sources, before the migration starts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.traits.counters import Counted
from solotable._protocol.requests import PutItem
from solotable._values import Item
from solotable.errors import DeclarationError

from .outputs import Output, OutputKey, Outputs

if TYPE_CHECKING:
    from .mapping import Mapping as Rules


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a mapping, and the source item that shows it."""

    kind: str
    source: str
    key: Item
    text: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.source} {self.key}: {self.text}"


@dataclass(slots=True)
class CheckReport:
    """What a check found.

    `problems` keep a migration from starting: an output that is invalid or differs when the rule runs again,
    one key from two source items, a wrong counter, an inverse that does not lead to the same entities.
    """

    #: The numbers of source items and of outputs.
    items: int = 0
    outputs: int = 0
    problems: list[Problem] = field(default_factory=list)
    #: The number of items that their inverse rebuilds, and of those that it rebuilds to the byte.
    reversed: int = 0
    identical: int = 0
    #: Entities that no inverse takes: what the application creates after the switch does not go back.
    one_way: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether the migration may start."""
        return not self.problems

    def raise_if_bad(self) -> None:
        """Raise DeclarationError with the first problems."""
        if self.problems:
            shown = "; ".join(map(str, self.problems[:3]))
            more = f"; and {len(self.problems) - 3} more" if len(self.problems) > 3 else ""
            raise DeclarationError(f"The mapping cannot start: {shown}{more}.")


@dataclass(frozen=True, slots=True)
class _Sample:
    source: str
    item: Item
    key: Item
    outputs: Outputs


def check_mapping(mapping: Rules, samples: Mapping[str, Iterable[Item]]) -> CheckReport:
    """Run every check on samples of the sources."""
    report = CheckReport()
    found: list[_Sample] = []
    for source, items in samples.items():
        for item in items:
            key = mapping.sources[source].key_of(item)
            outputs = mapping.outputs(source, item)
            report.items += 1
            report.outputs += len(outputs.items)
            report.problems += [Problem("dead letter", source, key, dead.cause) for dead in outputs.dead]
            report.problems += _differences(mapping, source, item, key, outputs)
            found.append(_Sample(source, item, key, outputs))
    report.problems += _collisions(found)
    report.problems += _counters(mapping, found)
    if mapping.is_reversible and mapping.inverses:
        _check_inverse(mapping, found, report)
    return report


def _differences(mapping: Rules, source: str, item: Item, key: Item, outputs: Outputs) -> Iterator[Problem]:
    again = mapping.outputs(source, item)
    if again.items.keys() != outputs.items.keys():
        other = next(iter(again.items.keys() ^ outputs.items.keys()))
        text = f"the rule gives other keys when it runs again, such as {other[1:]}; use stable_id()"
        yield Problem("not deterministic", source, key, text)
        return
    for at, output in outputs.items.items():
        before, after = mapping.comparable(output.item), mapping.comparable(again.items[at].item)
        if before != after:
            names = sorted(name for name in {**before, **after} if before.get(name) != after.get(name))
            text = f"{output.entity} has another {', '.join(names)} when the rule runs again"
            yield Problem("not deterministic", source, key, text)


def _collisions(samples: Iterable[_Sample]) -> Iterator[Problem]:
    owners: dict[OutputKey, tuple[_Sample, Output]] = {}
    for sample in samples:
        for at, output in sample.outputs.items.items():
            other, theirs = owners.setdefault(at, (sample, output))
            if other is sample or (
                output.kind == theirs.kind == "part" and output.owned.isdisjoint(theirs.owned)
            ):
                continue
            text = f"{output.entity} {output.key} also comes from {other.source} {other.key}"
            yield Problem("one key from two items", sample.source, sample.key, text)


def _counters(mapping: Rules, samples: Iterable[_Sample]) -> Iterator[Problem]:
    """Compare the counters of parents with their children in the same source item."""
    plans = mapping.target.plans
    recounted = {(parent.plan().tag, name) for parent, name in mapping.recounted}
    counted = {
        (trait.of.tag, trait.field)
        for plan in plans.values()
        for trait in plan.traits
        if isinstance(trait, Counted)
    } - recounted
    if not counted:
        return
    parents: dict[tuple[str, str], tuple[_Sample, Any]] = {}
    shares: dict[tuple[str, str], dict[str, Decimal]] = defaultdict(lambda: defaultdict(Decimal))
    strangers: dict[tuple[str, str], _Sample] = {}
    entities = [
        (sample, plans[output.entity], plans[output.entity].decode(output.item, STORED))
        for sample in samples
        for output in sample.outputs.items.values()
        if output.entity in plans and output.kind == "put"
    ]
    for sample, plan, entity in entities:
        parents[plan.tag, repr(plan.key_of(entity.__dict__))] = (sample, entity)
    for sample, plan, entity in entities:
        for trait in plan.traits:
            if not isinstance(trait, Counted) or (trait.of.tag, trait.field) not in counted:
                continue
            share = trait.share(entity)
            if share is None:
                continue
            at = trait.of.tag, repr(trait.of.key_of({**entity.__dict__, **share[0]}))
            shares[at][trait.field] += share[1]
            if at in parents and parents[at][0] is not sample:
                strangers[at] = sample
    for at, (sample, parent) in parents.items():
        for tag, name in counted:
            if tag != at[0]:
                continue
            if at in strangers:
                text = (
                    f"{tag}.{name} counts entities of {strangers[at].source} {strangers[at].key}, another "
                    f"source item; declare mapping.recounts({tag}, {name!r})"
                )
                yield Problem("counter", sample.source, sample.key, text)
            elif Decimal(getattr(parent, name)) != shares[at][name]:
                text = f"{tag}.{name} is {getattr(parent, name)}, but the rule yields {shares[at][name]}"
                yield Problem("counter", sample.source, sample.key, text)


def _check_inverse(mapping: Rules, samples: list[_Sample], report: CheckReport) -> None:
    """Write the outputs to a database in memory, build the source items from it, and map them again."""
    back = mapping.reversed()
    covered = tuple(entity for inverse in mapping.inverses.values() for entity in inverse.entities)
    seen: set[str] = set()
    with mapping.target.open("sqlite://") as db:
        table = db.scope.table(mapping.target)
        for sample in samples:
            for output in sample.outputs.items.values():
                if output.kind == "put":
                    db.engine.handle(PutItem(table=table, item=output.item))
                seen.add(output.entity)
        for sample in samples:
            if not sample.outputs.items or any(o.kind == "part" for o in sample.outputs.items.values()):
                continue
            report.problems += _round_trip(mapping, back, db, sample, report)
    report.one_way = sorted(
        tag
        for tag in seen
        if tag in mapping.target.plans
        and not issubclass(mapping.target.plans[tag].entity, covered or (type(None),))
    )


def _round_trip(
    mapping: Rules, back: Any, db: Any, sample: _Sample, report: CheckReport
) -> Iterator[Problem]:
    built: dict[OutputKey, Item] = {}
    for output in sample.outputs.items.values():
        found = back.outputs(mapping.target.name, output.item)
        for dead in found.dead:
            yield Problem("inverse", sample.source, sample.key, dead.cause)
            return
        for at, old in found.items.items():
            if at in built or old.table != sample.source:
                continue
            item = back.gather(old, db) if old.kind == "gather" else old.item
            if item is not None:
                built[at] = item
    if (
        len(built) != 1
        or next(iter(mapping.sources[sample.source].key_of(each) for each in built.values())) != sample.key
    ):
        text = f"the inverse builds {len(built)} items with other keys, expected the item itself"
        yield Problem("inverse", sample.source, sample.key, text)
        return
    item = next(iter(built.values()))
    report.reversed += 1
    report.identical += item == sample.item
    again = mapping.outputs(sample.source, item)
    yield from _changed_by_inverse(mapping, sample, again)


def _changed_by_inverse(mapping: Rules, sample: _Sample, again: Outputs) -> Iterator[Problem]:
    for dead in again.dead:
        yield Problem("inverse", sample.source, sample.key, f"the rule rejects the item built: {dead.cause}")
        return
    for at in {**sample.outputs.items, **again.items}:
        before, after = sample.outputs.items.get(at), again.items.get(at)
        if before is None or after is None:
            what = "lost" if after is None else "added"
            yield Problem("inverse", sample.source, sample.key, f"the way back and forth {what} {at[1:]}")
            continue
        one, other = mapping.comparable(before.item), mapping.comparable(after.item)
        if one != other:
            names = sorted(name for name in {**one, **other} if one.get(name) != other.get(name))
            text = f"the way back and forth changes {before.entity} {before.key}: {', '.join(names)}"
            yield Problem("inverse", sample.source, sample.key, text)
