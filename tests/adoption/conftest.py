"""The fixtures of the adoption tests; a test whose library cannot be installed is skipped with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.programs import installed
from tests.serving import Served, served

from .foreign import ACCESS, JAVASCRIPT, REGION, ForeignProgram, foreign_program


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    for name, value in {**ACCESS, "AWS_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    keys = ("--access-key", ACCESS["AWS_ACCESS_KEY_ID"], "--secret-key", ACCESS["AWS_SECRET_ACCESS_KEY"])
    with served(*keys, str(tmp_path / "adopted.db")) as running:
        yield running


@pytest.fixture
def foreign(server: Served, tmp_path: Path) -> Callable[[str], ForeignProgram]:
    """Return a function from the name of a library to its program."""

    def program(library: str) -> ForeignProgram:
        node_modules = None
        if library != "pynamodb":
            try:
                node_modules = installed.node_modules(JAVASCRIPT)
            except installed.Unavailable as reason:
                pytest.skip(f"{library} is not available: {reason}.")
        return foreign_program(library, server, tmp_path, node_modules)

    return program
