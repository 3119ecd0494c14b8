"""Programs of others, installed once into the checkout's cache, with pinned versions.

pip and npm are asked with whatever configuration they have: no registry is named here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "programs"
JAVASCRIPT = Path(__file__).parent / "javascript"
AWS_CLI = "awscli==1.46.2"
INSTALL_SECONDS = 300


class Unavailable(Exception):
    """It is not installed and cannot be; the text says why."""


def node_modules(programs: Path = JAVASCRIPT) -> Path:
    """Return the folder of the packages that the manifest of a folder of JavaScript programs names."""
    for tool in ("node", "npm"):
        if shutil.which(tool) is None:
            raise Unavailable(f"{tool} is not on the PATH")
    manifest, lock = programs / "package.json", programs / "package-lock.json"
    files = [each for each in (manifest, lock) if each.exists()]
    install_command = ["ci"] if lock.exists() else ["install", "--no-package-lock"]

    def install(folder: Path) -> None:
        for each in files:
            shutil.copy(each, folder)
        run(["npm", *install_command, "--no-audit", "--no-fund", "--ignore-scripts"], folder)

    digest = sha256(b"".join(each.read_bytes() for each in files)).hexdigest()[:12]
    return once(f"javascript-{digest}", install) / "node_modules"


def aws_cli() -> Path:
    """The `aws` command."""

    def install(folder: Path) -> None:
        # Scripts hold the path of their Python, and the folder is moved: so only packages are installed.
        run([sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder), AWS_CLI], folder)

    return once(f"{AWS_CLI}-python{sys.version_info.major}.{sys.version_info.minor}", install)


def once(name: str, install: Callable[[Path], None]) -> Path:
    """Install beside the place and then move: workers may do this at once, and one of them wins."""
    place = CACHE / name
    if place.exists():
        return place
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE, prefix="install-") as scratch:
        folder = Path(scratch) / "it"
        folder.mkdir()
        install(folder)
        try:
            folder.rename(place)
        except OSError:
            if not place.exists():
                raise
    return place


def run(command: list[str], folder: Path) -> None:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    try:
        subprocess.run(  # noqa: S603 - pip and npm from the caller's PATH: that is its job
            command,
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
            timeout=INSTALL_SECONDS,
            env=environment,
        )
    except subprocess.TimeoutExpired:
        raise Unavailable(f"{command[0]} gave no answer in {INSTALL_SECONDS} s") from None
    except subprocess.CalledProcessError as failure:
        lines = [line for line in (failure.stderr + failure.stdout).splitlines() if line.strip()]
        raise Unavailable(f"{Path(command[0]).name}: {lines[-1][:300] if lines else 'failed'}") from None
