"""`solotable adopt` on the tables of the four libraries: it recognises them and reads every item."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from tests.serving import Served
from tests.waiting import HANG_SECONDS

from .foreign import ForeignProgram, aws_environment

TABLES = {
    "Library": ("electrodb", "__edb_e__", {"Author", "Book", "Loan"}),
    "Accounts": ("onetable", "_type", {"Account", "User", "Invoice"}),
    "Shop": ("toolbox", "_et", {"Customer", "Order"}),
    "Staff": ("pynamodb", "cls", {"Employee", "Badge"}),
    "Events": ("pynamodb", None, {"Event"}),
}


def adopt(server: Served, table: str) -> Any:
    done = subprocess.run(  # noqa: S603 - our own command
        [sys.executable, "-m", "solotable", "adopt", f"{server.url}/{table}", "--json"],
        capture_output=True,
        text=True,
        check=False,
        timeout=HANG_SECONDS,
        env=aws_environment(server),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("table", TABLES)
def test_a_table_of_a_library_is_recognised_and_read(
    table: str, server: Served, foreign: Callable[[str], ForeignProgram]
) -> None:
    library, tag, entities = TABLES[table]
    foreign(library).run("write")
    found = adopt(server, table)
    assert (found["library"], found["tag"]) == (library, tag)
    assert {each["name"] for each in found["entities"]} == entities
    assert (found["unchanged"], found["problems"]) == (found["sampled"], [])
    assert f'adopt="{library}"' in found["models"]
    assert [each for each in found["findings"] if each["severity"] == "error"] == []
    assert [index for each in found["entities"] for index in each["indexes"] if index["problem"]] == []
