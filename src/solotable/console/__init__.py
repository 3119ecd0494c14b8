"""The console: a database in the browser, by entity, collection, pattern and cost.

`create_app` returns an ASGI app; it serves this machine only, and needs `pip install 'solotable[console]'`.
"""

from __future__ import annotations

try:
    from .app import create_app
    from .state import Console, ConsoleSettings, open_console
except ModuleNotFoundError as _missing:
    if (_missing.name or "").partition(".")[0] not in ("jinja2", "starlette"):
        raise
    raise ModuleNotFoundError(
        f"solotable.console needs {_missing.name}, which is not installed: pip install 'solotable[console]'",
        name=_missing.name,
    ) from _missing

__all__ = ["Console", "ConsoleSettings", "create_app", "open_console"]
