"""Runs mypy, with the plugin or without it, and pyright; reports their errors by file and line."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from mypy import api

from tests.programs.installed import node_modules
from tests.waiting import HANG_SECONDS

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_PLUGINS = re.compile(r"^plugins = .*\n", re.MULTILINE)
#: Pydantic's plugin checks the arguments of constructors only with these.
_PYDANTIC = "\n[tool.pydantic-mypy]\ninit_typed = true\ninit_forbid_extra = true\n"
_ERROR = re.compile(r"(.+?):(\d+): error: (.*?)  \[([a-z-]+)\]$")


@dataclass(frozen=True)
class Finding:
    """An error of a type checker."""

    file: str
    line: int
    code: str
    text: str


def mypy(*files: Path) -> list[Finding]:
    """Return the errors of mypy with the project's settings, which include the plugin."""
    return _findings(*_run_mypy(ROOT / "pyproject.toml", *files))


def mypy_without_plugin(file: Path) -> list[Finding]:
    """Return the errors of mypy without the plugin; settings and cache are written beside the file."""
    return _findings(*_run_with_plugins("", file))


def mypy_with_pydantic(file: Path) -> list[Finding]:
    """Return the errors of mypy with the plugin and Pydantic's."""
    return _findings(*_run_with_plugins('plugins = ["solotable.mypy", "pydantic.mypy"]\n', file))


def mypy_with_pydantic_first(file: Path) -> str:
    """Return what mypy prints with the plugins in the wrong order."""
    report, faults, status = _run_with_plugins('plugins = ["pydantic.mypy", "solotable.mypy"]\n', file)
    assert status == 2, report
    return report + faults


def _run_with_plugins(plugins: str, file: Path) -> tuple[str, str, int]:
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert _PLUGINS.search(settings), "the project does not use the plugin"
    config = file.parent / "pyproject.toml"
    config.write_text(_PLUGINS.sub(plugins, settings) + _PYDANTIC, encoding="utf-8")
    return _run_mypy(config, f"--cache-dir={file.parent / 'cache'}", file)


def pyright(file: Path) -> list[Finding]:
    """Return the errors of pyright in strict mode, or raise Unavailable."""
    program = node_modules(HERE / "javascript") / "pyright" / "index.js"
    settings = {
        "include": [file.name],
        "extraPaths": [str(ROOT / "src")],
        "pythonVersion": "3.11",
        "typeCheckingMode": "strict",
    }
    (file.parent / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    ended = subprocess.run(
        ["node", str(program), "--outputjson", "--pythonpath", sys.executable, "-p", str(file.parent)],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
    )
    assert ended.returncode in (0, 1), ended.stderr
    return [
        Finding(
            Path(one["file"]).name, one["range"]["start"]["line"] + 1, one.get("rule", ""), one["message"]
        )
        for one in json.loads(ended.stdout)["generalDiagnostics"]
        if one["severity"] == "error"
    ]


def _run_mypy(config: Path, *arguments: object) -> tuple[str, str, int]:
    options = ["--config-file", str(config), "--show-error-codes", "--no-error-summary"]
    return api.run([*options, *map(str, arguments)])


def _findings(report: str, faults: str, status: int) -> list[Finding]:
    assert status in (0, 1), report + faults
    found = []
    for line in report.splitlines():
        if (match := _ERROR.match(line)) is not None:
            found.append(Finding(Path(match[1]).name, int(match[2]), match[4], line))
        else:
            assert ": note: " in line, line
    return found
