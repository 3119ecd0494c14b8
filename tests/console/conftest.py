"""Consoles over a filled file, with and without models, read-only or not."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from .site import Site, SiteMaker, fill


@pytest.fixture(scope="session")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with surveys; tests copy it."""
    path = tmp_path_factory.mktemp("console") / "surveys.db"
    fill(path)
    return path


@pytest.fixture
def make_site(filled: Path, tmp_path: Path) -> Iterator[SiteMaker]:
    """A function that opens a console over a copy of the filled file."""
    made: list[Site] = []

    def make(**options: Any) -> Site:
        path = tmp_path / "surveys.db"
        if not path.exists():
            shutil.copy(filled, path)
        made.append(Site(path, **options))
        return made[-1]

    yield make
    for site in made:
        site.close()
