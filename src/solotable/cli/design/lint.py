"""`solotable lint`: prove the design of tables, and print what is wrong with it for people and for CI."""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from solotable import __version__
from solotable.cli.options.models import BrokenModels, load_tables, models_option, settings

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._entities.lint import Finding

#: From so many entities on, a summary names the table instead of each of them.
_MANY = 8
_GITHUB = {"error": "error", "warning": "warning", "note": "notice"}
_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_SARIF = "https://json.schemastore.org/sarif-2.1.0.json"


@dataclass(frozen=True, slots=True)
class _Report:
    tables: Sequence[Table]
    findings: Sequence[Finding]


@click.command("lint", epilog="Example: solotable lint models.py:surveyor --format github")
@click.argument("models_given", metavar="[MODELS]...", nargs=-1)
@models_option
@click.option(
    "--format",
    "shape",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="How findings are printed.",
)
@click.option("--select", multiple=True, metavar="CODES", help="Report only these, as ST1 or ST101,ST102.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Leave these out.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 whatever is found.")
def command(
    models_given: tuple[str, ...],
    models: str | None,
    shape: str,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exit_zero: bool,
) -> int:
    """Prove that no two entities share a key, that no pattern reads another's items, and more.

    MODELS is models.py:table, pkg.mod:table or pkg.mod. The exit code is 1 when there are errors or
    warnings; notes do not count. [tool.solotable.lint] in pyproject.toml takes select and ignore too.
    """
    kept = settings("lint")
    wanted = _codes("select", select or _listed(kept, "select"))
    unwanted = _codes("ignore", (*ignore, *_listed(kept, "ignore")))
    report = _examined(models_given or (models,))
    findings = _chosen(report.findings, wanted, unwanted)
    click.echo(_SHAPES[shape](_Report(report.tables, findings)))
    failed = any(each.severity != "note" for each in findings)
    return 1 if failed and not exit_zero else 0


def _examined(specs: Iterable[str | None]) -> _Report:
    from solotable._entities.lint import lint

    tables: dict[int, Table] = {}
    refused: list[Finding] = []
    for spec in specs:
        try:
            tables |= {id(table): table for table in load_tables(spec)}
        except BrokenModels as broken:
            refused.append(_refusal(broken))
    found = [each for table in tables.values() for each in lint(table)]
    return _Report(list(tables.values()), [*refused, *found])


def _refusal(broken: BrokenModels) -> Finding:
    """Return a declaration that was refused as a finding; what else an import raises is no finding."""
    from solotable._entities.lint import Finding
    from solotable.errors import DeclarationError

    if not isinstance(broken.cause, DeclarationError):
        raise broken
    return Finding(
        code="ST100",
        severity="error",
        table="",
        entity=None,
        where=broken.where,
        message=f"{str(broken.cause).rstrip('.')}.",
    )


def _listed(kept: dict[str, Any], name: str) -> tuple[str, ...]:
    value = kept.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise click.ClickException(f'pyproject.toml: [tool.solotable.lint] {name} is a list, as ["ST201"].')
    return tuple(value)


def _codes(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Read codes and beginnings of codes, refusing those that no code has."""
    from solotable._entities.lint import CODES

    codes = tuple(code for each in given for code in each.replace(",", " ").upper().split())
    for code in codes:
        if not any(known.startswith(code) for known in CODES):
            close = difflib.get_close_matches(code, CODES, n=1)
            advice = f"did you mean {close[0]}?" if close else f"there are {', '.join(CODES)}."
            raise click.UsageError(f"--{option}: there is no code {code!r}; {advice}")
    return codes


def _chosen(findings: Iterable[Finding], wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> list[Finding]:
    from solotable._entities.lint import ON_REQUEST

    chosen = []
    for each in findings:
        if each.code.startswith(unwanted):  # by none of them, when there is none
            continue
        if wanted and not each.code.startswith(wanted):
            continue
        if each.code in ON_REQUEST:
            if not wanted:
                continue
            # Who asks for it by name wants to be stopped by it.
            each = replace(each, severity="warning")  # noqa: PLW2901
        chosen.append(replace(each, where=_relative(each.where)))
    return chosen


def _relative(where: str | None) -> str | None:
    if where is None:
        return None
    file, _, line = where.rpartition(":")
    path = Path(file) if line.isdigit() else Path(where)
    try:
        shown = path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        shown = str(path)
    return f"{shown}:{line}" if line.isdigit() else shown


def _place(finding: Finding) -> tuple[str | None, int | None]:
    if finding.where is None:
        return None, None
    file, _, line = finding.where.rpartition(":")
    return (file, int(line)) if line.isdigit() else (finding.where, None)


def _text(report: _Report) -> str:
    lines = []
    for each in report.findings:
        severity = click.style(each.severity, fg=_COLOURS[each.severity])
        lines.append(f"{each.where or each.entity or each.table}: {each.code} {severity}: {each.message}")
    return "\n".join([*lines, *([""] if lines else []), *_summaries(report)])


def _summaries(report: _Report) -> list[str]:
    lines = []
    for table in report.tables:
        own = [each for each in report.findings if each.table == table.name]
        lines.append(f"{_counted(table)}; {_verdict(own)}")
    refused = [each for each in report.findings if not each.table]
    return [*lines, *([f"models that cannot be imported; {_verdict(refused)}"] if refused else [])]


def _counted(table: Table) -> str:
    plans = table.plans.values()
    names = sorted(plan.name for plan in plans)
    named = ", ".join(names) if 0 < len(names) <= _MANY else table.name
    entities = f"{len(names)} {'entity' if len(names) == 1 else 'entities'}"
    keys = _number(sum(len(plan.keys) for plan in plans), "key")
    patterns = _number(sum(len(plan.patterns) for plan in plans), "pattern")
    return f"{named}: {entities}, {keys}, {patterns}"


def _verdict(findings: Sequence[Finding]) -> str:
    counts = Counter(each.severity for each in findings)
    told = [_number(counts[each], each) for each in ("error", "warning", "note") if counts[each]]
    return ", ".join(told) or "nothing found"


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _json(report: _Report) -> str:
    tables = [
        {
            "name": table.name,
            "entities": sorted(plan.name for plan in table.plans.values()),
            "keys": sum(len(plan.keys) for plan in table.plans.values()),
            "patterns": sum(len(plan.patterns) for plan in table.plans.values()),
        }
        for table in report.tables
    ]
    return json.dumps({"tables": tables, "findings": [asdict(each) for each in report.findings]}, indent=2)


def _github(report: _Report) -> str:
    """Workflow commands, which GitHub shows beside the lines they name."""
    lines = []
    for each in report.findings:
        file, line = _place(each)
        facts = {"file": file, "line": line, "title": each.code}
        listed = ",".join(f"{name}={_escaped(str(fact), also=':,')}" for name, fact in facts.items() if fact)
        lines.append(f"::{_GITHUB[each.severity]} {listed}::{_escaped(each.message)}")
    return "\n".join([*lines, *_summaries(report)])


def _escaped(text: str, also: str = "") -> str:
    return "".join(f"%{ord(each):02X}" if each in "%\r\n" + also else each for each in text)


def _sarif(report: _Report) -> str:
    from solotable._entities.lint import CODES

    rules = [{"id": code, "shortDescription": {"text": title}} for code, title in CODES.items()]
    driver = {"name": "solotable", "version": __version__, "rules": rules}
    results = []
    for each in report.findings:
        result: dict[str, Any] = {
            "ruleId": each.code,
            "ruleIndex": list(CODES).index(each.code),
            "level": each.severity,
            "message": {"text": each.message},
        }
        file, line = _place(each)
        if file is not None:
            place: dict[str, Any] = {"artifactLocation": {"uri": file}}
            if line is not None:
                place["region"] = {"startLine": line}
            result["locations"] = [{"physicalLocation": place}]
        results.append(result)
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


_SHAPES: dict[str, Callable[[_Report], str]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
}
