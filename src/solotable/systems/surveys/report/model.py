"""The content of a report: sections, defects and photos with their numbers. Pure, without markup.

- Texts of phrases come from the snapshot of the survey, never from the library: a phrase that was deleted
  keeps its text. A phrase that the snapshot does not hold is reported with its id.
- Numbers are counted through the report in order: sections 1, elements 1.1, defects D1, photos 1. A photo of
  two parts has one number.
- The first photo of a section itself is on the cover. Photos of elements show details.
- Parts whose parent does not exist are reported after all others (C4.15).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime

from solotable.systems.surveys.entities.configs import Configuration, PhraseTemplate
from solotable.systems.surveys.entities.files import Image
from solotable.systems.surveys.entities.stored import Condition
from solotable.systems.surveys.entities.surveys import (
    Part,
    SurveyComponent,
    SurveyElement,
    SurveySection,
    SurveyStatus,
)
from solotable.systems.surveys.services.survey.tree import ElementNode, SectionNode, SurveyTree, part_id

#: Statuses of a report that is not final.
UNFINISHED: frozenset[SurveyStatus] = frozenset({"draft", "in_progress"})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportPhoto:
    """A photo with its number; `image` is None for one that does not exist any more."""

    number: int
    image_id: str
    image: Image | None
    #: Where the photo is shown first: the number and the name of the section or element.
    place: str
    section: int
    element: int

    @property
    def caption(self) -> str:
        """The caption, or the name of the file."""
        return "" if self.image is None else self.image.caption or self.image.name

    @property
    def is_stored(self) -> bool:
        """Whether its bytes are uploaded."""
        return self.image is not None and self.image.status == "stored"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhotoUse:
    """A photo at one part; only the first use of a photo shows it, the others refer to it."""

    photo: ReportPhoto
    is_first: bool
    part: Part


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportDefect:
    """A defect: a phrase of the snapshot at an element or a component."""

    number: int
    phrase_id: str
    #: None if the snapshot does not hold the phrase.
    phrase: PhraseTemplate | None
    #: The name of the component that has the defect; empty for a defect of the element.
    component: str
    #: Whether the element, or the component, is in poor condition.
    is_urgent: bool
    #: The numbers of the photos of the same part.
    photos: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportElement:
    """An element with its components, defects and photos."""

    number: str
    element: SurveyElement
    components: tuple[SurveyComponent, ...]
    defects: tuple[ReportDefect, ...]
    photos: tuple[PhotoUse, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportSection:
    """A section with its photos and elements."""

    number: int
    section: SurveySection
    photos: tuple[PhotoUse, ...]
    elements: tuple[ReportElement, ...]

    @property
    def defect_count(self) -> int:
        """The number of defects of its elements."""
        return sum(len(each.defects) for each in self.elements)

    @property
    def photo_count(self) -> int:
        """The number of different photos of the section and its elements."""
        uses = (*self.photos, *(use for each in self.elements for use in each.photos))
        return len({use.photo.image_id for use in uses})


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportFacts:
    """What the report says of its survey beside the parts; the tree does not hold these."""

    firm: str = ""
    surveyor: str = ""
    #: When the snapshot of the phrases was taken; None without a snapshot.
    snapshot_taken: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """A report, ready to be rendered."""

    survey_id: str
    version: int
    title: str
    address: str
    client_name: str
    survey_date: date | None
    status: SurveyStatus
    facts: ReportFacts
    #: When the survey or one of its parts changed last.
    changed: datetime | None
    cover: ReportPhoto | None
    sections: tuple[ReportSection, ...]
    photos: tuple[ReportPhoto, ...]
    orphans: tuple[Part, ...]
    orphan_photos: tuple[PhotoUse, ...]

    @property
    def conditions(self) -> Counter[Condition]:
        """How many elements have each condition."""
        return Counter(each.element.condition for section in self.sections for each in section.elements)

    @property
    def urgent(self) -> list[ReportDefect]:
        """The defects of what is in poor condition."""
        return [
            defect
            for section in self.sections
            for element in section.elements
            for defect in element.defects
            if defect.is_urgent
        ]


def build_report(
    tree: SurveyTree,
    configuration: Configuration | None,
    images: Iterable[Image],
    facts: ReportFacts | None = None,
) -> Report:
    """Return the report of a survey from its tree, its snapshot and its images."""
    survey = tree.survey
    numbering = _Numbering(
        phrases={each.phrase_id: each for each in configuration.phrases} if configuration else {},
        images={each.image_id: each for each in images},
    )
    cover = _cover(tree)
    if cover is not None:
        node, image_id = cover
        number = tree.sections.index(node) + 1
        numbering.number_photo(image_id, f"{number} {node.section.name}", number, 0)
    sections = tuple(_section(node, number, numbering) for number, node in enumerate(tree.sections, 1))
    orphan_photos = tuple(
        use for part in tree.orphans for use in numbering.uses(part, f"without a place: {part.name}", 0, 0)
    )
    times = [part.updated for part in (survey, *tree.parts(), *tree.orphans)]
    return Report(
        survey_id=survey.survey_id,
        version=survey.version,
        title=survey.title,
        address=survey.address,
        client_name=survey.client_name,
        survey_date=survey.survey_date,
        status=survey.status,
        facts=facts or ReportFacts(),
        changed=max((time for time in (*times, survey.changed) if time is not None), default=None),
        cover=None if cover is None else numbering.photos[cover[1]],
        sections=sections,
        photos=tuple(numbering.photos.values()),
        orphans=tuple(tree.orphans),
        orphan_photos=orphan_photos,
    )


def photo_ids(tree: SurveyTree) -> list[str]:
    """Return the ids of all photos of a survey, each once, in order."""
    return list(
        dict.fromkeys(image_id for part in (*tree.parts(), *tree.orphans) for image_id in part.photos)
    )


@dataclass(slots=True, kw_only=True)
class _Numbering:
    """Counts defects and photos through the report."""

    phrases: Mapping[str, PhraseTemplate]
    images: Mapping[str, Image]
    photos: dict[str, ReportPhoto] = field(default_factory=dict)
    defects: int = 0

    def number_photo(self, image_id: str, place: str, section: int, element: int) -> ReportPhoto:
        """Return a photo with its number: a new one at its first use."""
        found = self.photos.get(image_id)
        if found is None:
            found = self.photos[image_id] = ReportPhoto(
                number=len(self.photos) + 1,
                image_id=image_id,
                image=self.images.get(image_id),
                place=place,
                section=section,
                element=element,
            )
        return found

    def uses(self, part: Part, place: str, section: int, element: int) -> list[PhotoUse]:
        """Return the photos of a part."""
        found = []
        for image_id in dict.fromkeys(part.photos):
            is_first = image_id not in self.photos
            photo = self.number_photo(image_id, place, section, element)
            found.append(PhotoUse(photo=photo, is_first=is_first, part=part))
        return found

    def defects_of(
        self, part: SurveyElement | SurveyComponent, photos: Iterable[PhotoUse], *, is_urgent: bool
    ) -> list[ReportDefect]:
        """Return the defects of a part."""
        found = []
        shown = tuple(use.photo.number for use in photos if part_id(use.part) == part_id(part))
        for phrase_id in dict.fromkeys(part.defects):
            self.defects += 1
            found.append(
                ReportDefect(
                    number=self.defects,
                    phrase_id=phrase_id,
                    phrase=self.phrases.get(phrase_id),
                    component=part.name if isinstance(part, SurveyComponent) else "",
                    is_urgent=is_urgent,
                    photos=shown,
                )
            )
        return found


def _cover(tree: SurveyTree) -> tuple[SectionNode, str] | None:
    """Return the section whose first photo is on the cover, and that photo."""
    for node in tree.sections:
        if node.section.photos:
            return node, node.section.photos[0]
    return None


def _section(node: SectionNode, number: int, numbering: _Numbering) -> ReportSection:
    photos = numbering.uses(node.section, f"{number} {node.section.name}", number, 0)
    elements = [_element(each, number, place, numbering) for place, each in enumerate(node.elements, 1)]
    return ReportSection(number=number, section=node.section, photos=tuple(photos), elements=tuple(elements))


def _element(node: ElementNode, section: int, number: int, numbering: _Numbering) -> ReportElement:
    element = node.element
    place = f"{section}.{number} {element.name}"
    parts: list[SurveyElement | SurveyComponent] = [element, *node.components]
    photos = [use for part in parts for use in numbering.uses(part, place, section, number)]
    defects = [
        defect
        for part in parts
        for defect in numbering.defects_of(
            part, photos, is_urgent="Poor" in (part.condition, element.condition)
        )
    ]
    return ReportElement(
        number=f"{section}.{number}",
        element=element,
        components=tuple(node.components),
        defects=tuple(defects),
        photos=tuple(photos),
    )
