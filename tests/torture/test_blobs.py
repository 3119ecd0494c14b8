"""kill -9 of writers and collectors of offloaded texts: no text in use is lost, and unused ones go later."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest

from solotable import Blob
from solotable.jobs.collect_blobs import collect_blobs
from tests.killing import Start
from tests.waiting import jitter

from .librarian import BOOKS, GRACE, TEXTS, Book, age, opened, shelf, text_of
from .size import LIMIT_SECONDS, SEED, amount, report

ROUNDS = amount(2, 200)

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)
TEXT_SET = {text_of(number) for number in range(TEXTS)}


def check(file: Path, folder: Path) -> set[str]:
    """Read the text of each book; return the checksums in use."""
    used: set[str] = set()
    with opened(str(file), str(folder)) as db:
        for number in range(BOOKS):
            book = db.get(Book, number=number)
            if book is not None:
                assert book.text.read() in TEXT_SET
                used.add(book.text.sha256)
    return used


def test_no_text_in_use_is_lost_to_kill_9(tmp_path: Path, start: Start) -> None:
    file, folder = tmp_path / "library.db", tmp_path / "texts"
    dice = random.Random(SEED)
    died: Counter[str] = Counter()
    for number in range(ROUNDS):
        # Texts of former rounds are old: a collector deletes those that no book uses and no writer touches.
        age(folder)
        arguments = (str(file), str(folder), str(SEED + number))
        writer = start("-m", "tests.torture.librarian", "write", *arguments)
        collector = start("-m", "tests.torture.librarian", "collect", *arguments)
        turns = [writer] * dice.randrange(3, 30) + [collector] * dice.randrange(1, 15)
        dice.shuffle(turns)
        steps = {writer: 0, collector: 0}
        for program in turns:
            if program.wait_for_lines(steps[program] + 1)[-1].startswith("done"):
                continue
            program.release()
            steps[program] += 1
        jitter(dice)
        died[writer.kill()[-1]] += 1
        died[collector.kill()[-1].partition(" ")[0]] += 1
        check(file, folder)
    used = check(file, folder)
    age(folder)
    with opened(str(file), str(folder)) as db:
        assert collect_blobs(db.admin(), budget=1_000, grace=GRACE, allow_all=True).done
    assert check(file, folder) == used
    assert {each.name.rpartition("/")[2] for each in shelf.list("")} == used
    assert {path.name for path in folder.rglob("*") if path.is_file() and path.name[0] != "."} == used
    report(f"blobs: {ROUNDS} rounds, killed after {dict(died)}, 0 texts in use lost (seed {SEED})")


@pytest.mark.parametrize("last", ["stored", "written", "collecting", "deleting"])
def test_a_process_killed_at_each_step_leaves_unused_texts_only(
    last: str, tmp_path: Path, start: Start
) -> None:
    file, folder = tmp_path / "library.db", tmp_path / "texts"
    with opened(str(file), str(folder)) as db:
        for number in range(BOOKS):
            # The first text is not used any more after the second.
            for text in (number, number + 1):
                db.put(Book(number=number, text=Blob(text_of(text))))
    age(folder)
    before = check(file, folder)
    kind = "write" if last in {"stored", "written"} else "collect"
    program = start("-m", "tests.torture.librarian", kind, str(file), str(folder), str(SEED))
    steps = 1
    while program.wait_for_lines(steps)[-1] != last:
        program.release()
        steps += 1
    program.kill()
    used = check(file, folder)
    assert kind == "write" or used == before
    age(folder)
    with opened(str(file), str(folder)) as db:
        assert collect_blobs(db.admin(), budget=1_000, grace=GRACE).done
    assert check(file, folder) == used == {path.name for path in folder.rglob("*") if path.is_file()}
