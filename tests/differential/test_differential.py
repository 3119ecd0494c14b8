"""Random requests get the same answers from the engine and from DynamoDB Local.

`python -m tests.differential` runs the same for as long as one likes.
"""

from __future__ import annotations

import pytest

from solotable.engines import sqlite
from tests.conformance.dynamodb_local import Server
from tests.conformance.targets import InProcess

from .compare import differences


@pytest.mark.parametrize("seed", range(4))
def test_random_requests_get_the_same_answers(local: Server, seed: int) -> None:
    if local.outdated:
        pytest.skip(f"DynamoDB Local {local.version} is too old to compare with.")
    with sqlite.open(":memory:", error_texts="2025") as engine:
        found = list(differences(InProcess(engine), local.target, seed=seed, count=1_000))
    assert not found, "\n\n".join(map(str, found))
