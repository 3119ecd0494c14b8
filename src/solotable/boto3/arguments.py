"""The `path_or_engine` argument, and the import of optional packages."""

from __future__ import annotations

import os
from typing import Any, cast

from solotable._protocol.engine import Engine
from solotable.engines import sqlite
from solotable.engines.sqlite import Durability


def check_argument(function: str, path_or_engine: Any) -> None:
    """Raise TypeError unless the argument of `function` is a path or an engine."""
    if isinstance(path_or_engine, (str, os.PathLike)):
        return
    if isinstance(path_or_engine, type) or not callable(getattr(path_or_engine, "handle", None)):
        hint = f"; write @{function}(path_or_engine)" if callable(path_or_engine) else ""
        raise TypeError(f"{function}() takes a path or an engine, got {path_or_engine!r}{hint}.")


def open_engine(path_or_engine: Any, durability: Durability) -> tuple[Engine, bool]:
    """Return the engine, and whether this call opened it."""
    if isinstance(path_or_engine, (str, os.PathLike)):
        return sqlite.open(path_or_engine, durability=durability), True
    return cast(Engine, path_or_engine), False


def require(module: str) -> Any:
    """Import a module of the extra `aws`; raise an ImportError that says how to install it."""
    try:
        return __import__(module)
    except ImportError as missing:
        raise ImportError(
            f"solotable.boto3 needs {module}, which is not installed. Try: pip install 'solotable[aws]'",
            name=module,
        ) from missing
