"""The package: a wheel and an sdist are built, complete, described, and work in an empty environment."""

from __future__ import annotations

import email
import email.message
import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tarfile
import tomllib
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from solotable import __version__
from tests.waiting import HANG_SECONDS

from .checkout import PACKAGE, ROOT, files

README = (ROOT / "README.md").read_text("utf-8")
#: Folders and files of the repository that an sdist does not need.
NOT_IN_SDIST = (".ci/", ".github/")


def run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        command, cwd=cwd, env=environment, capture_output=True, text=True, check=False, timeout=HANG_SECONDS
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "hatchling", "build", "-d", folder, "-t", "wheel", "-t", "sdist", cwd=ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    return built / f"solotable-{__version__}-py3-none-any.whl"


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> email.message.Message:
    with zipfile.ZipFile(wheel) as archive:
        text = archive.read(f"solotable-{__version__}.dist-info/METADATA").decode("utf-8")
    return email.message_from_string(text)


@pytest.fixture(scope="module")
def describe() -> Callable[[str, str], str]:
    """The function of hatch_build.py."""
    function: Callable[[str, str], str] = runpy.run_path(str(ROOT / "hatch_build.py"))["describe"]
    return function


def test_the_wheel_has_every_file_of_the_package_and_no_other(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    expected = {path.relative_to(PACKAGE.parent).as_posix() for path in files() if PACKAGE in path.parents}
    assert names == expected
    assert "solotable/py.typed" in names


def test_the_sdist_has_every_file_of_the_repository(built: Path) -> None:
    with tarfile.open(built / f"solotable-{__version__}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    listed = {path.relative_to(ROOT).as_posix() for path in files()}
    assert {name for name in listed if not name.startswith(NOT_IN_SDIST)} == names - {"PKG-INFO"}


def test_the_metadata_is_complete(metadata: email.message.Message) -> None:
    for field in ("Summary", "Author", "License-Expression", "License-File", "Keywords", "Requires-Python"):
        assert metadata[field], field
    assert metadata["Description-Content-Type"] == "text/markdown"
    # The build rejects unknown classifiers.
    assert {"Typing :: Typed", "Development Status :: 3 - Alpha"} <= set(metadata.get_all("Classifier", []))


def test_the_description_has_no_link_that_needs_the_repository(metadata: email.message.Message) -> None:
    description = str(metadata.get_payload())
    assert description.startswith("# solotable\n")
    links = re.findall(r"\]\(([^)]+)\)", description)
    assert [link for link in links if not link.startswith("https://")] == []


def test_links_are_absolute_once_the_project_has_an_address(describe: Callable[[str, str], str]) -> None:
    shown = describe(README, "https://git.example/solotable")
    links = re.findall(r"\]\(([^)]+)\)", shown)
    assert len(links) > 40
    assert [link for link in links if not link.startswith("https://")] == []
    assert "](https://git.example/solotable/blob/main/docs/guide/web.md)" in shown
    assert "](https://git.example/solotable/raw/main/docs/images/" in shown


def test_the_wheel_works_in_an_empty_environment(wheel: Path, tmp_path: Path) -> None:
    venv.create(tmp_path / "venv", with_pip=False)
    (scripts,) = (
        each for each in (tmp_path / "venv" / "bin", tmp_path / "venv" / "Scripts") if each.exists()
    )
    python = scripts / "python"
    install = (
        "-m",
        "pip",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-compile",
        "--no-index",
        "--no-deps",
        wheel,
    )
    run(sys.executable, *install, cwd=tmp_path)
    # The dependencies are those of this environment. Its solotable is not found: the .pth file that names it
    # is read in folders of the interpreter only.
    (site,) = (tmp_path / "venv").glob("**/site-packages")
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
    where = run(python, "-c", "import solotable; print(solotable.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(tmp_path)
    assert run(scripts / "solotable", "--version", cwd=tmp_path).startswith(f"solotable {__version__} ")
    run(scripts / "solotable", "init", "shop", cwd=tmp_path)
    assert "nothing found" in run(scripts / "solotable", "lint", cwd=tmp_path / "shop")


def test_the_supported_versions_of_python_agree() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    versions = [each.rpartition(" ")[2] for each in project["classifiers"] if re.search(r" 3\.\d+$", each)]
    assert versions == ["3.11", "3.12", "3.13", "3.14"]
    assert project["requires-python"] == f">={versions[0]}"
