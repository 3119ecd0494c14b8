"""Write the generated sections of the reference pages: `python docs/generate.py`.

A section is the text between `<!-- generated: name -->` and `<!-- end -->`. The rest of a page does not
change. A test compares the pages with the output of this program.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
#: The largest number of cases to name for one note; of more cases, only the first is named.
NAMED_CASES = 3


def current(page: Path) -> str:
    """Return the page with current generated sections."""
    text = page.read_text(encoding="utf-8")
    for name, section in PAGES[page].items():
        before, start, rest = text.partition(f"<!-- generated: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        text = f"{before}{start}{section()}\n{end}{after}"
    return text


def operations() -> str:
    """List the supported and the unsupported operations of AWS's API."""
    from solotable._protocol.constraints.operations import ITEMS
    from solotable._protocol.constraints.tables import STREAMS, TABLES
    from solotable._protocol.operations import UNSUPPORTED

    kinds = {"items": ITEMS, "tables": TABLES, "streams": STREAMS, "not supported": UNSUPPORTED}
    return "\n".join(
        f"- {kind}: {', '.join(f'`{operation}`' for operation in sorted(names))}"
        for kind, names in kinds.items()
    )


def conformance_cases() -> dict[str, list[Any]]:
    """Return the conformance cases by topic."""
    from tests.conformance import cases

    return {
        topic.name: importlib.import_module(f"{cases.__name__}.{topic.name}").CASES
        for topic in pkgutil.iter_modules(cases.__path__)
    }


def error_texts() -> str:
    """List the sources of the changed texts of AWS, with a case of each."""
    by_evidence: dict[str, list[str]] = defaultdict(list)
    for topic, cases_ in sorted(conformance_cases().items()):
        for case in cases_:
            if case.reworded:
                evidence = next(
                    step.expect.evidence for step in case.steps if getattr(step.expect, "evidence", "")
                )
                by_evidence[evidence].append(f"{topic.replace('_', ' ')}: {case.name}")
    total = sum(map(len, by_evidence.values()))
    lines = [f"{total} cases have different texts in 2025 and 2026.", ""]
    lines += ["| Captured by | Cases |", "|---|---|"]
    lines += [f"| {cell(source)} | {cell(named(names))} |" for source, names in sorted(by_evidence.items())]
    return "\n".join(lines)


def dynamodb_local() -> str:
    """List the behaviour of DynamoDB Local in the cases where it differs, by topic."""
    topics = conformance_cases()
    lines = [f"{sum(bool(case.local) for cases_ in topics.values() for case in cases_)} cases have a note."]
    for topic, cases_ in sorted(topics.items()):
        by_note: dict[str, list[str]] = defaultdict(list)
        for case in cases_:
            if case.local:
                by_note[case.local].append(case.name)
        if by_note:
            lines += ["", f"### {topic.replace('_', ' ')}", "", "| DynamoDB Local | Cases |", "|---|---|"]
            lines += [f"| {cell(note)} | {cell(named(names))} |" for note, names in sorted(by_note.items())]
    return "\n".join(lines)


def commands() -> str:
    """List the commands of the CLI by section, then describe each with its help text."""
    from solotable.cli.main import SECTIONS, every_command

    paths = dict(every_command())
    listed = []
    for section, names in SECTIONS.items():
        members = [path for path in paths if path.split()[0] in names]
        links = (f"[`{path}`](#solotable-{path.replace(' ', '-')})" for path in members)
        listed.append(f"- {section}: {', '.join(links)}")
    return "\n\n".join(["\n".join(listed), *(described(path, paths[path]) for path in paths)])


def described(path: str, command: click.Command) -> str:
    """Return the usage, description, options and example of one command."""
    words = [command.help or "", *([] if command.epilog is None else [command.epilog])]
    usage = " ".join(
        (each.metavar or (each.name or "").upper()) + ("..." if each.nargs == -1 and not each.metavar else "")
        for each in command.params
        if isinstance(each, click.Argument)
    )
    lines = [f"### `solotable {path}`", "", f"`solotable {path} {usage}".rstrip() + "`"]
    for text in words:
        for paragraph in text.split("\n\n"):
            shown = " ".join(paragraph.split())
            start, _, example = shown.partition("Example: ")
            lines += ["", f"```console\n$ {example}\n```" if example and not start else shown]
    options = [each for each in command.params if isinstance(each, click.Option)]
    if options:
        lines += ["", "| Option | |", "|---|---|"]
        lines += [f"| `{cell_of(each)}` | {cell(help_of(each))} |" for each in options]
    return "\n".join(lines)


def surveys_patterns() -> str:
    """List the access patterns of the surveys: pattern, index, key condition, cost."""
    from solotable._entities.patterns.access_patterns import access_patterns
    from solotable.systems.surveys import surveyor

    lines = ["| Pattern | Index | Key condition | Cost | Returns |", "|---|---|---|---|---|"]
    for each in access_patterns([surveyor]):
        # The parts of a mixed query share their partition.
        condition = "; or ".join(f"`{part}`" for part in each.key_condition.split(" OR "))
        index = each.index or "the table"
        lines.append(f"| `{each.name}` | {index} | {condition} | {each.cost} | {each.summary} |")
    return "\n".join(lines)


def help_of(option: click.Option) -> str:
    """Return the help of an option with its default, if `--help` shows it."""
    default = f" Default: {option.default}." if option.show_default else ""
    return f"{option.help or ''}{default}"


def cell_of(option: click.Option) -> str:
    """Return an option in the form of its usage."""
    kind = "N" if option.type.name.startswith(("integer", "float")) else option.type.name.upper()
    return ", ".join(option.opts) + ("" if option.is_flag else f" {option.metavar or kind}")


def named(names: list[str]) -> str:
    if len(names) <= NAMED_CASES:
        return "; ".join(names)
    return f"{len(names)} cases, for example: {names[0]}"


def cell(text: str) -> str:
    """Escape the text for a Markdown table."""
    return re.sub(r"([|<>*_`\\\[\]])", r"\\\1", " ".join(text.split()))


PAGES = {
    REFERENCE / "differences.md": {
        "operations": operations,
        "error-texts": error_texts,
        "dynamodb-local": dynamodb_local,
    },
    REFERENCE / "cli.md": {"commands": commands},
    REFERENCE / "surveys-patterns.md": {"patterns": surveys_patterns},
}


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    for page in PAGES:
        page.write_text(current(page), encoding="utf-8")
