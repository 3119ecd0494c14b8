"""`solotable forget`: destroy the keys of data subjects, and list those that were forgotten."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from solotable.cli.exit_codes import FAILED
from solotable.cli.options.database import tenant_option
from solotable.cli.options.models import load_tables, models_option
from solotable.cli.output import confirm, json_option, note, on_one_line, plural, print_json, print_rows

if TYPE_CHECKING:
    from solotable._entities.declare.plan import Plan
    from solotable.encryption import Receipt, SubjectKeys


@click.command(
    "forget",
    epilog="Example: solotable forget u17 -m models.py --tenant acme --yes --json >> forgotten.jsonl",
)
@click.argument("subjects", nargs=-1, metavar="[SUBJECT]...")
@models_option
@tenant_option
@click.option("--kind", help="The kind of the subjects, if the models have several SubjectKeys.")
@click.option("--all-of-tenant", is_flag=True, help="Forget every subject of the tenant.")
@click.option(
    "--replay",
    type=click.File(encoding="utf-8"),
    metavar="FILE",
    help="Forget the subjects of these receipts (JSON lines) again, after a restore of the key store.",
)
@click.option("--list", "listing", is_flag=True, help="Forget nothing; print the receipts as JSON lines.")
@click.option("--dry-run", is_flag=True, help="Show which subjects have a key; destroy nothing.")
@click.option("-y", "--yes", is_flag=True, help="Skip the confirmation prompt.")
@json_option
def command(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    subjects: tuple[str, ...],
    models: str | None,
    tenant: str | None,
    kind: str | None,
    all_of_tenant: bool,
    replay: Any,
    listing: bool,
    dry_run: bool,
    yes: bool,
    as_json: bool,
) -> int:
    """Make the data of SUBJECTs unreadable, also in backups.

    It destroys their keys, and cannot be undone. Prints a receipt for each subject; --json prints them as
    JSON lines. Exits with 1 if a backup or a reader of the key store may still have a key.
    """
    ways = [bool(subjects), all_of_tenant, replay is not None, listing]
    if sum(ways) != 1:
        raise click.UsageError("Pass one of: SUBJECTs, --all-of-tenant, --replay FILE, --list.")
    plans = [plan for table in load_tables(models) for plan in table.plans.values() if plan.loads_keys]
    keys, owners = _choose(plans, kind)
    if listing:
        print_rows((each.row() for each in keys.forgotten() if tenant in (None, each.tenant)), "jsonl")
        return 0
    receipts = [] if replay is None else list(_read_receipts(replay))
    if replay is None:
        _check_tenant(owners, tenant, required=all_of_tenant)
    if all_of_tenant:
        subjects = tuple(each.subject for each in keys.of_tenant(str(tenant)) if each.wrapped is not None)
    named = [(tenant, each) for each in subjects] or [
        (each.tenant, each.subject) for each in receipts if each.kind == keys.kind
    ]
    if dry_run:
        _print_plan(keys, named, as_json=as_json)
        return 0
    if not yes:
        confirm(f"Forget {plural(len(named), keys.kind)}{_place(tenant)} for good?")
    if replay is not None:
        done = keys.replay(receipts)
    elif all_of_tenant:
        done = keys.forget_tenant(str(tenant))
    else:
        done = keys.forget_many(subjects, tenant=tenant)
    return _print_receipts(done, as_json=as_json)


def _choose(plans: Sequence[Plan], kind: str | None) -> tuple[SubjectKeys, list[Plan]]:
    """Return the SubjectKeys of a kind, and the entities with fields that it encrypts."""
    from solotable.encryption import SubjectKeys

    found: dict[int, tuple[SubjectKeys, list[Plan]]] = {}
    for plan in plans:
        assert plan.cipher is not None
        for marker in plan.cipher.markers.values():
            if isinstance(marker.keys, SubjectKeys):
                found.setdefault(id(marker.keys), (marker.keys, []))[1].append(plan)
    if not found:
        raise click.UsageError("No entity has an Encrypted(keys, subject=...) field; nothing to forget.")
    chosen = [each for each in found.values() if kind in (None, each[0].kind)]
    if len(chosen) != 1:
        kinds = ", ".join(sorted(each.kind for each, _ in found.values()))
        raise click.UsageError(f"Pass --kind to choose one of: {kinds}.")
    return chosen[0]


def _check_tenant(plans: Sequence[Plan], tenant: str | None, *, required: bool) -> None:
    scoped = {plan.tenant is not None for plan in plans}
    if tenant is None and (required or False not in scoped):
        raise click.UsageError("The subjects belong to a tenant; pass --tenant.")
    if tenant is not None and True not in scoped:
        raise click.UsageError("The subjects belong to global entities; leave out --tenant.")


def _read_receipts(lines: Iterable[str]) -> Iterator[Receipt]:
    from solotable.encryption import Receipt

    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
            if not isinstance(row, dict):
                raise ValueError("not a JSON object")
            yield Receipt.of_row(row)
        except ValueError as error:
            raise click.UsageError(f"--replay: line {number}: {error}.") from None


def _print_plan(keys: SubjectKeys, named: Sequence[tuple[str | None, str]], *, as_json: bool) -> None:
    rows = []
    for tenant, subject in named:
        found = keys.find(subject, tenant=tenant)
        state = "no key" if found is None else "key" if found.wrapped is not None else "forgotten"
        rows.append({"kind": keys.kind, "tenant": tenant, "subject": subject, "state": state})
    if as_json:
        print_json(rows)
        return
    for row in rows:
        click.echo(f"{on_one_line(row['subject'])}: {row['state']}")


def _print_receipts(receipts: Sequence[Receipt], *, as_json: bool) -> int:
    if as_json:
        print_rows((each.row() for each in receipts), "jsonl")
    else:
        for each in receipts:
            key = "" if each.had_key else " (it had no key)"
            at = each.forgotten_at.isoformat(timespec="seconds")
            click.echo(f"Forgot {each.kind} {on_one_line(each.subject)}{_place(each.tenant)} at {at}{key}.")
    warnings = receipts[0].warnings if receipts else ()
    for warning in warnings:
        note(warning)
    return FAILED if warnings else 0


def _place(tenant: str | None) -> str:
    return "" if tenant is None else f" of tenant {on_one_line(tenant)}"
