"""The secret of cursors on this machine."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import click
import pytest

from solotable.cli.options.cursor_secret import cursor_secret
from tests.serving import environment

SECRET = "a secret of sixteen bytes or more"


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty state folder."""
    monkeypatch.delenv("SOLOTABLE_CURSOR_SECRETS", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state"


def test_it_is_created_once_and_private(state: Path) -> None:
    before = os.umask(0)
    try:
        secret = cursor_secret()
    finally:
        os.umask(before)
    assert secret is not None
    assert len(secret) == 64
    assert cursor_secret() == secret
    assert [path.name for path in (state / "solotable").iterdir()] == ["cursor-secret"]
    if os.name != "nt":
        assert stat.S_IMODE((state / "solotable" / "cursor-secret").stat().st_mode) == 0o600
        assert stat.S_IMODE((state / "solotable").stat().st_mode) == 0o700


def test_the_environment_comes_first(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOTABLE_CURSOR_SECRETS", SECRET)
    assert cursor_secret() == SECRET
    assert not state.exists()


@pytest.mark.parametrize("value", ["", "relative/state"])
def test_the_home_folder_is_the_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", value)
    assert cursor_secret() is not None
    assert (tmp_path / "home" / ".local" / "state" / "solotable" / "cursor-secret").is_file()


def test_without_a_home_folder_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME")
    monkeypatch.setattr(Path, "home", no_home)
    assert cursor_secret() is None


def test_a_state_folder_that_cannot_be_written_gives_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    assert cursor_secret() is None


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="root can write everywhere")
def test_a_read_only_home_folder_gives_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME")
    (tmp_path / "home").mkdir(mode=0o500)
    assert cursor_secret() is None


@pytest.mark.parametrize("content", [b"", b" \n"])
def test_an_empty_file_is_replaced(state: Path, content: bytes) -> None:
    (state / "solotable").mkdir(parents=True)
    (state / "solotable" / "cursor-secret").write_bytes(content)
    secret = cursor_secret()
    assert secret is not None
    assert len(secret) == 64
    assert cursor_secret() == secret
    assert [path.name for path in (state / "solotable").iterdir()] == ["cursor-secret"]


@pytest.mark.parametrize("content", [b"abc", b"\xff\xfe", b"\xff" * 32])
def test_an_invalid_file_is_a_usage_error_that_names_it(state: Path, content: bytes) -> None:
    file = state / "solotable" / "cursor-secret"
    file.parent.mkdir(parents=True)
    file.write_bytes(content)
    with pytest.raises(click.UsageError) as caught:
        cursor_secret()
    assert str(file) in caught.value.message
    assert "delete the file" in caught.value.message.lower()
    assert file.read_bytes() == content


@pytest.mark.parametrize("text", ["short", f"{SECRET},short", ","])
def test_a_short_secret_is_a_usage_error_that_names_its_source(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    with pytest.raises(click.UsageError, match="--cursor-secret"):
        cursor_secret(text)
    monkeypatch.setenv("SOLOTABLE_CURSOR_SECRETS", text)
    with pytest.raises(click.UsageError, match="SOLOTABLE_CURSOR_SECRETS"):
        cursor_secret()


def test_the_option_comes_before_the_environment(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOLOTABLE_CURSOR_SECRETS", "short")
    assert cursor_secret(SECRET) == SECRET
    assert not state.exists()


def test_processes_that_start_together_get_the_same_secret(state: Path) -> None:
    program = (
        "import sys; from solotable.cli.options.cursor_secret import cursor_secret; "
        "sys.stdin.read(); print(cursor_secret())"
    )
    processes = [
        subprocess.Popen(  # noqa: S603 - our own command
            [sys.executable, "-c", program],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment(XDG_STATE_HOME=str(state)),
        )
        for _ in range(4)
    ]
    for process in processes:
        assert process.stdin is not None
        process.stdin.close()  # all of them wait for it
    found = set()
    for process in processes:
        assert process.stdout is not None
        with process:
            found.add(process.stdout.read().strip())
    assert found == {cursor_secret()}
    assert [path.name for path in (state / "solotable").iterdir()] == ["cursor-secret"]
