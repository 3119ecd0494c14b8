"""Fetch the Replicache client with npm, and bundle the survey form with esbuild.

Neither is in this package. It needs Node and npm, and a registry at the first build; later builds use the
installed folder.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import tempfile
from importlib import resources
from pathlib import Path

from solotable.errors import SolotableError

_HERE = Path(__file__).parent
_PINNED = _HERE / "client"
#: The files that decide what npm installs.
_LOCKED = ("package.json", "package-lock.json")
_INSTALL = ("ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")
_TIMEOUT_SECONDS = 300.0


class ClientMissing(SolotableError):
    """The Replicache client cannot be installed or bundled here; the message says what is missing."""


def install_client(folder: Path) -> Path:
    """Install the pinned npm packages below a folder, once, and return their `node_modules`."""
    folder = folder.absolute()
    digest = hashlib.sha256(b"".join((_PINNED / name).read_bytes() for name in _LOCKED)).hexdigest()
    target = folder / f"npm-{digest[:16]}"
    if not target.exists():
        npm = shutil.which("npm")
        if npm is None or shutil.which("node") is None:
            raise ClientMissing("Node and npm are not installed: apt install nodejs npm")
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder) as name:
            made = Path(name) / "npm"
            made.mkdir()
            for locked in _LOCKED:
                shutil.copy(_PINNED / locked, made)
            _run([npm, *_INSTALL], made, "npm cannot fetch the Replicache client")
            try:
                made.rename(target)
            except OSError:
                # Another process was first; what it installed is the same.
                if not target.exists():
                    raise
    return target / "node_modules"


def build_form(folder: Path) -> Path:
    """Bundle the survey form below a folder, and return the folder of its files."""
    modules = install_client(folder)
    node = shutil.which("node")
    if node is None:
        raise ClientMissing("Node is not installed: apt install nodejs npm")
    out = folder / "form"
    out.mkdir(exist_ok=True)
    sources = _HERE / "static"
    shared = resources.files("solotable.systems.browser") / "static"
    (out / "base.css").write_bytes((shared / "base.css").read_bytes())
    for source in (*sources.glob("*.html"), *sources.glob("*.css"), sources / "worker.js"):
        shutil.copy(source, out)
    command = [
        *(node, str(modules / "esbuild/bin/esbuild"), str(sources / "app.js")),
        *("--bundle", "--format=esm", "--target=es2022", "--minify", "--sourcemap", "--log-level=error"),
        f"--alias:replicache={modules / 'replicache/out/replicache.js'}",
        f"--outfile={out / 'app.js'}",
    ]
    _run(command, modules, "esbuild cannot bundle the survey form")
    return out


def _run(command: list[str], folder: Path, failure: str) -> None:
    try:
        done = subprocess.run(  # noqa: S603 - npm and node, with arguments from above
            command, cwd=folder, capture_output=True, text=True, check=False, timeout=_TIMEOUT_SECONDS
        )
    except subprocess.TimeoutExpired as late:
        raise ClientMissing(f"{failure}: no end after {_TIMEOUT_SECONDS:.0f} s") from late
    if done.returncode:
        raise ClientMissing(f"{failure}: {done.stderr.strip()[-2000:]}")
