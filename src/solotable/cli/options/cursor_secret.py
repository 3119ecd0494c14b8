"""The secret that signs cursors: from the environment, or a file of this user on this machine."""

from __future__ import annotations

import os
import secrets
import tempfile
from contextlib import suppress
from pathlib import Path

VARIABLE = "SOLOTABLE_CURSOR_SECRETS"


def cursor_secret() -> str | None:
    """Return $SOLOTABLE_CURSOR_SECRETS or this user's secret, which is created on first use.

    Return None if the user's secret cannot be stored, for example without a home folder.
    """
    given = os.environ.get(VARIABLE)
    if given:
        return given
    try:
        file = _state_folder() / "cursor-secret"
        if not file.exists():
            _create(file)
        return file.read_text(encoding="ascii").strip() or None
    except (OSError, RuntimeError, UnicodeDecodeError):
        return None


def _state_folder() -> Path:
    # XDG: ignore a relative path.
    state = Path(os.environ.get("XDG_STATE_HOME", ""))
    return (state if state.is_absolute() else Path.home() / ".local" / "state") / "solotable"


def _create(file: Path) -> None:
    """Create the file whole: another process reads the same secret, or none, but never a part."""
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # mkstemp creates a file that only this user can read.
    number, name = tempfile.mkstemp(dir=file.parent, prefix=file.name)
    try:
        os.write(number, secrets.token_hex(32).encode())
        # link() fails if another process was first.
        with suppress(FileExistsError):
            os.link(name, file)
    finally:
        os.close(number)
        Path(name).unlink()
