"""The limit of open files is raised as far as it goes, and never lowered."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import solotable

pytest.importorskip("resource", reason="needs limits of open files")

PROGRAM = """
import resource, sys
from solotable.server.open_files import open_file_limit, raise_open_file_limit
soft, hard, wanted = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
raise_open_file_limit(wanted)
print(open_file_limit())
"""


@pytest.mark.parametrize(
    ("soft", "hard", "wanted", "given"),
    [(64, 200, 150, 150), (64, 200, 4000, 200), (150, 200, 64, 150), (200, 200, 4000, 200)],
)
def test_as_many_as_are_wanted_or_the_system_lets_us_have(
    soft: int, hard: int, wanted: int, given: int
) -> None:
    # In a separate process: a hard limit cannot be raised again.
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", PROGRAM, str(soft), str(hard), str(wanted)],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(Path(solotable.__file__).parents[1])},
    )
    assert int(done.stdout) == given
