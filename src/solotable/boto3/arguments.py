"""What callers hand in, a path or an engine, and what must be installed to do anything with it."""

from __future__ import annotations

import os
from typing import Any, cast

from solotable._protocol.engine import Engine
from solotable.engines import sqlite
from solotable.engines.sqlite import Durability


def check_given(function: str, path_or_engine: Any) -> None:
    """Refuse what is neither a path nor an engine; `function` is what it was handed to."""
    if isinstance(path_or_engine, (str, os.PathLike)):
        return
    if isinstance(path_or_engine, type) or not callable(getattr(path_or_engine, "handle", None)):
        hint = f"; write @{function}(path_or_engine)" if callable(path_or_engine) else ""
        raise TypeError(f"{function}() takes a path or an engine, not {path_or_engine!r}{hint}.")


def engine_of(path_or_engine: Any, durability: Durability) -> tuple[Engine, bool]:
    """Return the engine, and whether it was opened here."""
    if isinstance(path_or_engine, (str, os.PathLike)):
        return sqlite.open(path_or_engine, durability=durability), True
    return cast(Engine, path_or_engine), False


def need(module: str) -> Any:
    """Import a module of the extra `aws`, or say how to install it."""
    try:
        return __import__(module)
    except ImportError as missing:
        raise ImportError(
            f"solotable.boto3 needs {module}, which is not installed. Try: pip install 'solotable[aws]'",
            name=module,
        ) from missing
