"""Every module under src/ says what it holds, stays small, and has a name and a place of its own."""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from functools import cache
from pathlib import Path

from .checkout import PACKAGE, modules, name

LONGEST_MODULE_LINES = 500
#: A reader looks for an error in one place: the tree and its classes are one module.
LONGER = {"src/solotable/errors.py": 600}
LONGEST_FIRST_LINE = 100
MOST_MODULES = 9
#: Names that do not say what is inside (house style 3.5).
EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}
#: Folders whose packages stand alone: each engine and each system is one.
NAMESPACES = {"engines", "systems"}


@cache
def tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def package(path: Path) -> str:
    """Return the package that a module belongs to: `_flows`, `engines/sqlite`, `systems/cms`."""
    parts = path.relative_to(PACKAGE).parts[:-1]
    return "/".join(parts[: 2 if parts[:1] and parts[0] in NAMESPACES else 1])


def test_every_module_has_a_docstring() -> None:
    assert [name(path) for path in modules() if not ast.get_docstring(tree(path))] == []


def test_the_first_line_of_a_module_is_short() -> None:
    first = {name(path): (ast.get_docstring(tree(path)) or "").partition("\n")[0] for path in modules()}
    assert {module: line for module, line in first.items() if len(line) > LONGEST_FIRST_LINE} == {}


def test_no_module_is_too_long_to_read() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    too_long = {
        module: lines for module, lines in lengths.items() if lines > LONGER.get(module, LONGEST_MODULE_LINES)
    }
    assert too_long == {}


def test_no_module_has_an_empty_name() -> None:
    assert [name(path) for path in modules() if path.stem in EMPTY_NAMES] == []


def test_no_package_has_more_modules_than_a_reader_can_survey() -> None:
    counts = Counter(name(path.parent) for path in modules() if path.stem != "__init__")
    assert {folder: count for folder, count in counts.items() if count > MOST_MODULES} == {}


def test_a_class_name_occurs_once_in_a_package() -> None:
    places: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in modules():
        for node in tree(path).body:
            if isinstance(node, ast.ClassDef):
                places[package(path), node.name].append(name(path))
    assert {key: found for key, found in places.items() if len(found) > 1} == {}
