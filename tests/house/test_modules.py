"""Every module under src/ says what it is for, and stays small."""

from __future__ import annotations

import ast

from .checkout import modules, name

LONGEST_MODULE_LINES = 500
#: Names that say nothing about what is inside (house style 3.5).
EMPTY_NAMES = {"base", "common", "helper", "helpers", "manager", "misc", "util", "utils"}


def test_every_module_has_a_docstring() -> None:
    silent = [
        name(path) for path in modules() if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_no_module_is_too_long_to_read() -> None:
    lengths = {name(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {module: lines for module, lines in lengths.items() if lines > LONGEST_MODULE_LINES} == {}


def test_no_module_has_an_empty_name() -> None:
    assert [name(path) for path in modules() if path.stem in EMPTY_NAMES] == []
