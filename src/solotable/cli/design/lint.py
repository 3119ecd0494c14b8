"""`solotable lint`: check the design of tables, and print findings for a terminal or for CI."""

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
from solotable.cli.output import plural

if TYPE_CHECKING:
    from solotable._entities.declare.table import Table
    from solotable._entities.lint import Finding

#: Above this many entities, a summary names the table instead of the entities.
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
    "output",
    type=click.Choice(["text", "json", "github", "sarif"]),
    default="text",
    show_default=True,
    help="Format of the findings.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, as --format json does.")
@click.option("--select", multiple=True, metavar="CODES", help="Report only these: ST1 or ST101,ST102.")
@click.option("--ignore", multiple=True, metavar="CODES", help="Do not report these.")
@click.option("--exit-zero", is_flag=True, help="Exit with 0 even if there are findings.")
def command(
    models_given: tuple[str, ...],
    models: str | None,
    output: str,
    as_json: bool,
    select: tuple[str, ...],
    ignore: tuple[str, ...],
    exit_zero: bool,
) -> int:
    """Check the tables for clashing keys and costly patterns.

    MODELS is models.py:table, pkg.mod:table or pkg.mod. Exits with 1 if there are errors or warnings;
    notes do not count. [tool.solotable.lint] in pyproject.toml accepts select and ignore.
    """
    configured = settings("lint")
    wanted = _codes("select", select or _configured_codes(configured, "select"))
    unwanted = _codes("ignore", (*ignore, *_configured_codes(configured, "ignore")))
    report = _lint(models_given or (models,))
    findings = _select(report.findings, wanted, unwanted)
    click.echo(_WRITERS["json" if as_json else output](_Report(report.tables, findings)))
    failed = any(each.severity != "note" for each in findings)
    return 1 if failed and not exit_zero else 0


def _lint(specs: Iterable[str | None]) -> _Report:
    from solotable._entities.lint import lint

    tables: dict[int, Table] = {}
    broken: list[Finding] = []
    for spec in specs:
        try:
            tables |= {id(table): table for table in load_tables(spec)}
        except BrokenModels as error:
            broken.append(_finding_of(error))
    found = [each for table in tables.values() for each in lint(table)]
    return _Report(list(tables.values()), [*broken, *found])


def _finding_of(broken: BrokenModels) -> Finding:
    """Return a DeclarationError as a finding; raise any other error of the import."""
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
        message=_sentence(str(broken.cause)),
    )


def _sentence(text: str) -> str:
    return text if text.endswith((".", "?", "!")) else f"{text}."


def _configured_codes(configured: dict[str, Any], name: str) -> tuple[str, ...]:
    value = configured.get(name, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise click.ClickException(
            f'pyproject.toml: [tool.solotable.lint] {name} must be a list, such as ["ST201"].'
        )
    return tuple(value)


def _codes(option: str, given: Iterable[str]) -> tuple[str, ...]:
    """Parse codes and prefixes of codes; reject unknown ones."""
    from solotable._entities.lint import CODES

    codes = tuple(code for each in given for code in each.replace(",", " ").upper().split())
    for code in codes:
        if not any(known.startswith(code) for known in CODES):
            close = difflib.get_close_matches(code, CODES, n=1)
            advice = f"did you mean {close[0]}?" if close else f"the codes are {', '.join(CODES)}."
            raise click.UsageError(f"--{option}: unknown code {code!r}; {advice}")
    return codes


def _select(findings: Iterable[Finding], wanted: tuple[str, ...], unwanted: tuple[str, ...]) -> list[Finding]:
    from solotable._entities.lint import ON_REQUEST

    chosen = []
    for each in findings:
        if each.code.startswith(unwanted):  # False for an empty tuple
            continue
        if wanted and not each.code.startswith(wanted):
            continue
        if each.code in ON_REQUEST:
            if not wanted:
                continue
            # Selected by name: a finding must change the exit code.
            each = replace(each, severity="warning")  # noqa: PLW2901
        chosen.append(replace(each, where=_relative_path(each.where)))
    return chosen


def _relative_path(where: str | None) -> str | None:
    if where is None:
        return None
    file, _, line = where.rpartition(":")
    path = Path(file) if line.isdigit() else Path(where)
    try:
        shown = path.relative_to(Path.cwd()).as_posix()
    except ValueError:
        shown = str(path)
    return f"{shown}:{line}" if line.isdigit() else shown


def _location(finding: Finding) -> tuple[str | None, int | None]:
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
        lines.append(f"{_count_entities(table)}; {_verdict(own)}")
    broken = [each for each in report.findings if not each.table]
    return [*lines, *([f"models that cannot be imported; {_verdict(broken)}"] if broken else [])]


def _count_entities(table: Table) -> str:
    plans = table.plans.values()
    names = sorted(plan.name for plan in plans)
    named = ", ".join(names) if 0 < len(names) <= _MANY else table.name
    entities = plural(len(names), "entity", "entities")
    keys = plural(sum(len(plan.keys) for plan in plans), "key")
    patterns = plural(sum(len(plan.patterns) for plan in plans), "pattern")
    return f"{named}: {entities}, {keys}, {patterns}"


def _verdict(findings: Sequence[Finding]) -> str:
    counts = Counter(each.severity for each in findings)
    counted = [plural(counts[each], each) for each in ("error", "warning", "note") if counts[each]]
    return ", ".join(counted) or "nothing found"


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
    """Return workflow commands, which GitHub shows beside the lines."""
    lines = []
    for each in report.findings:
        file, line = _location(each)
        facts = {"file": file, "line": line, "title": each.code}
        listed = ",".join(f"{name}={_escape(str(fact), also=':,')}" for name, fact in facts.items() if fact)
        lines.append(f"::{_GITHUB[each.severity]} {listed}::{_escape(each.message)}")
    return "\n".join([*lines, *_summaries(report)])


def _escape(text: str, also: str = "") -> str:
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
        file, line = _location(each)
        if file is not None:
            location: dict[str, Any] = {"artifactLocation": {"uri": file}}
            if line is not None:
                location["region"] = {"startLine": line}
            result["locations"] = [{"physicalLocation": location}]
        results.append(result)
    run = {"tool": {"driver": driver}, "results": results}
    return json.dumps({"$schema": _SARIF, "version": "2.1.0", "runs": [run]}, indent=2)


_WRITERS: dict[str, Callable[[_Report], str]] = {
    "text": _text,
    "json": _json,
    "github": _github,
    "sarif": _sarif,
}
