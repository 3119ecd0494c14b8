"""A report as one HTML page without scripts and without requests. All texts are escaped.

The styles are in the page, and its Content-Security-Policy allows their digests only. The caller gives the
URLs of photos; data URLs make the page self-contained.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from urllib.parse import urlsplit

from solotable.systems.surveys.entities.stored import Condition
from solotable.systems.surveys.entities.surveys import Part, SurveyComponent, SurveySection
from solotable.systems.surveys.services.survey.tree import part_id

from .markup import (
    cell_html,
    columns_html,
    day_html,
    lines_html,
    moment_html,
    paragraphs,
    safe_url,
    table_html,
    text_html,
)
from .model import (
    UNFINISHED,
    PhotoUse,
    Report,
    ReportDefect,
    ReportElement,
    ReportPhoto,
    ReportSection,
)
from .page_styles import running_styles, stylesheet

_STATUSES = {"draft": "Draft", "in_progress": "In progress", "completed": "Completed", "archived": "Archived"}
#: The conditions, the worst first, with their class and meaning.
_CONDITIONS: dict[Condition, tuple[str, str]] = {
    "Poor": ("poor", "Does not do its work, or harms other parts. Repair soon."),
    "Fair": ("fair", "Worn or damaged, but works. Plan a repair."),
    "Good": ("good", "Does its work. Ordinary upkeep is enough."),
    "Excellent": ("excellent", "As new."),
    "N/A": ("none", "Not there, or not inspected. The text says which."),
}
_HATCH = (
    '<defs><pattern id="hatch" width=".8" height=".8" patternUnits="userSpaceOnUse" '
    'patternTransform="rotate(45)"><rect class="hatch-bg" fill="#fdf0d5" width=".8" height=".8"/>'
    '<rect class="hatch-line" fill="#7d4e00" width=".36" height=".8"/></pattern></defs>'
)
#: The stylesheet says the same; WeasyPrint applies no stylesheet to a picture.
_FILLS = {
    "poor": 'fill="#a3201a"',
    "fair": 'fill="url(#hatch)"',
    "good": 'fill="none" stroke="#17693a" stroke-width=".3"',
    "excellent": 'fill="none" stroke="#17693a" stroke-width=".8"',
    "none": 'fill="#d5dade"',
}


@dataclass(frozen=True, slots=True)
class PhotoLinks:
    """The URLs of a photo: the picture in the page, and the photo that it links to."""

    source: str | None = None
    target: str | None = None


Photos = Callable[[ReportPhoto], PhotoLinks]


def report_page(report: Report, photos: Photos, *, pdf_url: str | None = None) -> str:
    """Return a report as an HTML page."""
    links = {photo.image_id: _checked(photos(photo)) for photo in report.photos}
    return "".join(f"{line}\n" for line in _Page(report, links).lines(safe_url(pdf_url)))


def _checked(links: PhotoLinks) -> PhotoLinks:
    return PhotoLinks(safe_url(links.source), safe_url(links.target))


def _badge(condition: Condition) -> str:
    name, _ = _CONDITIONS[condition]
    return f'<span class="cond {name}">{condition}</span>'


def _see(numbers: Iterable[int]) -> str:
    """Return a sentence with links to photos."""
    found = [f'<a href="#photo-{number}">{number}</a>' for number in numbers]
    if not found:
        return ""
    listed = found[0] if len(found) == 1 else f"{', '.join(found[:-1])} and {found[-1]}"
    noun = "photo" if len(found) == 1 else "photos"
    return f'<p class="see">See {noun} {listed}.</p>'


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


class _Page:
    """The page of one report."""

    def __init__(self, report: Report, links: dict[str, PhotoLinks]) -> None:
        self._report = report
        self._links = links

    def lines(self, pdf_url: str | None) -> Iterator[str]:
        yield "<!doctype html>"
        yield '<html lang="en">'
        yield from self._head()
        yield "<body>"
        yield '<a class="skip" href="#summary">Skip to the summary</a>'
        yield self._bar(pdf_url)
        yield '<div class="layout">'
        yield self._contents()
        yield "<main>"
        yield from self._cover()
        yield from self._summary()
        for section in self._report.sections:
            yield from self._section(section)
        yield from self._appendix()
        yield "</main>\n</div>\n</body>\n</html>"

    def _head(self) -> Iterator[str]:
        styles = (stylesheet(), running_styles(self._report))
        yield '<head>\n<meta charset="utf-8">'
        yield f'<meta http-equiv="Content-Security-Policy" content="{escape(self._policy(styles))}">'
        yield f"<title>Building survey: {text_html(self._report.title)}</title>"
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield '<meta name="robots" content="noindex">'
        yield '<meta name="referrer" content="no-referrer">'
        for style in styles:
            yield f"<style>{style}</style>"
        yield "</head>"

    def _policy(self, styles: Iterable[str]) -> str:
        digests = (base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() for style in styles)
        sources = " ".join(f"'sha256-{digest}'" for digest in digests)
        hosts = set()
        for links in self._links.values():
            parts = urlsplit(links.source or "")
            if parts.scheme in ("http", "https") and not set(parts.netloc) & set(" ;,'\""):
                hosts.add(f"{parts.scheme}://{parts.netloc}")
        allowed = " ".join(["'self'", "data:", *sorted(hosts)])
        return (
            f"default-src 'none'; style-src {sources}; img-src {allowed}; form-action 'none'; base-uri 'none'"
        )

    @property
    def _reference(self) -> str:
        return f"Report {text_html(self._report.survey_id)}, version {self._report.version}"

    def _bar(self, pdf_url: str | None) -> str:
        button = ""
        if pdf_url is not None:
            button = f'<a class="btn" href="{escape(pdf_url)}">PDF <span class="opt">(A4)</span></a>'
        draft = ' <span class="draft">Draft</span>' if self._report.status in UNFINISHED else ""
        return (
            f'<header class="bar"><p><b>{text_html(self._report.title)}</b> '
            f"<span>{self._reference}</span>{draft}</p>{button}</header>"
        )

    def _contents(self) -> str:
        sections = "".join(
            f'<li><a href="#s{each.number}"><span>{each.number}</span> '
            f"{text_html(each.section.name)}</a></li>"
            for each in self._report.sections
        )
        return (
            f'<nav class="side" aria-label="Contents"><ol><li><a href="#summary">Summary</a></li>{sections}'
            '<li><a href="#appendix">Appendix</a></li></ol></nav>'
        )

    def _cover(self) -> Iterator[str]:
        report = self._report
        yield '<section class="cover" aria-labelledby="title">'
        if report.facts.firm:
            yield f'<p class="firm">{text_html(report.facts.firm)}</p>'
        yield '<div class="cover-title"><p>Building survey report</p>'
        address = report.address.strip()
        if address.partition("\n")[0].strip() == report.title:
            # The title is the first line of the address: one heading says both.
            yield f'<h1 id="title">{lines_html(address)}</h1></div>'
        else:
            yield f'<h1 id="title">{text_html(report.title)}</h1>'
            yield f'<address class="place">{lines_html(address)}</address></div>' if address else "</div>"
        if report.cover is not None:
            yield self._figure(report.cover)
        facts = {
            "Prepared for": text_html(report.client_name),
            "Inspected": "" if report.survey_date is None else day_html(report.survey_date),
            "Surveyor": text_html(report.facts.surveyor),
            "Status": _STATUSES[report.status],
            "Reference": f"{text_html(report.survey_id)}, version {report.version}",
            "Last changed": "" if report.changed is None else day_html(report.changed),
        }
        items = "".join(f"<div><dt>{name}</dt><dd>{fact}</dd></div>" for name, fact in facts.items() if fact)
        yield f'<dl class="facts">{items}</dl>'
        yield "</section>"

    def _summary(self) -> Iterator[str]:
        report = self._report
        yield '<section class="summary" id="summary" aria-labelledby="sum">'
        yield '<h2 id="sum">Summary</h2>'
        yield from self._counts()
        yield "<h3>What to do first</h3>"
        urgent = report.urgent
        if urgent:
            yield '<ol class="urgent">'
            yield from map(_urgent_item, urgent)
            yield "</ol>"
        elif report.conditions["Poor"]:
            yield "<p>No defects are recorded for what is in poor condition; the sections describe it.</p>"
        else:
            yield "<p>No element is in poor condition.</p>"
        yield "<h3>Sections</h3>"
        if not report.sections:
            yield "<p>This survey has no sections.</p></section>"
            return
        yield f'<div class="wide"><table class="overview"><thead><tr>{columns_html("Section", "Condition")}'
        yield "".join(f'<th scope="col" class="n">{name}</th>' for name in ("Elements", "Defects", "Photos"))
        yield "</tr></thead><tbody>"
        for each in report.sections:
            counts = (len(each.elements), each.defect_count, each.photo_count)
            cells = "".join(f'<td class="n">{count}</td>' for count in counts)
            yield (
                f'<tr><th scope="row"><a href="#s{each.number}">{each.number}. '
                f"{cell_html(each.section.name)}</a></th><td>{_badge(each.section.condition)}</td>{cells}</tr>"
            )
        yield "</tbody></table></div></section>"

    def _counts(self) -> Iterator[str]:
        conditions = self._report.conditions
        total = conditions.total()
        if not total:
            yield '<p class="lead">No elements are recorded yet.</p>'
            return
        counts = {name: conditions[name] for name in _CONDITIONS if name != "Excellent" or conditions[name]}
        words = [
            f"{count} {'not applicable or not inspected' if name == 'N/A' else name.lower()}"
            for name, count in counts.items()
            if count
        ]
        sentence = f"Of {_counted(total, 'element')}: {', '.join(words)}."
        yield f'<p class="lead">{sentence}</p>'
        width = " five" if len(counts) == 5 else ""
        shown = "".join(f"<div><b>{count}</b>{_badge(name)}</div>" for name, count in counts.items())
        yield f'<div class="counts{width}" role="img" aria-label="{sentence}">{shown}</div>'
        ends = [0]
        for count in counts.values():
            ends.append(ends[-1] + count)
        scale = 130 / total
        bars = "".join(
            f'<rect class="{_CONDITIONS[name][0]}" {_FILLS[_CONDITIONS[name][0]]} '
            f'x="{start * scale:.2f}" y="0" '
            f'width="{max((end - start) * scale - 0.6, 0.2):.2f}" height="6"/>'
            for name, (start, end) in zip(counts, pairwise(ends), strict=True)
            if end > start
        )
        yield (
            '<svg class="share" viewBox="0 0 130 6" preserveAspectRatio="none" aria-hidden="true">'
            f"{_HATCH}{bars}</svg>"
        )

    def _section(self, section: ReportSection) -> Iterator[str]:
        number = section.number
        yield f'<section class="part" id="s{number}" aria-labelledby="h{number}">'
        yield (
            f'<header><h2 id="h{number}"><span class="no">{number}</span> '
            f"{text_html(section.section.name)}</h2>{_badge(section.section.condition)}</header>"
        )
        yield paragraphs(section.section.notes)
        yield self._photos(section.photos)
        if not section.elements:
            yield '<p class="fine">This section has no elements.</p>'
        for element in section.elements:
            yield from self._element(element)
        yield "</section>"

    def _element(self, element: ReportElement) -> Iterator[str]:
        stored = element.element
        yield '<article class="element">'
        yield (
            f'<header><h3><span class="no">{element.number}</span> {text_html(stored.name)}</h3>'
            f"{_badge(stored.condition)}</header>"
        )
        yield _with_measurements(paragraphs(stored.notes), stored.measurements)
        table = _components(element.components)
        defects = [_defect(each) for each in element.defects]
        if not defects and stored.condition in ("Good", "Excellent"):
            defects = ['<p class="fine">No defects found.</p>']
        photos = self._photos(element.photos)
        is_pair = len(element.photos) == 1 and element.photos[0].is_first and len(defects) == 1
        if is_pair and element.defects:
            yield f'{table}<div class="pair">{defects[0]}{photos}</div>'
        elif is_pair and "<wbr>" not in table:  # a table of long words needs the whole width
            yield f'<div class="pair"><div class="left">{table}{defects[0]}</div>{photos}</div>'
        else:
            yield "\n".join(part for part in (table, *defects, photos) if part)
        yield "</article>"

    def _photos(self, uses: Iterable[PhotoUse]) -> str:
        """Return the photos that are shown here first, and references to the others."""
        figures = [self._figure(use.photo) for use in uses if use.is_first]
        shown = '<div class="photos">' + "".join(figures) + "</div>" if figures else ""
        return shown + _see(use.photo.number for use in uses if not use.is_first)

    def _figure(self, photo: ReportPhoto) -> str:
        links = self._links[photo.image_id]
        caption = text_html(photo.caption)
        if links.source is not None and photo.is_stored and photo.image is not None:
            more = "" if links.source.startswith("data:") else ' loading="lazy"'
            if photo.image.width and photo.image.height:
                more += f' width="{photo.image.width}" height="{photo.image.height}"'
            picture = f'<img src="{escape(links.source)}" alt="{caption}"{more}>'
            if links.target is not None:
                picture = f'<a href="{escape(links.target)}">{picture}</a>'
        else:
            picture = f'<p class="absent">Photo {photo.number} {_why_absent(photo)}</p>'
        return (
            f'<figure id="photo-{photo.number}">{picture}'
            f"<figcaption><b>Photo {photo.number}</b> {caption}</figcaption></figure>"
        )

    def _appendix(self) -> Iterator[str]:
        report = self._report
        yield '<section class="appendix" id="appendix" aria-labelledby="app">'
        yield '<h2 id="app">Appendix</h2>'
        letters = iter("ABCD")
        yield f"<h3>{next(letters)}. What the conditions mean</h3>"
        rows = "".join(
            f"<tr><td>{_badge(name)}</td><td>{meaning}</td></tr>"
            for name, (_, meaning) in _CONDITIONS.items()
            if name != "Excellent" or _is_used(report, name)
        )
        yield table_html("parts", "", rows)
        yield f"<h3>{next(letters)}. Photos</h3>"
        yield self._photo_table()
        if report.orphans:
            yield f"<h3>{next(letters)}. Parts without a place</h3>"
            yield '<p class="how">The section or the element that these belong to does not exist.</p>'
            columns = columns_html("Part", "Kind", "Text", "Condition")
            yield table_html("listing", columns, "".join(map(_orphan, report.orphans)))
            yield self._photos(report.orphan_photos)
        yield f"<h3>{next(letters)}. Record</h3>"
        taken = report.facts.snapshot_taken
        source = (
            "without a phrase library" if taken is None else f"with the phrase library of {day_html(taken)}"
        )
        changed = "" if report.changed is None else f", last changed on {moment_html(report.changed)}"
        yield (
            f'<p class="how">Made from survey {text_html(report.survey_id)}, version {report.version}'
            f"{changed}, {source}. Photos have the numbers that the text uses.</p>"
        )
        yield "</section>"

    def _photo_table(self) -> str:
        if not self._report.photos:
            return "<p>This survey has no photos.</p>"
        rows = "".join(
            f'<tr><th scope="row"><a href="#photo-{each.number}">{each.number}</a></th>'
            f"<td>{cell_html(each.caption)}{'' if each.is_stored else f' ({_why_absent(each)})'}</td>"
            f"<td>{cell_html(each.place)}</td></tr>"
            for each in self._report.photos
        )
        columns = columns_html("Photo", "Caption", "Place")
        return table_html("listing", columns, rows)


def _with_measurements(notes: str, measurements: Mapping[str, str]) -> str:
    """Return notes with the measurements at the end of their last paragraph."""
    if not measurements:
        return notes
    listed = ", ".join(f"{name} {value}" for name, value in sorted(measurements.items()))
    span = f'<span class="meas">{text_html(listed[:1].upper() + listed[1:])}.</span>'
    return f"{notes.removesuffix('</p>')} {span}</p>" if notes else f"<p>{span}</p>"


def _is_used(report: Report, condition: Condition) -> bool:
    for section in report.sections:
        if section.section.condition == condition:
            return True
        for element in section.elements:
            if condition in (element.element.condition, *(each.condition for each in element.components)):
                return True
    return any(part.condition == condition for part in report.orphans)


def _why_absent(photo: ReportPhoto) -> str:
    if photo.image is None:
        return "no longer exists"
    return "is not in this page" if photo.is_stored else "not uploaded yet"


def _urgent_item(defect: ReportDefect) -> str:
    phrase = defect.phrase
    if phrase is None:
        title, text = f"Unknown phrase {defect.phrase_id}", ""
    else:
        title, text = phrase.name, phrase.level2 or phrase.text
    return (
        f'<li><a href="#D{defect.number}">D{defect.number}</a> '
        f"<b>{text_html(title.rstrip('.'))}.</b> {lines_html(text)}</li>"
    )


def _defect(defect: ReportDefect) -> str:
    phrase = defect.phrase
    if phrase is None:
        title = f"Unknown phrase {text_html(defect.phrase_id)}"
        text = "<p>The configuration of this survey does not hold the text of this phrase.</p>"
    else:
        title, text = text_html(phrase.name), paragraphs(phrase.text)
        if phrase.level2:
            text += f'<p class="act"><b>Advice</b> {lines_html(phrase.level2)}</p>'
    of = f' <span class="of">({text_html(defect.component)})</span>' if defect.component else ""
    return (
        f'<section class="defect" id="D{defect.number}" aria-labelledby="D{defect.number}-name">'
        f'<h4 id="D{defect.number}-name"><span class="id">D{defect.number}</span> {title}{of}</h4>'
        f"{text}{_see(defect.photos)}</section>"
    )


def _components(components: Iterable[SurveyComponent]) -> str:
    rows = "".join(map(_component, components))
    if not rows:
        return ""
    columns = columns_html("Component", "Material", "Age", "Condition")
    return table_html("parts", columns, rows)


def _component(component: SurveyComponent) -> str:
    served = component.last_maintenance
    more = [cell_html(component.notes), f"Last maintained: {cell_html(served)}" if served else ""]
    fine = "".join(f'<span class="fine">{text}</span>' for text in more if text)
    return (
        f'<tr><th scope="row">{cell_html(component.name)}{fine}</th>'
        f"<td>{cell_html(component.material)}</td><td>{cell_html(component.age)}</td>"
        f"<td>{_badge(component.condition)}</td></tr>"
    )


def _orphan(part: Part) -> str:
    kind, identity = part_id(part)
    defects = "" if isinstance(part, SurveySection) else ", ".join(part.defects)
    text = cell_html(part.notes) + (
        f'<span class="fine">Phrases: {cell_html(defects)}</span>' if defects else ""
    )
    return (
        f'<tr><th scope="row">{cell_html(part.name)}<span class="fine">{cell_html(identity)}</span></th>'
        f"<td>{kind}</td><td>{text}</td><td>{_badge(part.condition)}</td></tr>"
    )
