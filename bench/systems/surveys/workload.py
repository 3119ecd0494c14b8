"""The data that both layouts store, the load of a month, and the prices. Sends nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

TENANT = "acme"
OWNER = "ann"
#: The load: so many surveyors, and how often one of them does each thing on a working day.
SURVEYORS = 50
DAYS_A_MONTH = 21
LOAD: dict[str, float] = {
    "Q1 all data of the tenant": 0.05,
    "Q2 complete survey": 6,
    "Q3 list of surveys": 20,
    "Q4 library": 4,
    "Q5 phrases of a type": 20,
    "Q6 phrases of an element": 40,
    "Q7 images": 4,
    "Q8 document versions": 2,
    "Q9 items that wait": 96,
    "Q10 items changed since": 96,
    "edit a section's note": 60,
    "edit an element's condition": 100,
    "add a component": 20,
    "move a section": 4,
    "complete a section": 12,
    "change the title": 2,
    "batch of 20 changes": 4,
}
QUERIES = tuple(name for name in LOAD if name.startswith("Q"))
EDITS = tuple(name for name in LOAD if not name.startswith("Q"))
CONDITIONS = ("Good", "Fair", "Poor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How many parts a survey has, and how many surveys the tenant."""

    name: str
    sections: int
    elements: int
    components: int
    surveys: int
    library: int = 100
    phrases: int = 80
    images: int = 50
    #: How often the notes of a part repeat a sentence; with 5, an item of ours has 0.9 KB.
    sentences: int = 5

    @property
    def parts(self) -> int:
        """The parts of one survey."""
        return self.sections + self.elements + self.components


SIZES = (
    Size(name="small", sections=5, elements=15, components=30, surveys=6),
    Size(name="typical", sections=12, elements=50, components=110, surveys=6),
    Size(name="full", sections=30, elements=150, components=400, surveys=2),
    Size(name="long notes", sections=30, elements=150, components=400, surveys=1, sentences=10),
)
TINY = Size(name="tiny", sections=2, elements=4, components=25, surveys=3, library=4, phrases=4, images=3)
FULL = next(size for size in SIZES if size.name == "full")
SENTENCE = "The fabric was inspected from the ground with binoculars; no access was available. "
#: The notes of a new part, and the text of a phrase.
NOTE = SENTENCE * 5


@dataclass(frozen=True, slots=True)
class PartData:
    """A part of a survey as both layouts store it; `parent` is empty for a section."""

    kind: str
    id: str
    parent: str
    number: int
    notes: str = NOTE

    def fields(self) -> dict[str, Any]:
        """Return what the surveyor entered."""
        shared = {
            "name": f"{self.kind.title()} {self.number}",
            "notes": self.notes,
            "condition": CONDITIONS[self.number % 3],
            "photos": [],
        }
        match self.kind:
            case "section":
                return shared
            case "element":
                return {**shared, "defects": [], "measurements": {"area": "12 m2"}}
            case _:
                return {**shared, "defects": [], "material": "Slate", "age": "40 years"}


def parts_of(size: Size) -> Iterator[PartData]:
    """Yield the parts of a survey, parents first, spread evenly over their parents."""
    notes = SENTENCE * size.sentences
    for number in range(size.sections):
        yield PartData("section", f"s{number:03d}", "", number, notes)
    for number in range(size.elements):
        yield PartData("element", f"e{number:03d}", f"s{number % size.sections:03d}", number, notes)
    for number in range(size.components):
        yield PartData("component", f"c{number:03d}", f"e{number % size.elements:03d}", number, notes)


def survey_ids(size: Size) -> list[str]:
    """Return the ids of the tenant's surveys."""
    return [f"survey{number:03d}" for number in range(size.surveys)]


@cache
def prices() -> dict[str, Any]:
    """Return the price list."""
    found: dict[str, Any] = json.loads(Path(__file__).with_name("prices.json").read_text(encoding="utf-8"))
    return found


def dollars_a_month(name: str, rcu: float, wcu: float) -> float:
    """Return what an operation costs in a month of the load, for the units that one call consumed."""
    calls = LOAD[name] * SURVEYORS * DAYS_A_MONTH
    a_call = (
        rcu * prices()["dollars_per_million_read_units"] + wcu * prices()["dollars_per_million_write_units"]
    )
    return float(calls * a_call / 1e6)
