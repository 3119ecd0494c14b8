"""Combine several observers to one."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from solotable._store.observation import check_observer

ObservedT = TypeVar("ObservedT")

_log = logging.getLogger("solotable.observe")


def combine(*observers: Callable[[ObservedT], object]) -> Callable[[ObservedT], object]:
    """Return an observer that calls each of these; an error of one does not keep the others from running."""
    for each in observers:
        check_observer(each)

    def observe(observation: ObservedT) -> None:
        for observer in observers:
            try:
                observer(observation)
            except Exception:  # noqa: BLE001 - the request is done, whatever an observer raises
                _log.exception("One of several observers raised an error.")

    return observe
