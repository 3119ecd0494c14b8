"""`solotable surveys`: reports and photos of a survey, and the export of a tenant, in a file."""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from pathlib import Path

import pytest

from solotable import connect
from solotable.systems.surveys.entities.access import Tenant
from solotable.systems.surveys.entities.files import Image
from solotable.systems.surveys.entities.surveys import SurveyElement, SurveyMeta, SurveySection
from solotable.systems.surveys.report.pdf import find_browser
from solotable.systems.surveys.table import surveyor

from .conftest import Run

PHOTO = b"\xff\xd8\xffphoto"


@pytest.fixture
def surveys(run: Run, tmp_path: Path) -> Run:
    """Run `solotable surveys` over a file with a survey and a folder with its photo."""
    with connect("sqlite:///survey.db", surveyor) as database:
        database.create(Tenant(id="acme", name="Ash & Co"))
        store = database.tenant("acme")
        digest = hashlib.sha256(PHOTO).hexdigest()
        image = store.create(
            Image(image_id="p1", sha256=digest, name="ridge.jpg", mime="image/jpeg", size=8, status="stored")
        )
        store.create(SurveyMeta(survey_id="s-1", title="12 Mill Lane", owner="ann"))
        store.create(SurveySection(survey_id="s-1", section_id="roof", name="Roof", order="V"))
        store.create(
            SurveyElement(survey_id="s-1", section_id="roof", name="Covering", order="V", photos=["p1"])
        )
    path = tmp_path / "files" / image.storage_key
    path.parent.mkdir(parents=True)
    path.write_bytes(PHOTO)
    return lambda *arguments: run("surveys", *arguments)


def test_a_report_is_written_as_html(surveys: Run, tmp_path: Path) -> None:
    ran = surveys("report", "s-1", "-o", "report.html", "--storage", "files")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.startswith("Wrote report.html (")
    page = (tmp_path / "report.html").read_text()
    assert "12 Mill Lane" in page
    assert "Ash &amp; Co" in page
    assert "data:image/jpeg;base64," in page


def test_a_report_without_a_storage_says_that_photos_are_not_shown(surveys: Run, tmp_path: Path) -> None:
    ran = surveys("report", "s-1", "-o", "report.html")
    assert (ran.code, ran.err) == (0, "Photos are not shown; --storage says where they are.\n")
    assert "Photo 1 is not in this page" in (tmp_path / "report.html").read_text()


@pytest.mark.skipif(find_browser() is None, reason="no Chromium on this machine: the PDF is not tested")
def test_a_report_is_printed_as_pdf(surveys: Run, tmp_path: Path) -> None:
    ran = surveys("report", "s-1", "-o", "report.pdf", "--storage", "files")
    assert ran.code == 0, ran.err
    assert (tmp_path / "report.pdf").read_bytes().startswith(b"%PDF-")


def test_a_machine_that_cannot_print_says_what_to_install(
    surveys: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "weasyprint", None)
    ran = surveys("report", "s-1", "-o", "report.pdf")
    assert ran.code == 1
    assert "neither Chromium nor WeasyPrint" in ran.err
    assert not (tmp_path / "report.pdf").exists()


def test_photos_are_written_as_a_zip(surveys: Run, tmp_path: Path) -> None:
    ran = surveys("photos", "s-1", "-o", "photos.zip", "--storage", "files")
    assert ran.code == 0, ran.err
    assert surveys("photos", "s-1", "-o", "photos.zip", "--storage", "files", "--force", "--json").json == {
        "file": "photos.zip",
        "bytes": (tmp_path / "photos.zip").stat().st_size,
    }
    with zipfile.ZipFile(tmp_path / "photos.zip") as archive:
        assert archive.read("01 Roof/01 Covering/001 ridge.jpg") == PHOTO


def test_a_tenant_is_exported(surveys: Run, tmp_path: Path) -> None:
    ran = surveys("export", "-o", "acme.ndjson", "--json")
    assert ran.code == 0, ran.err
    assert ran.json == {"file": "acme.ndjson", "bytes": (tmp_path / "acme.ndjson").stat().st_size}
    first, *lines, last = [json.loads(line) for line in (tmp_path / "acme.ndjson").read_text().splitlines()]
    assert (first["tenant"], last["items"]) == ("acme", len(lines))
    assert {each["type"] for each in lines} == {
        *("Tenant", "Image", "SurveyMeta", "SurveySection", "SurveyElement")
    }


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("report", "none", "-o", "r.html"), 3, "Survey 'none' not found."),
        (("photos", "none", "-o", "p.zip", "--storage", "files"), 3, "Survey 'none' not found."),
        (("report", "s-1", "-o", "r.docx"), 2, "write a file that ends with .html or .pdf"),
        (("report", "s-1", "-o", "survey.db"), 2, "write a file that ends with .html or .pdf"),
        (
            ("photos", "s-1", "-o", "survey.db", "--storage", "files"),
            2,
            "already exists; --force replaces it",
        ),
        (("photos", "s-1", "-o", "p.zip"), 2, "No storage given; pass --storage FOLDER"),
        (("photos", "s-1", "-o", "p.zip", "--storage", "nowhere"), 3, "--storage nowhere: no such folder."),
        (("report", "s-1", "-o", "r.html", "-d", "none.db"), 3, "No such file: none.db. Create it with"),
        (("report", "s-1", "-o", "r.html", "-t", "zeta"), 3, "Survey 's-1' not found."),
        (("export", "-o", "x.ndjson", "-t", "zeta"), 3, "Tenant not found"),
        (("export", "-o", "survey.db"), 2, "already exists; --force replaces it"),
        (("report", "s-1", "-o", "no/r.html"), 2, "Cannot write no/r.html"),
    ],
)
def test_mistakes_are_named_and_leave_no_file(
    surveys: Run, tmp_path: Path, arguments: tuple[str, ...], code: int, text: str
) -> None:
    before = sorted(each.name for each in tmp_path.iterdir())
    ran = surveys(*arguments)
    assert (ran.code, ran.out) == (code, "")
    assert text in " ".join(ran.err.split())
    assert sorted(each.name for each in tmp_path.iterdir()) == before
