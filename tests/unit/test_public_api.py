"""The names of the package itself, in whatever order they are imported."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize(
    "imports",
    [
        "from solotable import connect",
        "from solotable import Table, connect",
        "from solotable._connect import over; from solotable import connect",
        "import solotable._connect; from solotable import connect",
    ],
)
def test_connect_is_the_function_and_never_the_room(imports: str) -> None:
    program = f"{imports}; print(type(connect).__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout == "function\n", done.stderr


@pytest.mark.parametrize("name", ["errors.NotFound", "flow.run", "urls.Url", "cache.TTLCache", "ids.new_id"])
def test_modules_are_attributes_of_the_package(name: str) -> None:
    program = f"import solotable; print(solotable.{name}.__name__)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)  # noqa: S603
    assert done.stdout == f"{name.split('.')[1]}\n", done.stderr
