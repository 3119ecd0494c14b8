"""Items of the old tables as years of production leave them, the same for the same seed.

The dirt: missing fields, old spellings of enums, parts without an id and with the id of another, orders as
text and fractions, sets and lists, a survey close to 400 KB, and surveys that no rule can accept.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

_START = datetime(2021, 3, 1, 8, tzinfo=UTC)
_NAMES = ("Roof", "Walls", "Windows", "Floors", "Drains", "Stairs", "Porch", "Chimney", "Cellar", "Garden")
_CONDITIONS = ("Good", "good", "FAIR", "Poor", "Very good", "bad", "ok", "N/A", "", None, "Unsure")
_STATUSES = ("draft", "published", "archived", "in-progress", "Complete", None)
_MATERIALS = ("Slate", "Clay", "Lead", "Zinc", "Oak", "Pine")
_SENTENCE = "The fabric was inspected from the ground with binoculars; no access was available. "


@dataclass(frozen=True, slots=True, kw_only=True)
class DirtyData:
    """How much of what there is."""

    tenants: int = 2
    surveys: int = 6
    sections: int = 3
    elements: int = 3
    components: int = 2
    library: int = 4
    phrases: int = 10
    images: int = 8
    documents: int = 3
    #: Whether the first tenant has a survey of about 380 KB.
    large_survey: bool = False
    #: Surveys of the first tenant that no rule can accept: a note over 5000 characters.
    unusable: int = 0
    seed: int = 4


def old_items(size: DirtyData | None = None) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the table and the Python values of each old item."""
    wanted = size or DirtyData()
    for number in range(wanted.tenants):
        yield from _Tenant(wanted, number).items()


class _Tenant:
    """The old items of one tenant."""

    def __init__(self, size: DirtyData, number: int) -> None:
        self._size = size
        self._number = number
        self._id = f"tenant-{number}"
        self._random = random.Random(f"{size.seed}/{number}")  # noqa: S311 - sample data

    def items(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield the tenant, its library, its files and its surveys."""
        tenant: dict[str, Any] = {"id": self._id, "created": self._time(0)}
        if self._number % 2 == 0:
            tenant["name"] = f"Surveyors {self._number}"
        yield "Tenants", tenant
        yield from self._library()
        yield from self._files()
        for number in range(self._size.surveys):
            yield "Surveys", self._survey(number)
        if self._number == 0:
            if self._size.large_survey:
                yield "Surveys", self._large_survey()
            for number in range(self._size.unusable):
                broken = self._survey(10_000 + number)
                broken["content"] = json.dumps({"sections": [{"id": "s", "notes": "x" * 5001}]})
                yield "Surveys", broken

    def _time(self, days: int) -> str:
        moment = _START + timedelta(days=days, minutes=self._number)
        return moment.isoformat().replace("+00:00", "Z")

    def _common(self, table: str, number: int) -> dict[str, Any]:
        status = self._random.choice(("synced", "synced", "synced", "pending", "failed"))
        item: dict[str, Any] = {
            "id": f"{table}-{self._number}-{number}",
            "tenant_id": self._id,
            "sync_key": f"{self._id}#{status}",
            "created": self._time(number),
            "updated": self._time(number + 30),
        }
        if status == "failed":
            item["sync_error"] = "timeout"
        if self._random.random() < 0.2:
            # Older releases did not store them.
            for name in ("created", "sync_key"):
                del item[name]
        return item

    def _library(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for number in range(self._size.library):
            section = {**self._common("section", number), "name": _NAMES[number % len(_NAMES)]}
            if number:
                section |= {"order": f"{number:04d}", "description": _SENTENCE, "category": "Outside"}
            yield "Sections", section
            for child in range(2):
                at = number * 2 + child
                element = {
                    **self._common("element", at),
                    "section_id": section["id"],
                    "name": f"Element {at}",
                    "order": f"{child * 9:04d}",
                    "is_active": at % 5 != 0,
                }
                yield "Elements", element
                component = {
                    **self._common("component", at),
                    "element_id": element["id"],
                    "order": f"{at:04d}",
                    "materials": [self._random.choice(_MATERIALS)],
                    "tags": {"heritage", "listed"},
                }
                if at % 3:
                    component["name"] = f"Component {at}"
                yield "Components", component
        for number in range(self._size.phrases):
            phrase = {
                **self._common("phrase", number),
                "type_key": f"{self._id}#{'Condition' if number % 4 == 0 else 'Defect'}",
                "phrase": _SENTENCE,
                "element_ids": [f"element-{self._number}-{number % 4}"],
                "name": f"Phrase {number}",
            }
            if number % 3 == 0:
                phrase |= {"phrase_level2": "Serious", "component_ids": [f"component-{self._number}-0"]}
            yield "Phrases", phrase

    def _files(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for number in range(self._size.images):
            image = {
                **self._common("image", number),
                "path": f"{self._id}/photos/{number}.jpg",
                # Two rows of the same photo.
                "sha256": f"{number // 2:064x}",
            }
            if number % 2:
                image["caption"] = f"Photo {number}"
            yield "ImageMetadata", image
        for number in range(self._size.documents):
            versions = number % 4 + 1
            for label in ("LATEST", *(f"v{version}" for version in range(1, versions + 1))):
                document: dict[str, Any] = {
                    "PK": f"{self._id}#document-{number}",
                    "SK": label,
                    "tenant_id": self._id,
                    "document_id": f"document-{number}",
                    "owner": "ann",
                    "name": f"Terms {number}",
                    "path": f"{self._id}/documents/{number}/{label}.pdf",
                    "updated": self._time(number),
                }
                if label == "LATEST" and number % 2:
                    document["version"] = versions
                yield "DocumentRecord", document

    def _survey(self, number: int) -> dict[str, Any]:
        choose = self._random.choice
        content: dict[str, Any] = {
            "sections": [self._section(number, at) for at in range(self._size.sections)]
        }
        if number % 3:
            content |= {"title": f"{number} Mill Lane", "clientName": "Ada Byron", "weather": "dry"}
        if number % 4 == 1:
            content |= {"surveyDate": self._time(number), "address": f"{number} Mill Lane, Leeds"}
        status = choose(_STATUSES)
        if status is not None:
            content["status"] = status
        item = {
            **self._common("survey", number),
            "owner": choose(("ann", "ben")),
            "content": json.dumps(content),
        }
        if number % 2:
            item |= {"editors": ["cid"], "viewers": ["dee", "eve"], "version": number}
        return item

    def _section(self, survey: int, number: int) -> dict[str, Any]:
        node = self._node(f"s{number}", number)
        node["elements"] = [self._element(survey, number, at) for at in range(self._size.elements)]
        if number == 1:
            node |= {"completedAt": self._time(survey), "completedBy": "ann"}
        return node

    def _element(self, survey: int, section: int, number: int) -> dict[str, Any]:
        # Elements of some surveys have the ids of those of another section.
        name = f"e{number}" if survey % 5 == 4 else f"e{section}-{number}"
        node = self._node(name, number)
        if number % 2:
            node |= {"measurements": {"area": 12.5}, "materials": ["Slate"], "defects": ["phrase-0-1"]}
        node["components"] = [
            self._node(f"c{section}-{number}-{at}", at) | {"material": self._random.choice(_MATERIALS)}
            for at in range(self._size.components)
        ]
        if survey % 6 == 5:
            for component in node["components"]:
                del component["id"]
        return node

    def _node(self, name: str, number: int) -> dict[str, Any]:
        node: dict[str, Any] = {"id": name, "name": f"{_NAMES[number % len(_NAMES)]} {name}"}
        condition = self._random.choice(_CONDITIONS)
        if condition is not None:
            node["condition"] = condition
        if number % 2 == 0:
            node |= {"order": self._random.choice((number, str(number), float(number))), "notes": _SENTENCE}
        if number % 3 == 0:
            node["photos"] = [f"image-{self._number}-{number}"]
        return node

    def _large_survey(self) -> dict[str, Any]:
        sections = [
            {
                "id": f"s{at}",
                "name": f"Section {at}",
                "order": at,
                "elements": [
                    {"id": f"e{at}-{element}", "name": "Element", "order": element, "notes": _SENTENCE * 40}
                    for element in range(10)
                ],
            }
            for at in range(11)
        ]
        content = json.dumps({"title": "The large one", "sections": sections})
        return {**self._common("survey", 99_999), "owner": "ann", "content": content}
