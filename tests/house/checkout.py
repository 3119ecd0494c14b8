"""Which files belong to the project. Reads; never writes."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "solotable"

#: What tools make inside the checkout; only needed where git cannot say what is ignored.
MADE_BY_TOOLS = {"build", "dist", "__pycache__"}


@cache
def files() -> tuple[Path, ...]:
    """Every file that is, or would be, committed."""
    if (ROOT / ".git").exists():
        command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
        listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        paths = [ROOT / name for name in listed.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not is_made_by_tools(path.relative_to(ROOT))]
    return tuple(sorted(path for path in paths if path.is_file()))


def is_made_by_tools(path: Path) -> bool:
    hidden = path.parts[0].startswith(".") and path.parts[0] not in {".ci", ".gitignore"}
    return hidden or bool(MADE_BY_TOOLS & set(path.parts))


@cache
def modules() -> tuple[Path, ...]:
    """Every module of the package."""
    return tuple(path for path in files() if path.suffix == ".py" and path.is_relative_to(PACKAGE))


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
