"""Look for differences by hand: `python -m tests.differential --seed 1 --count 20000`.

Prints each kind of difference once, with the request that showed it.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from solotable.engines import sqlite
from tests.conformance.dynamodb_local import find_or_fetch, serve
from tests.conformance.harness import Target
from tests.conformance.targets import Http, InProcess

from .compare import Difference, differences


def main() -> int:
    """Compare; exit with 1 when anything was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=5_000)
    parser.add_argument("--port", type=int, help="a DynamoDB Local that runs already")
    parser.add_argument("--show", type=int, default=12, help="how many kinds to show")
    chosen = parser.parse_args()
    with contextlib.ExitStack() as stack:
        theirs: Target
        if chosen.port:
            theirs = Http("127.0.0.1", chosen.port)
        else:
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            theirs = stack.enter_context(serve(find_or_fetch(), log=folder / "server.log")).target
        engine = stack.enter_context(sqlite.open(":memory:", error_texts="2025"))
        kinds: Counter[str] = Counter()
        examples: dict[str, Difference] = {}
        for found in differences(InProcess(engine), theirs, seed=chosen.seed, count=chosen.count):
            one = found.exchange
            kind = f"{one.operation}: ours {one.ours.code}, theirs {one.theirs.code}"
            kind += f" ({one.theirs.text or one.ours.text or _members(one.ours.body, one.theirs.body):.60})"
            kinds[kind] += 1
            if kind not in examples or len(str(found)) < len(str(examples[kind])):
                examples[kind] = found
    for kind, times in kinds.most_common(chosen.show):
        print(f"{times:5} x {kind}\n{examples[kind]}\n")
    total = sum(kinds.values())
    print(f"{chosen.count} requests from seed {chosen.seed}: {total} differences of {len(kinds)} kinds")
    return 1 if kinds else 0


def _members(ours: Any, theirs: Any) -> str:
    """Name the members that two replies do not have in common."""
    if not isinstance(ours, dict) or not isinstance(theirs, dict):
        return ""
    return ", ".join(
        sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    )


if __name__ == "__main__":
    sys.exit(main())
