"""Writes the generated sections of docs/reference/differences.md: `python docs/generate.py`.

A section is what stands between `<!-- generated: name -->` and `<!-- end -->`; nothing else of the page is
touched. A test compares the page with what this would write.
"""

from __future__ import annotations

import importlib
import pkgutil
import re
import sys
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "reference" / "differences.md"
#: How many cases of one note are named; of more, the first is.
NAMED_CASES = 3


def current(page: str) -> str:
    """Return the page with its generated sections as they should be."""
    for name, section in (("operations", operations()), ("dynamodb-local", dynamodb_local())):
        before, start, rest = page.partition(f"<!-- generated: {name} -->\n")
        _, end, after = rest.partition("<!-- end -->")
        page = f"{before}{start}{section}\n{end}{after}"
    return page


def operations() -> str:
    """Name the operations that the engine answers."""
    from solotable.protocol.shapes import ITEMS, STREAMS, TABLES

    return "\n".join(
        f"- {kind}: {', '.join(f'`{operation}`' for operation in sorted(names))}"
        for kind, names in (("items", ITEMS), ("tables", TABLES), ("streams", STREAMS))
    )


def dynamodb_local() -> str:
    """Tell what DynamoDB Local does in the cases on which it differs, by topic."""
    from tests.conformance import cases

    topics = {
        topic.name: importlib.import_module(f"{cases.__name__}.{topic.name}").CASES
        for topic in pkgutil.iter_modules(cases.__path__)
    }
    lines = [f"{sum(bool(case.local) for cases_ in topics.values() for case in cases_)} cases carry a note."]
    for topic, cases_ in sorted(topics.items()):
        by_note: dict[str, list[str]] = defaultdict(list)
        for case in cases_:
            if case.local:
                by_note[case.local.removeprefix("Local ")].append(case.name)
        if by_note:
            lines += ["", f"### {topic.replace('_', ' ')}", "", "| DynamoDB Local | Cases |", "|---|---|"]
            lines += [f"| {cell(note)} | {cell(named(names))} |" for note, names in sorted(by_note.items())]
    return "\n".join(lines)


def named(names: list[str]) -> str:
    if len(names) <= NAMED_CASES:
        return "; ".join(names)
    return f"{len(names)} cases, for instance: {names[0]}"


def cell(text: str) -> str:
    """Return the text as it must be written in a Markdown table."""
    return re.sub(r"([|<>*_`\\\[\]])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "src")]
    PAGE.write_text(current(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
