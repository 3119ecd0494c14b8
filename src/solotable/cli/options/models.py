"""Import the models of a command: `models.py:table`, `pkg.mod:table` or `pkg.mod`.

Importing runs the models' code. An error in it is one line with file and line; `--debug` shows the
traceback. Settings come from the nearest pyproject.toml. Nothing is written.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.util
import sys
import tomllib
import traceback
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from solotable._entities.declare.entity import Entity
    from solotable._entities.declare.table import Table

CommandT = TypeVar("CommandT", bound=Callable[..., Any])
_SOURCES = "-m models.py:table, SOLOTABLE_MODELS, or `models` under [tool.solotable] in pyproject.toml"


class BrokenModels(click.ClickException):
    """The models raised `cause` at `where` (file:line) when they were imported."""

    def __init__(self, spec: str, cause: BaseException, where: str) -> None:
        self.cause = cause
        self.where = where
        text = " ".join(str(cause).split()) or "no message"
        super().__init__(f"{spec} cannot be imported: {where}: {type(cause).__name__}: {text}")


def models_option(command: CommandT) -> CommandT:
    """Give a command the option `-m/--models` as its parameter `models: str | None`, for `load_tables`."""
    option = click.option(
        "-m",
        "--models",
        metavar="MODELS",
        envvar="SOLOTABLE_MODELS",
        default=default_models,
        help="Where the tables are declared: models.py:table, pkg.mod:table or pkg.mod for all of its "
        "tables. Default: $SOLOTABLE_MODELS, or `models` under [tool.solotable] in pyproject.toml.",
    )
    return option(command)


def load_tables(spec: str | None) -> list[Table]:
    """Import the models and return the named table, or all tables that they declare."""
    module, name = import_models(spec)
    spec = spec or ""
    tables = [_table_named(spec, module, name)] if name else _all_tables(spec, module)
    try:
        _compile_entities(tables)
    except Exception as error:
        raise BrokenModels(spec, error, _location_of(error, module)) from error
    return tables


def import_models(spec: str | None) -> tuple[ModuleType, str]:
    """Import the module of a spec; return it, and the name after the colon or an empty string."""
    if not spec:
        raise click.UsageError(f"No models given; use {_SOURCES}.")
    source, name = _split_spec(spec)
    return _import(spec, source), name


def settings(*sections: str) -> dict[str, Any]:
    """Return `[tool.solotable]`, or a section below it, of the nearest pyproject.toml; {} without one."""
    found = _project()
    if found is None:
        return {}
    try:
        values: Any = tomllib.loads(found.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{found} cannot be read: {error}") from None
    for section in ("tool", "solotable", *sections):
        values = values.get(section, {})
        if not isinstance(values, dict):
            raise click.ClickException(f"{found}: [tool.solotable] and its sections must be tables.")
    return dict(values)


def default_models() -> str | None:
    """Return `models` of pyproject.toml; a file name is relative to the folder of pyproject.toml."""
    spec = settings().get("models")
    if spec is None:
        return None
    found = _project()
    if not isinstance(spec, str) or found is None:
        raise click.ClickException(
            'pyproject.toml: [tool.solotable] models must be a string, such as "models.py:table".'
        )
    source, _ = _split_spec(spec)
    return str(found.parent / spec) if source.endswith(".py") else spec


def _project() -> Path | None:
    here = Path.cwd()
    return next((path for each in (here, *here.parents) if (path := each / "pyproject.toml").is_file()), None)


def _split_spec(spec: str) -> tuple[str, str]:
    """Split at the colon before a table name; the colon of a Windows drive does not count."""
    source, colon, name = spec.rpartition(":")
    if not colon or name.endswith(".py"):
        return spec, ""
    if not source or not name.isidentifier():
        raise click.BadParameter(
            f"Cannot parse {spec!r}; write models.py:table, pkg.mod:table or pkg.mod.", param_hint="models"
        )
    return source, name


def _import(spec: str, source: str) -> ModuleType:
    file = Path(source) if source.endswith(".py") or "/" in source or "\\" in source else None
    if file is not None and not file.is_file():
        raise click.BadParameter(f"no such file: {source}.", param_hint="models")
    try:
        return _import_module(source) if file is None else _import_file(file.resolve())
    except click.ClickException:
        raise
    except (Exception, SystemExit) as error:
        raise BrokenModels(spec, error, _location_of(error, source)) from error


def _import_module(name: str) -> ModuleType:
    found = _project()
    for folder in (Path.cwd(), *([found.parent] if found else [])):
        _add_to_path(folder)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not (name == error.name or name.startswith(f"{error.name}.")):
            raise  # the models exist; one of their imports does not
        raise click.BadParameter(
            f"no module {name!r} is installed or below {Path.cwd()}; "
            f"write a file with its extension: models.py.",
            param_hint="models",
        ) from None


def _import_file(file: Path) -> ModuleType:
    """Import a file by its full module name, so that relative imports in a package work."""
    names, folder = [] if file.stem == "__init__" else [file.stem], file.parent
    while (folder / "__init__.py").is_file():
        names, folder = [folder.name, *names], folder.parent
    _add_to_path(folder)
    name = ".".join(names)
    loaded = sys.modules.get(name)
    if loaded is not None and _is_file(loaded, file):
        return loaded
    importlib.invalidate_caches()
    if loaded is None and not _is_shadowed(name, file):
        return importlib.import_module(name)
    # Another module, such as one of the standard library, already has this name.
    return _execute(file, f"{file.stem}_{zlib.crc32(str(file).encode()):08x}")


def _execute(file: Path, name: str) -> ModuleType:
    loaded = sys.modules.get(name)
    if loaded is not None and _is_file(loaded, file):
        return loaded
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # Pydantic resolves annotations there
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _is_shadowed(name: str, file: Path) -> bool:
    spec = importlib.util.find_spec(name)
    return spec is None or spec.origin is None or Path(spec.origin).resolve() != file


def _is_file(module: ModuleType, file: Path) -> bool:
    path = getattr(module, "__file__", None)
    return path is not None and Path(path).resolve() == file


def _add_to_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _table_named(spec: str, module: ModuleType, name: str) -> Table:
    from solotable._entities.declare.table import Table

    known = [each for each, value in vars(module).items() if isinstance(value, Table)]
    value = vars(module).get(name)
    if value is None:
        close = difflib.get_close_matches(name, [*known, *vars(module)], n=1)
        advice = f"did you mean {close[0]}?" if close else _list_tables(known)
        raise click.BadParameter(f"{spec}: no such name {name!r}; {advice}", param_hint="models")
    if not isinstance(value, Table):
        kind = "class" if isinstance(value, type) else type(value).__name__
        raise click.BadParameter(
            f"{spec}: {name!r} is a {kind}, not a Table; {_list_tables(known)}",
            param_hint="models",
        )
    return value


def _all_tables(spec: str, module: ModuleType) -> list[Table]:
    from solotable._entities.declare.table import Table

    found = {id(value): value for value in vars(module).values() if isinstance(value, Table)}
    if not found:
        raise click.BadParameter(
            f"{spec} declares no Table; name the module that declares it, such as models.py:table.",
            param_hint="models",
        )
    return list(found.values())


def _list_tables(names: list[str]) -> str:
    return f"its tables are {', '.join(names)}." if names else "it declares no Table."


def _compile_entities(tables: list[Table]) -> None:
    """Compile entities with forward references, so that their tables list them."""
    from solotable._entities.declare.entity import Entity

    for entity in _subclasses(Entity):
        # Not the inherited one. A failed import leaves classes behind.
        declared = vars(entity).get("_declared") if entity.__module__ in sys.modules else None
        if declared is not None and any(declared.table is table for table in tables):
            entity.plan()


def _subclasses(entity: type[Entity]) -> Iterator[type[Entity]]:
    for each in entity.__subclasses__():
        yield each
        yield from _subclasses(each)


def _location_of(error: BaseException, models: ModuleType | str) -> str:
    """Return `file:line` of the code in the models that failed, not of the library."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{error.filename}:{error.lineno}"
    ours = str(Path(__file__).parents[2])
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith((ours, "<"))
        and "site-packages" not in frame.filename
        and "importlib" not in frame.filename
    ]
    if not frames:
        return str(getattr(models, "__file__", None) or models)
    return f"{frames[-1].filename}:{frames[-1].lineno}"
