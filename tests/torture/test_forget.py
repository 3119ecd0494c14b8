"""kill -9 while keys of data subjects are destroyed: the others stay, and a repetition ends the work."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from solotable.encryption import KeyTable, SubjectKeys
from solotable.errors import SubjectForgotten
from tests.killing import Start
from tests.unit.encryption.customers import keyring
from tests.unit.encryption.test_key_table import PROGRAM, is_anywhere, wrapped_key
from tests.waiting import jitter

from .size import LIMIT_SECONDS, SEED, amount, report

ROUNDS = amount(2, 100)
SUBJECTS = 8

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def is_readable(keys: SubjectKeys, ciphertext: bytes) -> bool:
    try:
        return keys.decrypt(ciphertext, b"here", "acme") == b"text"
    except SubjectForgotten:
        return False


def test_kill_9_of_forgetting_destroys_no_other_key_and_leaves_none(tmp_path: Path, start: Start) -> None:
    dice = random.Random(SEED)
    pending = 0
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        folder.mkdir()
        store = KeyTable.create(f"sqlite:///{folder}/keys.db")
        keys = SubjectKeys(store, keyring, cache_seconds=0)
        texts = [keys.encrypt(b"text", b"here", "acme", f"c{each}") for each in range(2 * SUBJECTS)]
        secrets = [wrapped_key(keys, f"c{each}") for each in range(2 * SUBJECTS)]
        program = start(*PROGRAM, str(SUBJECTS), str(folder))
        program.wait_for_lines(dice.randrange(1, SUBJECTS))
        jitter(dice, 0.05)
        done = len(program.kill())
        # The call that was killed has destroyed its key, or not.
        readable = [is_readable(keys, each) for each in texts]
        assert readable[:done] == [False] * done
        assert readable[done + 1 :] == [True] * (2 * SUBJECTS - done - 1)
        pending += done < SUBJECTS and not readable[done]
        keys.forget_many([f"c{each}" for each in range(SUBJECTS)], tenant="acme")
        assert [is_readable(keys, each) for each in texts] == [False] * SUBJECTS + [True] * SUBJECTS
        store.close()
        assert [is_anywhere(each, folder) for each in secrets] == [False] * SUBJECTS + [True] * SUBJECTS
    report(
        f"seed {SEED}: {ROUNDS} kills of forgetting, {pending} after the key was destroyed; no other key lost"
    )
