"""Combine several observers to one."""

from __future__ import annotations

import logging

from solotable._store.observation import Observation, Observer, check_observer

_log = logging.getLogger("solotable.observe")


def combine(*observers: Observer) -> Observer:
    """Return an observer that calls each of these; an error of one does not keep the others from running."""
    for each in observers:
        check_observer(each)

    def observe(observation: Observation) -> None:
        for observer in observers:
            try:
                observer(observation)
            except Exception:  # noqa: BLE001 - the request is done, whatever an observer raises
                _log.exception("One of several observers raised an error.")

    return observe
