"""Forecast: how fast a copy was lately, and when it will be ready.

The copy runs in windows, and the changes of a window are applied after it. So the pace has two parts: the
items in a second of the open windows, which is known at any time, and the time beside the windows, which is
known after each of them. Both forget: what was long ago says little about a machine whose load changes. A
later change of the load, of the size of the items or of the rate cannot be forecast.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from solotable.migrations.workflow.control import ControlRecord

#: Half of the pace is from the last eighth of the copy, or from the last five seconds of a short one.
_HALF_LIFE_SHARE = 0.125
_LEAST_HALF_LIFE_SECONDS = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """Items in a second, with the changes beside them, and the seconds that are left; None if unknown."""

    pace: float | None
    eta_seconds: float | None


def opening(record: ControlRecord, scanned: int, now: float) -> dict[str, Any]:
    """Return what to save when a copy window is opened: the pace, with the last window and its changes."""
    began = now if record.copy_began_at is None else record.copy_began_at
    saved: dict[str, Any] = {"copy_began_at": began, "opened_at": now, "opened_items": scanned}
    if record.opened_at is None or record.closed_at is None:
        return saved
    kept = _kept(record, now)
    return saved | {
        "paced_items": kept * record.paced_items + scanned - record.opened_items,
        "paced_copying": kept * record.paced_copying + max(0.0, record.closed_at - record.opened_at),
        "paced_seconds": kept * record.paced_seconds + max(0.0, now - record.opened_at),
    }


def forecast(record: ControlRecord, scanned: int, total: int, now: float) -> Forecast:
    """Return the pace and the time left of a copy that runs."""
    items, copying, overhead = record.paced_items, record.paced_copying, 1.0
    if record.paced_copying > 0:
        overhead = max(1.0, record.paced_seconds / record.paced_copying)
    #: Seconds of changes that wait for the end of the window, or are applied now.
    waiting = 0.0
    if record.opened_at is not None:
        is_open = record.copying or record.closed_at is None
        until = now if is_open else record.closed_at or now
        window = max(0.0, until - record.opened_at)
        kept = _kept(record, until)
        items = kept * items + scanned - record.opened_items
        copying = kept * copying + window
        waiting = max(0.0, window * (overhead - 1) - (now - until))
    if items <= 0 or copying <= 0:
        return Forecast(pace=None, eta_seconds=None)
    pace = items / copying / overhead
    return Forecast(pace=pace, eta_seconds=max(0, total - scanned) / pace + waiting)


def _kept(record: ControlRecord, now: float) -> float:
    """Return the share of the former pace that still counts after the window that began last."""
    opened = record.opened_at or now
    elapsed = max(0.0, now - (record.copy_began_at or now))
    half_life = max(_LEAST_HALF_LIFE_SECONDS, _HALF_LIFE_SHARE * elapsed)
    share: float = 0.5 ** (max(0.0, now - opened) / half_life)
    return share
