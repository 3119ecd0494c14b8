"""Write the generated sections of the reference and performance pages: `python docs/generate.py`.

A section is the text between `<!-- generated: name -->` and `<!-- end -->`. The rest of a page does not
change. A test compares the pages with the output of this program.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

ROOT = Path(__file__).resolve().parents[1]
REFERENCE = ROOT / "docs" / "reference"
API = ROOT / "docs" / "api"
EXPLANATION = ROOT / "docs" / "explanation"
#: The largest number of cases to name for one note; of more cases, only the first is named.
NAMED_CASES = 3
#: The pages of the names in `solotable`: each has the names that come from modules with these prefixes.
API_OF_PACKAGE = {
    "models": ("_table", "_entities.declare", "_entities.keys", "_entities.codecs", "_entities.hooks", "ids"),
    "traits": ("_entities.traits", "_entities.schema", "_entities.synced"),
    "queries": ("_entities.patterns", "_store.page"),
    "stores": ("_connect", "_store", "_flows"),
    "errors": ("errors",),
}
#: The other pages, and the modules whose public names they describe.
API_OF_MODULES = {
    "flow": ("solotable.flow",),
    "jobs": (
        "solotable.jobs.backfill",
        "solotable.jobs.collect_blobs",
        "solotable.jobs.deliver",
        "solotable.jobs.locks",
        "solotable.jobs.purge",
        "solotable.jobs.recount",
        "solotable.jobs.sinks",
        "solotable.jobs.tag_items",
    ),
    "migrations": (
        "solotable.migrations.mapping",
        "solotable.migrations.migration",
        "solotable.migrations.router",
        "solotable.migrations.diff",
    ),
    "sync": ("solotable.sync", "solotable.web.replicache"),
    "web": ("solotable.web",),
    "testing": ("solotable.testing", "solotable.seeding", "solotable.boto3"),
    "observe": ("solotable.observe", "solotable.heat"),
    "fields": ("solotable.blobs", "solotable.encryption", "solotable.cache", "solotable.urls"),
    "engines": ("solotable.engines.sqlite", "solotable.engines.dynamodb", "solotable.server"),
    "backup": ("solotable.backup", "solotable.shipping", "solotable.exports", "solotable.locations"),
    "limiter": ("solotable.systems.limiter",),
}


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


def performance(section: str) -> str:
    """Return one section of the recorded benchmarks."""
    from bench import page

    return str(getattr(page, section)())


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


#: Public names that are neither classes nor functions: constants and aliases of types have no docstring.
VALUES = {
    "ANONYMOUS": "The principal of a request without a credential: no roles and no tenants.",
    "ANY": "As `version=`: write whatever version is stored.",
    "AttributeValue": 'A value in wire form, such as `{"S": "text"}`.',
    "CONFLICT_ATTEMPTS": "How often a read and its write are attempted before the conflict is raised.",
    "CurrentPrincipal": "In a route: the principal of the credential; 401 without one.",
    "DEFAULT": "The resource of limits that apply to every resource without its own.",
    "DatabaseDep": "In a route: the store of the global entities.",
    "Direction": '`"read"` or `"write"`.',
    "Durability": '`"full"` or `"relaxed"`: whether a write is on the disk before it is acknowledged.',
    "EventVerb": "What happened to an entity: created, updated, deleted or undeleted.",
    "ExpectedVersion": "The version that a write requires: a number, `ANY`, or None.",
    "FROM_SCOPE": "The default of a tenant's field: the store fills it in.",
    "Flow": "A generator that yields requests, gets their replies, and returns a result.",
    "Hold": "A function of a deleted item that returns why it must stay, or None.",
    "HookEvent": 'When a hook is called, such as `"before_put"`.',
    "HostStore": "In a route: the store of the tenant that owns the host name.",
    "HostTenantId": "In a route: the tenant that owns the host name.",
    "IfMatch": "In a route: the version in `If-Match`, `ANY` for `*`, or None.",
    "Item": "An item in wire form: values by attribute.",
    "LOCK_SECONDS": "How long a write waits for another process that holds the lock of the file.",
    "MEMORY": "The path of a database in memory.",
    "Mode": "How limits apply: enforce, shadow, disabled, bypass or deny.",
    "Observer": "A function that is called after each request. What it raises is logged and ignored.",
    "OptionalPrincipal": "In a route: the principal of the credential, or `ANONYMOUS` without one.",
    "OutputKey": "The identity of an output: its table, and the type and value of each key attribute.",
    "Paging": "In a route: the query parameters `limit` and `cursor`.",
    "Progress": "A function that gets the result so far.",
    "READ_LIMIT": "The read units a second that one partition serves on AWS.",
    "RequiredIfMatch": "In a route: as `IfMatch`; 428 without the header.",
    "ResolveRoles": "A function of the database, principal and tenant that returns the current roles.",
    "SideName": 'A side of a migration: `"source"` or `"target"`.',
    "TenantId": "In a route: the caller's tenant.",
    "TenantStore": "In a route: the store of the caller's tenant.",
    "WRITE_LIMIT": "The write units a second that one partition serves on AWS.",
    "limiter": "The table of the limiter, for `connect` and for commands.",
}


def public_names(module: str) -> list[str]:
    """Return the public names of a module: `__all__`, or the classes and functions that it defines."""
    loaded = importlib.import_module(module)
    declared = getattr(loaded, "__all__", None)
    if declared is not None:
        return [name for name in declared if not name.startswith("_")]
    return [
        name
        for name, value in vars(loaded).items()
        if not name.startswith("_")
        and (inspect.isclass(value) or inspect.isfunction(value))
        and value.__module__ == module
    ]


def package_names(page: str) -> list[str]:
    """Return the names of `solotable` that are described on one page."""
    import solotable

    homes = solotable._HOMES
    found = []
    for name in public_names("solotable"):
        # The longest prefix decides: `_store.page` is not `_store`.
        _, home = max(
            (len(prefix), page_)
            for page_, prefixes in API_OF_PACKAGE.items()
            for prefix in prefixes
            if homes[name] == prefix or homes[name].startswith(f"{prefix}.")
        )
        if home == page:
            found.append(name)
    return sorted(found, key=str.lower)


def api_of_package(page: str) -> str:
    """Describe the names of `solotable` on one page."""
    return api_section("solotable", package_names(page))


def api_of_modules(page: str) -> str:
    """Describe the public names of the modules of one page."""
    sections = []
    for module in API_OF_MODULES[page]:
        names = sorted(public_names(module), key=str.lower)
        sections.append(api_section(module, names, summary=summary_of(importlib.import_module(module))))
    return "\n\n".join(sections)


def api_section(module: str, names: list[str], summary: str = "") -> str:
    """List names with their summaries, and then the directives that the site replaces with docstrings."""
    loaded = importlib.import_module(module)
    lines = [f"## `{module}`", "", *([summary, ""] if summary else []), "| Name | |", "|---|---|"]
    for name in names:
        value = getattr(loaded, name)
        described_ = inspect.isclass(value) or inspect.isfunction(value)
        lines.append(f"| `{name}` | {summary_of(value) if described_ else VALUES[name]} |")
    for name in names:
        lines += ["", f"::: {module}.{name}"]
    return "\n".join(lines)


def summary_of(value: object) -> str:
    """Return the first paragraph of a docstring, for a cell of a table."""
    text = inspect.getdoc(value) or ""
    first = " ".join(text.split("\n\n")[0].split())
    return re.sub(r"([|<>])", r"\\\1", first)


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


PAGES: dict[Path, dict[str, Callable[[], str]]] = {
    REFERENCE / "differences.md": {
        "operations": operations,
        "error-texts": error_texts,
        "dynamodb-local": dynamodb_local,
    },
    REFERENCE / "cli.md": {"commands": commands},
    REFERENCE / "surveys-patterns.md": {"patterns": surveys_patterns},
    EXPLANATION / "performance.md": {
        section: partial(performance, section) for section in ("missed", "floors", "growth", "figures")
    },
    **{API / f"{page}.md": {"names": partial(api_of_package, page)} for page in API_OF_PACKAGE},
    **{API / f"{page}.md": {"names": partial(api_of_modules, page)} for page in API_OF_MODULES},
}


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    for page in PAGES:
        page.write_text(current(page), encoding="utf-8")
