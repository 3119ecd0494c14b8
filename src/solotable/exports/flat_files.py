"""Write the items of a table as JSON Lines, CSV or Parquet: one file for each entity.

These files are for analysis. Types of DynamoDB that a format lacks are lost, so they cannot be imported
again; use AWS's format for backups.
"""

from __future__ import annotations

import base64
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, Literal

from solotable._protocol.json_codec import loads
from solotable._values import AttributeValue, Item
from solotable.errors import DataError

FlatFormat = Literal["jsonl", "csv", "parquet"]
#: The file of items without a type tag.
OTHER: Final = "_other"
_FILE_NAME = re.compile(r"[^A-Za-z0-9_-]")
_ROWS_AT_ONCE = 10_000


def write_flat_files(
    items: Iterable[tuple[bytes, int]],
    folder: Path,
    format_: FlatFormat,
    *,
    tag: str | None,
    progress: Callable[[int, int | None], None] | None = None,
) -> dict[str, int]:
    """Write one file for each value of the attribute `tag`; return the number of items of each file.

    The files replace older ones of their names once all are complete.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        entities: dict[str, _Rows] = {}
        for number, (raw, _) in enumerate(items, 1):
            item: Item = loads(raw)
            rows = entities.get(name := _entity(item, tag))
            if rows is None:
                rows = entities[name] = _Rows(stack.enter_context(TemporaryFile("w+b")))
            rows.add(raw, item)
            if progress is not None and not number % 1_000:
                progress(number, None)
        finished: list[tuple[Path, Path]] = []
        for name, rows in entities.items():
            path = folder / f"{_FILE_NAME.sub('_', name)}.{format_}"
            if path in (other for _, other in finished):
                names = ", ".join(repr(each) for each in entities if _FILE_NAME.sub("_", each) == path.stem)
                raise DataError(f"The entities {names} have one file name; export them in another format.")
            temporary = path.with_name(f".{path.name}.new")
            _WRITERS[format_](temporary, rows)
            finished.append((temporary, path))
        for temporary, path in finished:
            temporary.replace(path)
    return {path.name: rows.count for (_, path), rows in zip(finished, entities.values(), strict=True)}


def json_text(value: AttributeValue) -> str:
    """Return a value as JSON: numbers with all their digits, sets as lists, binary as base64.

    >>> json_text({"M": {"price": {"N": "12.5"}, "tags": {"SS": ["new"]}}})
    '{"price":12.5,"tags":["new"]}'
    """
    ((kind, content),) = value.items()
    match kind:
        case "N":
            return str(content)
        case "NS":
            return f"[{','.join(content)}]"
        case "NULL":
            return "null"
        case "L":
            return f"[{','.join(map(json_text, content))}]"
        case "M":
            return _object(content)
        case _:
            return _dump(content)  # B and BS are base64 in DynamoDB JSON


def _object(item: Item) -> str:
    # In order of names, so that files of two exports can be compared line by line.
    return f"{{{','.join(f'{_dump(name)}:{json_text(item[name])}' for name in sorted(item))}}}"


def _dump(content: Any) -> str:
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"))


class _Rows:
    """The items of one entity in a temporary file, with their columns and the types seen in each."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.count = 0
        self.columns: dict[str, set[str]] = {}

    def add(self, raw: bytes, item: Item) -> None:
        for name, value in item.items():
            self.columns.setdefault(name, set()).update(_kind(value))
        self._file.write(raw + b"\n")
        self.count += 1

    def __iter__(self) -> Iterator[Item]:
        self._file.seek(0)
        return (loads(line) for line in self._file)


def _entity(item: Item, tag: str | None) -> str:
    value = item.get(tag, {}).get("S") if tag is not None else None
    return value if isinstance(value, str) and value else OTHER


def _kind(value: AttributeValue) -> Iterator[str]:
    ((kind, content),) = value.items()
    if kind == "N":
        number = Decimal(content)
        if number == number.to_integral_value() and abs(number) < 2**63:
            kind = "int"
        elif Decimal(repr(float(number))) == number:
            kind = "float"
    if kind != "NULL":
        yield kind


def _write_jsonl(path: Path, rows: _Rows) -> None:
    with path.open("w", encoding="utf-8") as file:
        for item in rows:
            file.write(f"{_object(item)}\n")


def _write_csv(path: Path, rows: _Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        names = sorted(rows.columns)
        writer.writerow(names)
        for item in rows:
            writer.writerow([_cell(item.get(name)) for name in names])


def _cell(value: AttributeValue | None) -> str:
    if value is None:
        return ""
    ((kind, content),) = value.items()
    return str(content) if kind in ("S", "N", "B") else json_text(value)


def _write_parquet(path: Path, rows: _Rows) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise DataError("Parquet needs pyarrow; install it with: pip install 'solotable[parquet]'.") from None
    types = {
        "S": pyarrow.string(),
        "int": pyarrow.int64(),
        "float": pyarrow.float64(),
        "BOOL": pyarrow.bool_(),
        "B": pyarrow.binary(),
        "SS": pyarrow.list_(pyarrow.string()),
    }
    kinds = {name: _column_kind(kinds) for name, kinds in sorted(rows.columns.items())}
    schema = pyarrow.schema([(name, types.get(kind, pyarrow.string())) for name, kind in kinds.items()])
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        for batch in _batches(rows):
            columns = {name: [_typed(item.get(name), kind) for item in batch] for name, kind in kinds.items()}
            writer.write_table(pyarrow.table(columns, schema=schema))


def _column_kind(kinds: set[str]) -> str:
    """Return the type that all values of a column have; "json" if they share none."""
    if len(kinds) == 1:
        return next(iter(kinds))
    return "float" if kinds == {"int", "float"} else "json"


def _typed(value: AttributeValue | None, kind: str) -> Any:
    if value is None or "NULL" in value:
        return None
    ((_, content),) = value.items()
    match kind:
        case "int":
            return int(Decimal(content))
        case "float":
            return float(content)
        case "N":
            return content  # more digits than a float has
        case "B":
            return base64.b64decode(content)
        case "S" | "BOOL" | "SS":
            return content
        case _:
            return json_text(value)


def _batches(rows: _Rows) -> Iterator[list[Item]]:
    batch: list[Item] = []
    for item in rows:
        batch.append(item)
        if len(batch) == _ROWS_AT_ONCE:
            yield batch
            batch = []
    if batch:
        yield batch


_WRITERS: Final[dict[FlatFormat, Callable[[Path, _Rows], None]]] = {
    "jsonl": _write_jsonl,
    "csv": _write_csv,
    "parquet": _write_parquet,
}
