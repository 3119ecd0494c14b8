"""Tenants that try to reach each other: 2,000 attempts in every run, 100,000 in the long form, no leak."""

from __future__ import annotations

import pytest

from solotable import Database
from solotable._connect import connect
from tests.store.models import Book, library, surveyor

from .intruders import TENANTS, Intruders, Leak
from .size import LIMIT_SECONDS, SEED, amount, report

ATTEMPTS = amount(2_000, 100_000)
BETWEEN_CHECKS = 1_000

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)


def _base() -> Database:
    return connect("sqlite://", surveyor, library, cursor_secrets=[b"sixteen bytes and more"])


def test_no_attempt_reaches_another_tenant() -> None:
    with _base() as base:
        intruders = Intruders(base, SEED)
        items = 0
        try:
            for number in range(ATTEMPTS):
                intruders.attempt()
                if number % BETWEEN_CHECKS == BETWEEN_CHECKS - 1:
                    items = intruders.check()
        except Leak as leak:
            pytest.fail(f"seed {SEED}: {leak}")
        assert intruders.refused > ATTEMPTS // 10
        assert intruders.empty > ATTEMPTS // 50
        report(
            f"{ATTEMPTS:,} attempts of {len(TENANTS)} tenants, {intruders.refused:,} refused, {items:,} items"
        )


@pytest.mark.parametrize("hole", ["read", "write", "delete"])
def test_a_leak_would_be_found(hole: str) -> None:
    """The check itself: it finds an item of another tenant."""
    with _base() as base:
        intruders = Intruders(base, 1)
        one, other = base.tenant("a"), base.tenant("b")
        if hole == "read":
            intruders.stores["a"] = other  # tenant `a` now sees the items of b
            with pytest.raises(Leak):  # noqa: PT012 - one of them will
                for _ in range(5_000):
                    intruders.attempt()
        elif hole == "write":
            one.put(Book(book_id="x", title=intruders.marks["b"], author="x"))
            with pytest.raises(Leak):
                intruders.check()
        else:
            other.delete(Book, book_id="vault1-0")
            with pytest.raises(Leak):
                intruders.check()
