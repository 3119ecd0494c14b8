"""What a declaration imports: no store, no engine, no parser, and few modules."""

from __future__ import annotations

import subprocess
import sys

import pytest

#: Beside Pydantic and what its first class loads. It was 118 when every import loaded the stores.
MOST_MODULES = 28
FORBIDDEN = (
    "asyncio",
    "sqlite3",
    "botocore",
    "solotable._connect",
    "solotable._flows",
    "solotable._partiql",
    "solotable._protocol",
    "solotable._store",
    "solotable.engines",
    "solotable.jobs",
    "solotable.web",
    "solotable._expressions.legacy",
    "solotable._expressions.syntax",
)
_DECLARE = """
from solotable import Entity, Key, Table
class Order(Entity, table=Table("Shop")):
    key = Key("ORDER#{order_id}", "ORDER")
    order_id: str
"""


def _imported(program: str) -> set[str]:
    done = subprocess.run(  # noqa: S603 - a program from this file
        [sys.executable, "-c", f"{program}\nimport sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


@pytest.mark.parametrize(
    "program", ["from solotable import Entity, Table", _DECLARE], ids=["import", "declare"]
)
def test_declaration_loads_no_store_engine_or_parser(program: str) -> None:
    loaded = _imported(program)
    found = [
        name for name in loaded if any(name == each or name.startswith(f"{each}.") for each in FORBIDDEN)
    ]
    assert sorted(found) == []


def test_import_of_entity_and_table_loads_few_modules_beside_pydantic() -> None:
    pydantic = _imported("from pydantic import BaseModel\nclass Model(BaseModel): pass")
    ours = _imported("from solotable import Entity, Table") - pydantic
    assert len(ours) <= MOST_MODULES, sorted(ours)


_USE = (
    _DECLARE
    + """
from solotable import connect
with connect("sqlite://", Order.plan().table) as db:
    db.put(Order(order_id="1"), where=lambda order: order.order_id != "2")
"""
)


def test_a_store_in_process_loads_no_parser_of_expressions_or_requests() -> None:
    parsers = {
        "solotable._expressions.legacy",
        "solotable._expressions.syntax.parse",
        "solotable._expressions.syntax.bind",
        "solotable._protocol.constraints.checker",
        "solotable._protocol.decode.requests",
        "solotable._protocol.wire",
    }
    assert parsers & _imported(_USE) == set()
