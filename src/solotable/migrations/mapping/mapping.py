"""Mapping: the rules by which the items of source tables become items of one table."""

from __future__ import annotations

import hashlib
from collections import abc
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError

from solotable._entities.codecs.item_decoder import STORED
from solotable._entities.declare import table as declared
from solotable._entities.declare.entity import Entity
from solotable._entities.declare.table import suggestion
from solotable._entities.traits.counters import Counted
from solotable._store import Database
from solotable._table import Table
from solotable._values import Item, load_item
from solotable.errors import DataError, DeclarationError, SolotableError

from .check import CheckReport, check_mapping
from .encode import comparable, encode_yielded
from .inverse import Inverse, ReversedMapping, check_inverse
from .outputs import DeadLetter, Output, OutputKey, Outputs, output_key
from .parts import PartFields, check_disjoint
from .source import Source

Function = Callable[[Any], Any]
#: The longest cause that a dead letter keeps.
_LONGEST_CAUSE = 500
_NAMED_ERRORS = 3
_RECOUNT_BUDGET = 10**12


@dataclass(frozen=True, slots=True)
class Rule:
    """A function from an item of a source to entities."""

    source: str
    function: Function
    #: The entities of a declared source table that the rule takes; empty for all items.
    takes: tuple[type[Entity], ...] = ()
    raw: bool = False
    parts: dict[type[Entity], PartFields] = field(default_factory=dict)


class Mapping:
    """The rules of a migration: `Mapping(shop, Source("Users", key="id"), Source("Orders", key="id"))`.

    Decorate a function for each source with `rule`. It takes an item and yields the entities of the target
    table that the item becomes. It reads no clock and no other item, and makes no random id: the migration
    calls it again for each change of the item, and compares the results.
    """

    def __init__(self, target: Table, *sources: Source) -> None:
        if not sources:
            raise DeclarationError("A Mapping needs at least one Source.")
        self.target = target
        self.sources: dict[str, Source] = {}
        for source in sources:
            if self.sources.setdefault(source.name, source) is not source:
                raise DeclarationError(f"A Mapping has the source {source.name!r} twice.")
        self._rules: dict[str, list[Rule]] = {name: [] for name in self.sources}
        self._declared_parts: dict[str, dict[type[Entity], tuple[str, ...]]] = {}
        self._inverses: dict[str, Inverse] = {}
        self._recounted: list[tuple[type[Entity], str]] = []
        self._ignored: dict[str, frozenset[str]] = {}
        self._copied: set[str] = set()

    def rule(
        self,
        source: str,
        *entities: type[Entity],
        raw: bool = False,
        parts: abc.Mapping[type[Entity], Iterable[str]] | None = None,
    ) -> Callable[[Function], Function]:
        """Register a function from an item to the entities that it becomes.

        - `entities` are those of a declared source table that the function takes.
        - `raw=True` passes the item in wire form. Such a function may yield items in wire form too.
        - `parts` names the fields that this source gives to an entity of several sources.
        """
        found = self._source(source)
        if entities and found.table is None:
            raise DeclarationError(
                f"rule({source!r}): the source is not a declared table, so its items are not entities; "
                f"remove {entities[0].__name__}."
            )
        given = {entity: tuple(names) for entity, names in (parts or {}).items()}

        def register(function: Function) -> Function:
            if given:
                check_disjoint({**self._declared_parts, source: given})
                self._declared_parts[source] = given
            self._rules[source].append(Rule(source, function, entities, raw))
            if given:
                self._bind_parts()
            return function

        return register

    def copy(self, source: str) -> None:
        """Copy the items of a source as they are, with the internal items of the store, such as locks."""
        if self._source(source).key_names != self.target.key_names:
            raise DeclarationError(
                f"copy({source!r}): the source has the key {self.sources[source].key_names}, the target "
                f"{self.target.key_names}; write a rule."
            )
        self._rules[source].append(Rule(source, lambda item: (item,), raw=True))
        self._copied.add(source)

    def inverse(
        self,
        source: str,
        *entities: type[Entity],
        key: Callable[[Any], abc.Mapping[str, Any]] | None = None,
        read: Callable[[Database, abc.Mapping[str, Any]], Iterable[Entity]] | None = None,
        snapshots: bool = False,
    ) -> Callable[[Function], Function]:
        """Register the function that builds an item of a source from entities, for the way back.

        For one entity class, the function takes one entity. For several, it takes a list of the entities of
        one source item, of which the first class has one. Then `key` returns the key of the source item of an
        entity, and `read` gets it and reads all its entities with `consistent()`. If `read` needs more than
        the key, such as the tenant, `key` returns it too. The function returns the item as a dict
        or a model; None deletes it. With `snapshots=True` it also takes a `Snapshot` of a former version.
        """
        found = self._source(source)

        def register(function: Function) -> Function:
            inverse = Inverse(found, entities, function, key, read, snapshots)
            check_inverse(self.target, inverse)
            self._inverses[source] = inverse
            return function

        return register

    def recounts(self, parent: type[Entity], field: str) -> None:
        """Declare a counter whose children come from other source items than their parent.

        A rule cannot know its value. The switch of the writes counts the children, and `diff` ignores it.
        """
        if field not in parent.plan().counters:
            raise DeclarationError(f"recounts({parent.__name__}, {field!r}): the field is not a Counter().")
        self._recounted.append((parent, field))
        plan = parent.plan()
        self._ignored[plan.tag] = self._ignored.get(plan.tag, frozenset()) | {plan.attributes[field].wire}

    def outputs(self, source: str, item: Item) -> Outputs:
        """Return the items of the target that an item of a source becomes; pure, the same for each call."""
        found = self._source(source)
        try:
            if not found.is_whole and not found.includes(item):
                return Outputs()
            items: dict[OutputKey, Output] = {}
            for output in self._encode(found, item):
                key = output_key(output.table, output.key)
                if items.setdefault(key, output) is not output:
                    raise DataError(f"The rule yields two items with the key {output.key}.")
        except Exception as error:  # noqa: BLE001 - whatever a rule raises is a dead letter
            return Outputs(dead=(DeadLetter(source, found.key_of(item), describe_cause(error)),))
        return Outputs(items)

    def _encode(self, source: Source, item: Item) -> list[Output]:
        decoded: Any = None
        outputs: list[Output] = []
        rules = self._rules[source.name]
        for rule in rules:
            if rule.takes:
                continue
            argument: Any = item
            if not rule.raw:
                if decoded is None:
                    decoded = load_item(item) if source.model is None else source.model(**load_item(item))
                argument = decoded
            for yielded in rule.function(argument) or ():
                outputs += encode_yielded(self.target, rule.parts, yielded)
        if source.table is not None:
            for rule, argument in self._entity_rules(source.table, rules, item):
                for yielded in rule.function(argument) or ():
                    outputs += encode_yielded(self.target, rule.parts, yielded)
        return outputs

    @staticmethod
    def _entity_rules(table: declared.Table, rules: list[Rule], item: Item) -> Iterator[tuple[Rule, Any]]:
        """Yield the rules that take the entity of an item, with their argument."""
        entities = [rule for rule in rules if rule.takes]
        if not entities:
            return
        plan = table.recognise(item)
        if plan is None:
            # Internal items, such as locks, follow from the entities.
            return
        matching = [rule for rule in entities if issubclass(plan.entity, rule.takes)]
        if not matching and len(entities) == len(rules):
            raise DataError(f"No rule takes the entity {plan.name}; write one, or exclude it with where=.")
        entity = plan.decode(item, STORED) if matching else None
        for rule in matching:
            yield rule, item if rule.raw else entity

    @property
    def parts(self) -> dict[str, tuple[PartFields, ...]]:
        """The parts of each entity that comes from several sources, by its tag."""
        found: dict[str, tuple[PartFields, ...]] = {}
        for rules in self._rules.values():
            for rule in rules:
                for each in rule.parts.values():
                    found[each.plan.tag] = (*found.get(each.plan.tag, ()), each)
        return found

    def part_attributes(self, source: str, tag: str) -> frozenset[str]:
        """Return the attributes that a source gives to an entity of several sources; empty if none."""
        return next(
            (
                each.owned
                for rule in self._rules[self._source(source).name]
                for each in rule.parts.values()
                if each.plan.tag == tag
            ),
            frozenset(),
        )

    def comparable(self, item: Item) -> Item:
        """Return an item of the target in the form in which two are compared."""
        return comparable(self.target, item, self._ignored)

    @property
    def compares_bytes(self) -> bool:
        """Whether items are compared as they are: nothing is encrypted, and no counter is ignored."""
        return not self._ignored and all(plan.cipher is None for plan in self.target.plans.values())

    @property
    def ignored(self) -> dict[str, frozenset[str]]:
        """The attributes that comparisons ignore, by tag: counters that the switch of the writes counts."""
        return dict(self._ignored)

    def recount(self, db: Database) -> int:
        """Set the counters of `recounts` to the number of their children; return how many were wrong.

        Call it while no other writer changes the children.
        """
        from solotable.jobs.recount import recount

        wrong = 0
        wanted = set(self._recounted)
        for plan in self.target.plans.values():
            if any(
                isinstance(trait, Counted) and (trait.parent, trait.field) in wanted for trait in plan.traits
            ):
                for found in recount(db.admin(), plan.entity, budget=_RECOUNT_BUDGET):
                    wrong += found.drifted
        return wrong

    @property
    def inverses(self) -> abc.Mapping[str, Inverse]:
        """The inverses by source."""
        return self._inverses

    @property
    def recounted(self) -> tuple[tuple[type[Entity], str], ...]:
        """The declared counters: parent and field."""
        return tuple(self._recounted)

    @property
    def is_reversible(self) -> bool:
        """Whether every source has an inverse."""
        return not self._irreversible

    @property
    def _irreversible(self) -> list[str]:
        return [name for name in self.sources if name not in self._inverses and name not in self._copied]

    def reversed(self) -> ReversedMapping:
        """Return the mapping of the way back, or raise DeclarationError if a source has no inverse."""
        if self._irreversible:
            raise DeclarationError(
                f"The source {self._irreversible[0]!r} has no inverse, so its writes cannot go back; write "
                f"@mapping.inverse({self._irreversible[0]!r}, ...)."
            )
        return ReversedMapping(self.target, self.sources, self._inverses, self._copied, self.outputs)

    def check(self, samples: abc.Mapping[str, Iterable[Item]]) -> CheckReport:
        """Check the mapping with items of its sources before it starts; see `CheckReport`."""
        for name, rules in self._rules.items():
            if not rules:
                raise DeclarationError(f"The source {name!r} has no rule; write @mapping.rule({name!r}).")
        for name in samples:
            self._source(name)
        return check_mapping(self, samples)

    @property
    def fingerprint(self) -> str:
        """A digest of the sources and the code of the rules; another one is another mapping."""
        digest = hashlib.sha256(self.target.name.encode())
        for name, rules in self._rules.items():
            digest.update(repr((name, self.sources[name].key_names, self.sources[name].tenant)).encode())
            for rule in rules:
                code = getattr(rule.function, "__code__", None)
                digest.update(getattr(rule.function, "__qualname__", "").encode())
                digest.update(b"" if code is None else code.co_code)
        return digest.hexdigest()[:16]

    def _bind_parts(self) -> None:
        """Compile the parts of all rules: what a rule may give depends on the parts of the others."""
        for name, rules in self._rules.items():
            for at, rule in enumerate(rules):
                mine = self._declared_parts.get(name, {})
                if not mine or rule.takes:
                    continue
                bound = {}
                for entity, fields in mine.items():
                    others = {
                        each
                        for other, given in self._declared_parts.items()
                        if other != name
                        for each in given.get(entity, ())
                    }
                    bound[entity] = PartFields(entity, fields, others)
                rules[at] = Rule(rule.source, rule.function, rule.takes, rule.raw, bound)

    def _source(self, name: str) -> Source:
        found = self.sources.get(name)
        if found is None:
            raise DeclarationError(f"The mapping has no source {name!r}; {suggestion(name, self.sources)}")
        return found

    def __repr__(self) -> str:
        return f"Mapping({self.target.name!r}, {', '.join(map(repr, self.sources.values()))})"


def describe_cause(error: Exception) -> str:
    """Return why an item cannot be migrated, without values that the field hides."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[:_NAMED_ERRORS]
        texts = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in first]
        return f"{error.title}: {'; '.join(texts)}"[:_LONGEST_CAUSE]
    if isinstance(error, SolotableError):
        return str(error)[:_LONGEST_CAUSE]
    return f"{type(error).__name__}: {error}"[:_LONGEST_CAUSE]
