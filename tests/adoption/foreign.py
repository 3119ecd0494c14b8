"""Programs on other libraries, which write to a real `solotable serve` and read what we wrote."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.serving import Served, environment
from tests.waiting import HANG_SECONDS

HERE = Path(__file__).parent
JAVASCRIPT = HERE / "javascript"
REGION = "eu-central-1"
ACCESS = {"AWS_ACCESS_KEY_ID": "AKID", "AWS_SECRET_ACCESS_KEY": "secret"}
LIBRARIES = ("electrodb", "onetable", "toolbox", "pynamodb")


@dataclass(frozen=True, slots=True, kw_only=True)
class ForeignProgram:
    """A program on one library; `run("write")` and `run("verify")` return the stored items."""

    server: Served
    command: tuple[str, ...]
    cwd: Path

    def run(self, part: str) -> list[dict[str, Any]]:
        done = subprocess.run(  # noqa: S603 - programs of this folder
            [*self.command, part],
            capture_output=True,
            text=True,
            check=False,
            timeout=HANG_SECONDS,
            env=aws_environment(self.server),
            cwd=self.cwd,
        )
        assert done.returncode == 0, done.stderr
        items: list[dict[str, Any]] = json.loads(done.stdout)
        return items


def aws_environment(server: Served) -> dict[str, str]:
    """Return the environment in which every AWS SDK calls the server."""
    return environment(
        AWS_ENDPOINT_URL=server.url,
        AWS_REGION=REGION,
        AWS_DEFAULT_REGION=REGION,
        AWS_EC2_METADATA_DISABLED="true",
        AWS_CONFIG_FILE="absent",
        AWS_SHARED_CREDENTIALS_FILE="absent",
        **ACCESS,
    )


def foreign_program(library: str, server: Served, folder: Path, node_modules: Path | None) -> ForeignProgram:
    """Return the program of a library; npm's packages go beside its files, which are copied to `folder`."""
    if node_modules is None:
        command = (sys.executable, str(HERE / "pynamodb_staff.py"))
        return ForeignProgram(server=server, command=command, cwd=folder)
    for source in JAVASCRIPT.glob("*.mjs"):
        (folder / source.name).write_bytes(source.read_bytes())
    (folder / "node_modules").symlink_to(node_modules)
    return ForeignProgram(server=server, command=("node", "--no-warnings", f"{library}.mjs"), cwd=folder)
