"""The figures of the surveys as text, as tables of the guide, and beside the claims of the written design."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .compare import EMBEDDED, OLD, OURS
from .workload import DAYS_A_MONTH, EDITS, LOAD, QUERIES, SURVEYORS, prices

#: Figures by place and layout.
Places = Mapping[str, Mapping[str, Mapping[str, Any]]]


def totals(layout: Mapping[str, Any], names: Sequence[str] = tuple(LOAD)) -> dict[str, float]:
    """Return the dollars a month, and the milliseconds that a surveyor waits in a day, for the load.

    The waits are the shortest ones: on a busy machine, the median measures the other programs.
    """
    return {
        "dollars_a_month": sum(layout[name]["dollars_a_month"] for name in names),
        "ms_a_day": sum(layout[name]["best_ms"] * LOAD[name] for name in names),
    }


def savings(layouts: Mapping[str, Mapping[str, Any]]) -> dict[str, float] | None:
    """Return what ours saves, in the terms of the claims; None if the old layout cannot hold the data.

    `cost` is the share of the dollars that it saves. `writes` and `queries` are how much more of the load's
    edits and queries a surveyor gets done in the same time.
    """
    old, ours = layouts[OLD], layouts[OURS]
    if "fails" in old:
        return None

    def faster(names: Sequence[str]) -> float:
        return totals(old, names)["ms_a_day"] / totals(ours, names)["ms_a_day"] - 1

    cost = 1 - totals(ours)["dollars_a_month"] / totals(old)["dollars_a_month"]
    return {"cost": cost, "writes": faster(EDITS), "queries": faster(QUERIES)}


def load_lines() -> Iterator[str]:
    """Yield the load and the prices."""
    edits, queries = (sum(LOAD[name] for name in names) for names in (EDITS, QUERIES))
    yield (
        f"  load: {SURVEYORS} surveyors, {edits:g} edits and {queries:g} queries each a day, "
        f"{DAYS_A_MONTH} days a month"
    )
    listed = prices()
    yield (
        f"  prices: {listed['region']}, {listed['mode']}, from {listed['valid_from']}: "
        f"${listed['dollars_per_million_write_units']:g} a million write units, "
        f"${listed['dollars_per_million_read_units']:g} a million read units; storage is not counted"
    )


def text_table(layouts: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield the figures of one place and size: an operation a line, old and ours in pairs of columns."""
    old, ours = layouts[OLD], layouts[OURS]
    heads = ("requests", "RCU", "WCU", "$ a month", "p50 ms", "best ms")
    yield f"  {'old, then ours':<28}" + "".join(f"{head:>18}" for head in heads)
    for name in LOAD:
        yield f"  {name:<28}" + "".join(f"{cell:>18}" for cell in _cells(old, ours, name))
    yield f"  {'all':<28}{'':>54}" + f"{_total(old)} {_total(ours):>8}".rjust(18)
    if "fails" in old:
        yield f"  old fails: {old['fails']}"


def _total(layout: Mapping[str, Any]) -> str:
    return "-" if "fails" in layout else f"{totals(layout)['dollars_a_month']:,.2f}"


def _cells(old: Mapping[str, Any], ours: Mapping[str, Any], name: str) -> Iterator[str]:
    for member, form in (
        ("requests", ",.0f"),
        ("rcu", ",.1f"),
        ("wcu", ",.0f"),
        ("dollars_a_month", ",.2f"),
        ("p50_ms", ",.1f"),
        ("best_ms", ",.1f"),
    ):
        before = "-" if "fails" in old else format(old[name][member], form)
        yield f"{before} {format(ours[name][member], form):>8}"


def markdown(sizes: Mapping[str, Any], size: str, place: str) -> Iterator[str]:
    """Yield the guide's table of one size and place: units and dollars, which do not depend on a machine."""
    old, ours = sizes[size]["places"][place][OLD], sizes[size]["places"][place][OURS]
    yield "| Operation | Times a day | Requests | RCU | WCU | Dollars a month |"
    yield "|---|---|---|---|---|---|"
    for name in LOAD:
        cells = [_pair(old, ours, name, member, form) for member, form in _COLUMNS]
        yield f"| {name} | {LOAD[name]:g} | {' | '.join(cells)} |"
    yield f"| all | | | | | {_total(old)} → {_total(ours)} |"


_COLUMNS = (("requests", ",.0f"), ("rcu", ",.1f"), ("wcu", ",.0f"), ("dollars_a_month", ",.2f"))


def _pair(old: Mapping[str, Any], ours: Mapping[str, Any], name: str, member: str, form: str) -> str:
    before = "fails" if "fails" in old else format(old[name][member], form)
    return f"{before} → {format(ours[name][member], form)}"


def claims_markdown(sizes: Mapping[str, Any]) -> Iterator[str]:
    """Yield the guide's table of the claims beside what was measured."""
    yield "| Survey | Where | Cost (claim: -40 to -50 %) | Writes (+70 %) | Queries (+50 %) |"
    yield "|---|---|---|---|---|"
    for size, each in sizes.items():
        for place, layouts in each["places"].items():
            found = savings(layouts)
            cells = ["no figure"] * 3 if found is None else _claims(found)
            yield f"| {size}, {each['parts']} parts | {place} | {' | '.join(cells)} |"


def _claims(found: Mapping[str, float]) -> Iterable[str]:
    yield f"{-found['cost']:+.1%}"
    yield f"{found['writes']:+.0%}"
    yield f"{found['queries']:+.0%}"


def guide_tables(results: Path) -> Iterator[str]:
    """Yield the two tables of the guide: the claims, then the operations of a typical survey."""
    sizes = json.loads(results.read_text(encoding="utf-8"))["figures"]["sizes"]
    yield "\n".join(claims_markdown(sizes))
    yield "\n".join(markdown(sizes, "typical", EMBEDDED))


if __name__ == "__main__":
    # The tables to paste into docs/guide/surveys-cost.md.
    print("\n\n".join(guide_tables(Path(__file__).parents[2] / "results" / "surveys.json")))
