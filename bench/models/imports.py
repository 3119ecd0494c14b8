"""CPU time of imports in fresh interpreters: declarations beside Pydantic and PynamoDB."""

from __future__ import annotations

import statistics
import subprocess
import sys

_PYDANTIC = """
import pydantic
from pydantic import BaseModel
"""
_SOLOTABLE = """
from solotable import Entity, Table
"""
_PYNAMODB = """
import botocore.session
from pynamodb.models import Model
"""
#: The same fields each time; PynamoDB's without the optional datetime's None.
PROGRAMS = {
    "pydantic": _PYDANTIC,
    "solotable": _SOLOTABLE,
    "PynamoDB": _PYNAMODB,
    "pydantic, one class": f"""
from datetime import datetime
{_PYDANTIC}
class Order(BaseModel):
    order_id: str
    total: int = 0
    placed_at: datetime | None = None
""",
    "solotable, one class": f"""
from datetime import datetime
{_SOLOTABLE}
from solotable import Key
shop = Table("Shop")
class Order(Entity, table=shop):
    key = Key("ORDER#{{order_id}}", "ORDER")
    order_id: str
    total: int = 0
    placed_at: datetime | None = None
""",
    "PynamoDB, one class": f"""
{_PYNAMODB}
from pynamodb.attributes import NumberAttribute, UnicodeAttribute, UTCDateTimeAttribute
class Order(Model):
    class Meta:
        table_name = "Shop"
    order_id = UnicodeAttribute(hash_key=True)
    total = NumberAttribute(default=0)
    placed_at = UTCDateTimeAttribute(null=True)
""",
}
#: What each program is compared with.
BASES = {"": "pydantic", ", one class": "pydantic, one class"}
_MEASURE = """
import time
start = time.process_time()
{program}
spent = time.process_time() - start
import sys
print(spent, len(sys.modules))
"""


def measure(*, quick: bool) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return milliseconds of CPU (best and median) and modules of each program, and what is missing.

    The programs take turns, so that a busy moment of the machine meets all of them. The first round
    writes the .pyc files and is not counted.
    """
    spent: dict[str, list[float]] = {name: [] for name in PROGRAMS}
    modules: dict[str, int] = {}
    missing: dict[str, str] = {}
    for number in range(1 + (5 if quick else 25)):
        for name, program in PROGRAMS.items():
            if name in missing:
                continue
            done = subprocess.run(
                [sys.executable, "-c", _MEASURE.format(program=program)],
                capture_output=True,
                text=True,
                check=False,
            )
            if done.returncode:
                missing[name] = done.stderr.strip().splitlines()[-1]
                continue
            seconds, count = done.stdout.split()
            modules[name] = int(count)
            if number:
                spent[name].append(float(seconds) * 1000)
    figures = {
        name: {"best": min(each), "median": statistics.median(each), "modules": modules[name]}
        for name, each in spent.items()
        if each
    }
    return figures, missing


def ratio(figures: dict[str, dict[str, float]], name: str) -> float:
    """Return how many times the CPU of its Pydantic program a program takes, by their best rounds."""
    base = BASES[name.removeprefix(name.partition(",")[0])]
    return figures[name]["best"] / figures[base]["best"]


def table(figures: dict[str, dict[str, float]]) -> list[str]:
    """Return the figures as lines."""
    head = f"  {'':<24}{'best ms':>9}{'median ms':>11}{'modules':>9}{'x pydantic':>12}"
    return [
        head,
        *(
            f"  {name:<24}{each['best']:>9.1f}{each['median']:>11.1f}{each['modules']:>9.0f}"
            f"{ratio(figures, name):>12.2f}"
            for name, each in figures.items()
        ),
    ]
