"""The report of a survey: its numbers and texts, its page, and what hostile texts cannot do to it."""

from __future__ import annotations

import hashlib
import re
import sys
from collections import Counter
from datetime import date
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from solotable.errors import NotFound
from solotable.systems.storage import FolderStorage
from solotable.systems.surveys.entities.access import Member
from solotable.systems.surveys.entities.configs import Configuration, PhraseTemplate
from solotable.systems.surveys.entities.files import Image
from solotable.systems.surveys.entities.surveys import (
    Part,
    SurveyComponent,
    SurveyElement,
    SurveyMeta,
    SurveySection,
)
from solotable.systems.surveys.formats.order_keys import spread
from solotable.systems.surveys.report.html import PhotoLinks, report_page
from solotable.systems.surveys.report.model import Report, ReportFacts, build_report
from solotable.systems.surveys.report.page_styles import css_string, running_styles
from solotable.systems.surveys.report.pdf import NoPrinter, find_browser, print_pdf
from solotable.systems.surveys.report.service import read_report, report_html
from solotable.systems.surveys.services.drafts import PhraseDraft
from solotable.systems.surveys.services.survey.tree import build_tree

from .office import Office

#: Ends a text, an attribute, a comment, a style and a CSS string, and runs a script.
HOSTILE = """"'></style></title><script>alert(1)</script><img src=x onerror=alert(1)>-->&\\a }*/"""


class Tags(HTMLParser):
    """The elements of a page, with their attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "br", "wbr", "rect"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "rect":
            return
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self.open[-1] if self.open else "", data))

    def text(self) -> str:
        return "".join(text for tag, text in self.texts if tag != "style")

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def image(image_id: str, **fields: Any) -> Image:
    values: dict[str, Any] = {"name": f"{image_id}.jpg", "mime": "image/jpeg", "size": 10, "status": "stored"}
    values |= {"tenant_id": "acme", "image_id": image_id, "sha256": "0" * 64}
    return Image(**{**values, **fields})


def section(section_id: str = "roof", order: str = "1", **fields: Any) -> SurveySection:
    name = fields.pop("name", section_id.title())
    return SurveySection(survey_id="s-1", section_id=section_id, name=name, order=order, **fields)


def element(
    element_id: str = "cover", section_id: str = "roof", order: str = "1", **fields: Any
) -> SurveyElement:
    named = {"name": element_id.title(), **fields}
    return SurveyElement(survey_id="s-1", element_id=element_id, section_id=section_id, order=order, **named)


def component(
    component_id: str, element_id: str = "cover", order: str = "1", **fields: Any
) -> SurveyComponent:
    named = {"name": component_id.title(), **fields}
    return SurveyComponent(
        survey_id="s-1", component_id=component_id, element_id=element_id, order=order, **named
    )


def phrase(phrase_id: str, **fields: Any) -> PhraseTemplate:
    values = {"name": f"Name of {phrase_id}", "text": f"Text of {phrase_id}.", "level2": ""}
    return PhraseTemplate(**{"phrase_id": phrase_id, "kind": "Defect", **values, **fields})


def report_of(
    *parts: Part,
    phrases: list[PhraseTemplate] | None = None,
    images: list[Image] | None = None,
    facts: ReportFacts | None = None,
    **fields: Any,
) -> Report:
    meta = SurveyMeta(**{"survey_id": "s-1", "title": "12 Mill Lane", "owner": "ann", **fields})
    configuration = None if phrases is None else Configuration(phrases=phrases)
    return build_report(build_tree(meta, parts), configuration, images or [], facts)


def links(photo: Any) -> PhotoLinks:
    return PhotoLinks(f"/photos/{photo.image_id}/thumbnail", f"/photos/{photo.image_id}")


def page_of(*parts: Part, **fields: Any) -> str:
    return report_page(report_of(*parts, **fields), links)


def test_numbers_are_counted_through_the_report_in_order() -> None:
    report = report_of(
        section("walls", "2"),
        section("roof", "1"),
        element("front", "walls", defects=["crack"], photos=["p4"]),
        element("gutter", "roof", "2", defects=["crack", "rust"], photos=["p3"]),
        element("cover", "roof", "1"),
        component("slates", defects=["slip"], photos=["p1", "p2"]),
        phrases=[phrase("crack"), phrase("rust"), phrase("slip")],
    )
    assert [each.section.name for each in report.sections] == ["Roof", "Walls"]
    elements = [each for found in report.sections for each in found.elements]
    assert [(each.number, each.element.name) for each in elements] == [
        ("1.1", "Cover"),
        ("1.2", "Gutter"),
        ("2.1", "Front"),
    ]
    defects = [(each.number, each.phrase_id, each.photos) for found in elements for each in found.defects]
    assert defects == [(1, "slip", (1, 2)), (2, "crack", (3,)), (3, "rust", (3,)), (4, "crack", (4,))]
    assert [(each.number, each.image_id, each.place) for each in report.photos] == [
        (1, "p1", "1.1 Cover"),
        (2, "p2", "1.1 Cover"),
        (3, "p3", "1.2 Gutter"),
        (4, "p4", "2.1 Front"),
    ]


def test_a_photo_of_two_parts_has_one_number_and_is_shown_once() -> None:
    parts: list[Part] = [section(), element(photos=["p1"]), element("gutter", order="2", photos=["p1"])]
    tags = Tags(page_of(*parts, images=[image("p1")]))
    assert [each["id"] for each in tags.all("figure")] == ["photo-1"]
    assert "See photo 1." in tags.text()
    assert report_of(*parts).sections[0].photo_count == 1


def test_the_first_photo_of_a_section_itself_is_on_the_cover() -> None:
    report = report_of(section(photos=["front"]), element(photos=["detail"]), images=[image("front")])
    assert report.cover is not None
    assert (report.cover.number, report.cover.image_id) == (1, "front")
    assert report_of(section(), element(photos=["detail"])).cover is None


def test_phrases_have_the_text_of_the_snapshot_and_an_unknown_one_its_id() -> None:
    parts: list[Part] = [section(), element(condition="Poor", defects=["crack", "gone"])]
    known = phrase("crack", name="Stepped crack", text="It runs.\nFar.", level2="Measure it.")
    page = page_of(*parts, phrases=[known])
    assert "Stepped crack" in page
    assert "It runs.<br>Far." in page
    assert '<p class="act"><b>Advice</b> Measure it.</p>' in page
    assert "Unknown phrase gone" in page
    # Without a snapshot every phrase is unknown; nothing reads the library.
    assert "Unknown phrase crack" in page_of(*parts)


def test_a_deleted_phrase_keeps_its_text_in_the_report(office: Office) -> None:
    phrases = office.phrases()
    made = office.run(phrases.create(PhraseDraft(kind="Defect", name="Crack", text="It is cracked.")))
    survey = office.survey()
    office.element(office.section(survey), condition="Poor", defects=[made.phrase_id])
    office.run(office.configs().take(survey.survey_id))
    office.run(phrases.delete("Defect", made.phrase_id))
    page = office.run(report_html(office.store(), None, survey.survey_id))
    assert "It is cracked." in page
    assert "Unknown phrase" not in page


def test_what_to_do_first_are_the_defects_of_what_is_poor() -> None:
    report = report_of(
        section(),
        element(condition="Poor", defects=["a"]),
        element("gutter", order="2", condition="Fair", defects=["b"]),
        component("front", "gutter", condition="Poor", defects=["c"]),
        component("rear", "gutter", order="2", condition="Fair", defects=["d"]),
    )
    assert [each.phrase_id for each in report.urgent] == ["a", "c"]


def test_conditions_are_counted_and_said_in_words() -> None:
    conditions = ["Poor", "Poor", "Fair", "Good", "N/A"]
    parts = [
        element(f"e{place}", order=str(place + 1), condition=each) for place, each in enumerate(conditions)
    ]
    page = page_of(section(), *parts)
    assert "Of 5 elements: 2 poor, 1 fair, 1 good, 1 not applicable or not inspected." in page
    # Every badge says its condition as text.
    assert Counter(re.findall(r'class="cond (\w+)">([^<]+)<', page)).keys() == {
        ("poor", "Poor"),
        ("fair", "Fair"),
        ("good", "Good"),
        ("none", "N/A"),
    }
    assert ">Excellent<" in page_of(section(condition="Excellent"), element(condition="Excellent"))


def test_orphans_are_reported_with_their_photos() -> None:
    lost = element("shed", "nowhere", photos=["p1"], notes="Felt.\nOne layer.", condition="Fair")
    bolt = component("bolt", "shed")
    page = page_of(section(), lost, bolt, images=[image("p1", caption="The shed")])
    appendix = page.partition('id="appendix"')[2]
    assert "Parts without a place" in appendix
    assert "Shed" in appendix
    assert "Bolt" in appendix
    assert "Felt.<br>One layer." in appendix
    assert 'id="photo-1"' in appendix
    assert "Parts without a place" not in page_of(section())


def test_photos_that_are_absent_have_a_frame_and_a_reason() -> None:
    parts: list[Part] = [section(), element(photos=["there", "pending", "gone"])]
    images = [image("there", caption="Ridge"), image("pending", status="pending")]
    tags = Tags(page_of(*parts, images=images))
    assert [each["src"] for each in tags.all("img")] == ["/photos/there/thumbnail"]
    assert tags.all("img")[0]["alt"] == "Ridge"
    assert "Photo 2 not uploaded yet" in tags.text()
    assert "Photo 3 no longer exists" in tags.text()
    assert [each["id"] for each in tags.all("figure")] == ["photo-1", "photo-2", "photo-3"]
    assert ("a", {"href": "/photos/there"}) in tags.tags


def hostile_page() -> str:
    parts: list[Part] = [
        section(name=HOSTILE[:100], notes=HOSTILE, photos=["front"]),
        element(
            name=HOSTILE[:100],
            notes=HOSTILE,
            measurements={HOSTILE[:50]: HOSTILE},
            condition="Poor",
            defects=["bad", "gone"],
            photos=["p1"],
        ),
        component(
            "tile",
            name=HOSTILE[:100],
            material=HOSTILE,
            age=HOSTILE,
            last_maintenance=HOSTILE,
            notes=HOSTILE,
            defects=["bad"],
        ),
        element("lost", "nowhere", name=HOSTILE[:100], notes=HOSTILE),
    ]
    return page_of(
        *parts,
        phrases=[phrase("bad", name=HOSTILE, text=HOSTILE, level2=HOSTILE)],
        images=[image("p1", caption=HOSTILE, name=HOSTILE[:100]), image("front", caption=HOSTILE)],
        facts=ReportFacts(firm=HOSTILE, surveyor=HOSTILE),
        title=HOSTILE,
        address=HOSTILE,
        client_name=HOSTILE[:100],
    )


def test_hostile_texts_stay_texts() -> None:
    tags = Tags(hostile_page())
    assert not tags.open
    assert {name for name, _ in tags.tags} <= {
        *("html", "head", "meta", "title", "style", "body", "a", "header", "p", "b", "span", "div", "nav"),
        *("ol", "li", "main", "section", "h1", "h2", "h3", "h4", "address", "figure", "img", "figcaption"),
        *("dl", "dt", "dd", "time", "svg", "defs", "pattern", "rect", "table", "thead", "tbody", "tr"),
        *("th", "td", "article", "br", "wbr"),
    }
    assert not any(name.startswith("on") or name == "style" for _, found in tags.tags for name in found)
    assert tags.text().count("<script>alert(1)</script>") > 20
    assert len(tags.all("style")) == 2
    styles = [text for tag, text in tags.texts if tag == "style"]
    assert not any("<" in text or "alert(" in text for text in styles)


def test_the_page_requests_nothing_and_allows_no_script() -> None:
    page = hostile_page()
    policies = [each["content"] for each in Tags(page).all("meta") if "http-equiv" in each]
    assert len(policies) == 1
    assert policies[0] is not None
    assert policies[0].startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policies[0]
    assert "script-src" not in policies[0]
    assert not re.search(r"url\((?!#hatch)|@import|https?://", page)


@pytest.mark.parametrize(
    "url", ["javascript:alert(1)", "data:text/html,x", "data:image/svg+xml,x", "vbscript:x", "file:///x"]
)
def test_a_url_that_could_run_a_script_is_left_out(url: str) -> None:
    report = report_of(section(), element(photos=["p1"]), images=[image("p1")])
    page = report_page(report, lambda photo: PhotoLinks(url, url), pdf_url=url)
    assert url not in page
    assert "is not in this page" in page


def test_headings_are_in_order_and_ids_are_unique() -> None:
    tags = Tags(hostile_page())
    levels = [int(name[1]) for name, _ in tags.tags if re.fullmatch(r"h[1-6]", name)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    ids = Counter(found["id"] for _, found in tags.tags if "id" in found)
    assert max(ids.values()) == 1
    targets = {(found["href"] or "")[1:] for found in tags.all("a") if (found["href"] or "").startswith("#")}
    assert targets <= ids.keys()
    assert all(each.get("alt") for each in tags.all("img"))


def test_running_titles_are_css_strings_that_nothing_ends() -> None:
    report = report_of(title='5" pipe\\', client_name='A "B"; } * { color: red')
    styles = running_styles(report)
    assert '"5\\22  pipe\\5c "' in styles
    assert "color: red" not in styles
    assert css_string("x" * 200).endswith('…"')
    assert "Draft" in styles
    assert "Draft" not in running_styles(report_of(status="completed"))


def test_a_page_looks_right_with_nothing_in_it() -> None:
    page = page_of()
    assert "This survey has no sections." in page
    assert "No elements are recorded yet." in page
    assert "This survey has no photos." in page
    assert "This section has no elements." in page_of(section())
    assert "No defects found." in page_of(section(), element(condition="Good"))


def test_a_long_word_of_a_table_may_break() -> None:
    page = page_of(section(), element(), component("tile", material="&" * 25, notes="A\nB"))
    assert f"<td>{'&amp;' * 24}<wbr>&amp;</td>" in page
    assert '<span class="fine">A<br>B</span>' in page


def test_a_title_that_begins_the_address_is_said_once() -> None:
    page = page_of(address="12 Mill Lane\nFenwick", client_name="Ms R.", survey_date=date(2026, 10, 29))
    assert '<h1 id="title">12 Mill Lane<br>Fenwick</h1>' in page
    assert "<address" not in page
    assert '<time datetime="2026-10-29">29 October 2026</time>' in page
    assert '<address class="place">Elsewhere</address>' in page_of(address="Elsewhere")


def test_a_survey_of_400_components_is_one_page_of_a_sane_size() -> None:
    parts: list[Part] = [section(f"s{number}", order) for number, order in enumerate(spread(30))]
    parts += [
        element(f"e{number}", f"s{number % 30}", notes="Seen from below. " * 20) for number in range(150)
    ]
    parts += [
        component(f"c{number}", f"e{number % 150}", material="Clay", defects=["crack"])
        for number in range(400)
    ]
    page = page_of(*parts, phrases=[phrase("crack")])
    assert page.count('<article class="element">') == 150
    assert page.count('<section class="defect"') == 400
    assert len(page) < 1_000_000


def test_the_report_of_a_stored_survey_holds_its_photos(office: Office, tmp_path: Path) -> None:
    storage = FolderStorage(tmp_path)
    store = office.store()
    stored = office.run(store.create(image("p1", tenant_id="acme", caption="Ridge")))
    office.run(storage.put(stored.storage_key, b"\xff\xd8\xffbytes", mime="image/jpeg"))
    lost = office.run(store.create(image("p2", tenant_id="acme", sha256="1" * 64)))
    office.run(store.create(Member(user_id="ann", name="Ann Ash")))
    survey = office.survey(address="Fenwick")
    office.element(office.section(survey), photos=["p1", lost.image_id])
    page = office.run(report_html(store, storage, survey.survey_id, firm="Ash & Co"))
    tags = Tags(page)
    assert [each["src"] for each in tags.all("img")] == ["data:image/jpeg;base64,/9j/Ynl0ZXM="]
    assert "Photo 2 is not in this page" in page
    assert "Ann Ash" in page
    assert "Ash &amp; Co" in page
    assert re.search(r"img-src 'self' data:; ", tags.all("meta")[1]["content"] or "")
    linked = office.run(
        report_html(
            store, None, survey.survey_id, photo_url=lambda each, size: f"/images/{each.image_id}/{size}"
        )
    )
    assert [each["src"] for each in Tags(linked).all("img")] == [
        "/images/p1/thumbnail",
        "/images/p2/thumbnail",
    ]
    assert 'href="/images/p1/full"' in linked


def test_a_report_has_more_photos_than_one_batch_reads(office: Office) -> None:
    survey = office.survey()
    found = office.section(survey)
    store = office.beside()
    for number, order in enumerate(spread(3)):
        names = [f"p{number}-{each}" for each in range(50)]
        for name in names:
            store.put(image(name, sha256=hashlib.sha256(name.encode()).hexdigest()))
        store.create(
            element(f"e{number}", found.section_id, order, photos=names).model_copy(
                update={"survey_id": survey.survey_id}
            )
        )
    office.sent()
    report = office.run(read_report(office.store(), survey.survey_id))
    assert [photo.number for photo in report.photos if photo.is_stored] == list(range(1, 151))
    assert office.sent().count("BatchGetItem") == 2


def test_the_report_of_another_tenants_survey_is_not_found(office: Office) -> None:
    survey = office.survey()
    with pytest.raises(NotFound):
        office.run(read_report(office.store("zeta"), survey.survey_id))


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine: the PDF is not tested")
def test_a_page_is_printed_as_pdf() -> None:
    data = print_pdf(hostile_page())
    assert data.startswith(b"%PDF-")
    assert len(data) > 10_000


def test_a_machine_without_a_printer_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    with pytest.raises(NoPrinter, match=r"neither Chromium nor WeasyPrint .* apt install chromium"):
        print_pdf("<p>")


def test_a_browser_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    browser = tmp_path / "chromium"
    browser.write_text("#!/bin/sh\necho no display >&2\nexit 3\n")
    browser.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(NoPrinter, match="did not print the report: no display"):
        print_pdf("<p>")
