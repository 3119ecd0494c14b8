"""Parse the arguments of commands: entities and patterns by name, `name=value` by type.

`name=value` is parsed by the type of the field or parameter. `name:=json` is JSON, for null, lists and
maps. An argument that cannot be parsed is a usage error with one sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.output import MASK

if TYPE_CHECKING:
    from pydantic import ValidationError

    from solotable._entities.declare.plan import Plan
    from solotable._entities.declare.table import Table
    from solotable._entities.patterns.pattern import Pattern
    from solotable._entities.patterns.query import Query

#: Whether a value at a location of a model must not be shown; see `Plan.is_secret`.
IsSecret = Callable[[Sequence[Any]], bool]


def find_plan(tables: Iterable[Table], name: str) -> Plan:
    """Return the entity of this name, or list the entities."""
    plans = {plan.name: plan for table in tables for plan in table.plans.values()}
    if name not in plans:
        raise click.UsageError(f"No such entity {name!r}; {_advice(name, plans)}")
    return plans[name]


def find_pattern(tables: Sequence[Table], name: str) -> tuple[Plan, Pattern]:
    """Return the pattern `Entity.pattern` and its entity, or list the patterns."""
    known = {
        f"{plan.name}.{each}": (plan, pattern)
        for table in tables
        for plan in table.plans.values()
        for each, pattern in plan.patterns.items()
    }
    if name not in known:
        alone = [full for full in known if full.partition(".")[2] == name]
        if len(alone) != 1:
            raise click.UsageError(f"No such pattern {name!r}; {_advice(name, known)}")
        name = alone[0]
    return known[name]


def parse_fields(plan: Plan, given: Sequence[str]) -> dict[str, Any]:
    """Parse `field=value` by the types of an entity's fields."""
    from solotable._entities.patterns.paths import field_path

    kinds = {name: field_path(plan, name).validated for name in plan.attributes}
    secret = {name for name, attribute in plan.attributes.items() if attribute.encrypted is not None}
    return parse_values(given, kinds, plan.name, secret)


def parse_paths(plan: Plan, given: Sequence[str]) -> dict[str, Any]:
    """Parse `path=value` by the type at the path, which may be dotted."""
    from solotable._entities.patterns.paths import resolve
    from solotable.errors import DeclarationError

    found: dict[str, Any] = {}
    for text in given:
        name, _, _ = _split_argument(text)
        try:
            path = resolve(plan, name)
        except DeclarationError as error:
            raise click.UsageError(str(error)) from None
        secret = () if path.attribute.encrypted is None else (name,)
        found |= parse_values([text], {name: path.validated}, plan.name, secret)
    return found


def build_query(plan: Plan, pattern: Pattern, given: Sequence[str]) -> Query[Any]:
    """Call a pattern with `parameter=value`; in the admin scope the tenant may be one of them."""
    from solotable._entities.patterns.pattern import BoundPattern
    from solotable._entities.patterns.samples import argument_types
    from solotable.errors import DataError, DeclarationError

    bound = BoundPattern(pattern, plan.entity)
    try:
        kinds: dict[str, Any] = dict(argument_types(plan.entity, pattern))
    except DataError as error:
        raise click.UsageError(str(error)) from None
    tenant = plan.tenant if plan.tenant not in kinds else None
    values = parse_values(given, kinds | ({tenant: str} if tenant else {}), bound.name)
    tenant_given = values.pop(tenant, None) if tenant else None
    missing = [
        each.name
        for each in pattern.parameters
        if each.default is each.empty
        and each.name not in values
        and each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)
    ]
    if missing:
        wanted = " ".join(f"{name}=..." for name in missing)
        raise click.UsageError(f"{bound.name} needs {' and '.join(missing)}; add: {wanted}")
    positional = [values.pop(each.name) for each in pattern.parameters if each.kind is each.POSITIONAL_ONLY]
    try:
        query = bound(*positional, **values)
    except (DataError, DeclarationError) as error:
        raise click.UsageError(str(error)) from None
    if tenant_given is None:
        return query
    return query.with_arguments({str(tenant): tenant_given})


def parse_values(
    given: Sequence[str], kinds: Mapping[str, Any], owner: str, secret: Container[str] = ()
) -> dict[str, Any]:
    """Parse `name=value` and `name:=json` by these types; errors do not show the values of secret names."""
    found: dict[str, Any] = {}
    for text in given:
        name, value, is_json = _split_argument(text)
        if name not in kinds:
            raise click.UsageError(f"{owner} has no {name!r}; {_advice(name, kinds)}")
        if name in found:
            raise click.UsageError(f"Duplicate argument {name!r}.")
        if name in secret:
            _check_not_masked(f"{owner}.{name}", value)
        found[name] = _parse_value(
            f"{owner}.{name}", value, kinds[name], is_json=is_json, secret=name in secret
        )
    return found


def build_entity(plan: Plan, values: Any, *, as_json: bool = False) -> Any:
    """Return an entity with these values; raise a usage error with one sentence per field."""
    import json

    from pydantic import ValidationError

    for name, attribute in plan.attributes.items():
        if attribute.encrypted is not None:
            alias = plan.entity.model_fields[name].alias or name
            _check_not_masked(f"{plan.name}.{name}", values.get(name, values.get(alias)))
    try:
        if as_json:
            return plan.entity.model_validate_json(json.dumps(values))
        return plan.entity(**values)
    except ValidationError as error:
        raise click.UsageError(describe_errors(plan.name, error, plan.is_secret)) from None


def describe_errors(owner: str, invalid: ValidationError, is_secret: IsSecret) -> str:
    """Return the errors of a ValidationError, one sentence per field, without secret values."""
    lines = []
    for error in invalid.errors(include_url=False, include_context=False):
        where = ".".join((owner, *(str(part) for part in error["loc"])))
        if error["type"] == "missing":
            lines.append(f"{where} is missing.")
        else:
            given = MASK if is_secret(error["loc"]) else repr(error.get("input"))
            shown = given if len(given) <= 60 else f"{given[:57]}..."
            lines.append(f"{where} = {shown}: {error['msg'][:1].lower()}{error['msg'][1:]}.")
    return "\n".join(lines)


def _check_not_masked(where: str, value: Any) -> None:
    """Reject the mask as a value: it is what a command printed, so the value would be lost."""
    if value == MASK:
        raise click.UsageError(
            f"{where} = {MASK} is what commands print instead of an encrypted value; pass the value, which "
            f"get --show-encrypted prints."
        )


def _parse_value(where: str, text: str, kind: Any, *, is_json: bool, secret: bool) -> Any:
    from pydantic import TypeAdapter, ValidationError

    adapter = TypeAdapter(kind)
    validators = [adapter.validate_json] if is_json else [adapter.validate_strings]
    # Lists and maps have no other notation.
    if not is_json and text[:1] in ("[", "{"):
        validators.append(adapter.validate_json)
    problem = ""
    for validate in validators:
        try:
            return validate(text)
        except ValidationError as error:
            problem = describe_errors(where, error, lambda _: secret)
    raise click.UsageError(problem)


def _split_argument(text: str) -> tuple[str, str, bool]:
    name, sign, value = text.partition("=")
    if not sign or not name.removesuffix(":"):
        raise click.UsageError(f"Cannot parse {text!r}; write name=value, or name:=json.")
    return name.removesuffix(":"), value, name.endswith(":")


def _advice(name: str, known: Iterable[str]) -> str:
    from solotable._entities.declare.table import suggestion

    return suggestion(name, known)
