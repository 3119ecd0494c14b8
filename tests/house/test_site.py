"""The site: every page is in its navigation, every public name on an API page, every picture is current."""

from __future__ import annotations

import pkgutil
import re
import runpy
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]  # ships no types

import solotable
from solotable.migrations.workflow.states import TRANSITIONS

from .checkout import PACKAGE, ROOT, name

DOCS = ROOT / "docs"
#: Public modules without an API page, and why.
WITHOUT_PAGE = {
    "solotable.cli": "a program: reference/cli.md",
    "solotable.console": "a program: guide/console.md",
    "solotable.errors": "its names are names of solotable",
    "solotable.fork_safe": "for the library's own locks",
    "solotable.ids": "its name is a name of solotable",
    "solotable.mypy": "a plugin: guide/typing.md",
    "solotable.pages": "for the library's own pages",
}


@pytest.fixture(scope="module")
def site() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "site.py"))


@pytest.fixture(scope="module")
def generate() -> dict[str, Any]:
    return runpy.run_path(str(DOCS / "generate.py"))


def navigation() -> list[str]:
    """The pages of mkdocs.yml in their order."""

    def pages(entry: Any) -> list[str]:
        if isinstance(entry, str):
            return [entry]
        return [
            page for child in (entry.values() if isinstance(entry, dict) else entry) for page in pages(child)
        ]

    config = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    return pages(config["nav"])


def test_the_navigation_has_every_page_once(site: dict[str, Any]) -> None:
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md") if page.parent.name != "adr"]
    project = [f"project/{page.lower()}" for page in site["PROJECT"]]
    assert sorted(navigation()) == sorted([*pages, *project, "adr/index.md"]), (
        "add the page to nav of mkdocs.yml"
    )


def test_every_public_name_has_an_api_page(generate: dict[str, Any]) -> None:
    directives = [
        found
        for page in (DOCS / "api").glob("*.md")
        for found in re.findall(r"^::: (\S+)$", page.read_text("utf-8"), re.MULTILINE)
    ]
    described = [module for modules in generate["API_OF_MODULES"].values() for module in modules]
    wanted = [
        f"{module}.{each}"
        for module in ("solotable", *described)
        for each in generate["public_names"](module)
    ]
    assert sorted(directives) == sorted(wanted), "Run: python docs/generate.py"


def test_every_public_module_has_an_api_page(generate: dict[str, Any]) -> None:
    described = {module for modules in generate["API_OF_MODULES"].values() for module in modules}
    public = {
        f"solotable.{each.name}"
        for each in pkgutil.iter_modules(solotable.__path__)
        if not each.name.startswith("_")
    }
    missing = {
        module for module in public if not any(f"{each}.".startswith(f"{module}.") for each in described)
    }
    assert missing == set(WITHOUT_PAGE), "add the module to API_OF_MODULES of docs/generate.py"


def test_every_environment_variable_is_on_the_page_of_settings() -> None:
    page = (DOCS / "reference" / "settings.md").read_text("utf-8")
    used = {
        variable
        for module in PACKAGE.rglob("*.py")
        for variable in re.findall(r'(?:envvar=|environ(?:\.get\(|\[))"(\w+)"', module.read_text("utf-8"))
    }
    assert len(used) >= 10
    assert sorted(variable for variable in used if f"`{variable}`" not in page) == []


def test_every_lint_code_has_a_cause_and_a_fix() -> None:
    lint = (DOCS / "reference" / "lint.md").read_text("utf-8")
    source = "".join(path.read_text("utf-8") for path in (PACKAGE / "_entities" / "lint").glob("*.py"))
    codes = set(re.findall(r'"(ST\d{3})"', source))
    assert len(codes) > 10
    sections = {section[:5]: section for section in lint.split("\n### ")[1:]}
    assert sorted(sections) == sorted(codes)
    cause = re.compile(r"\n\n(Error|Warning|Note)\b")
    assert [code for code, section in sections.items() if not cause.search(section)] == []
    assert [code for code, section in sections.items() if "\n\nFix: " not in section] == []


def test_the_pictures_are_current() -> None:
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    drawn = dict(pictures["files"]())
    assert sorted(drawn) == sorted((DOCS / "pictures").glob("*.svg"))
    assert [name(path) for path, content in drawn.items() if path.read_text("utf-8") != content] == [], (
        "Run: python docs/pictures.py"
    )


def test_the_picture_of_a_migration_has_allowed_transitions_only() -> None:
    pictures = runpy.run_path(str(DOCS / "pictures.py"))
    states: list[Any] = [state for state, _ in pictures["MIGRATION"]]
    steps = [
        *pairwise(states),
        *((here, there) for here, there, _ in pictures["MIGRATION_BACK"]),
    ]
    assert [step for step in steps if step[1] not in TRANSITIONS[step[0]]] == []


def test_pages_are_adapted_to_the_site(site: dict[str, Any], tmp_path: Path) -> None:
    adapt = site["adapt"]
    site["adapt"].__globals__["STAGED"] = tmp_path
    page = DOCS / "guide" / "page.md"
    assert adapt("[a](../../examples/surveys.py)", page) == "[a](../source/examples-surveys-py.md)"
    assert "examples/surveys.py" in (tmp_path / "source" / "examples-surveys-py.md").read_text("utf-8")
    assert adapt("[a](../adr/), [b](urls.md#async)", page) == "[a](../adr/index.md), [b](urls.md#async)"
    assert adapt("[a](../../CHANGELOG.md)", page) == "[a](../project/changelog.md)"
    assert adapt("```\n[a](../adr/)\n```\n", page) == "```\n[a](../adr/)\n```\n"
    with pytest.raises(site["SiteError"], match="not a file"):
        adapt("[a](../../examples/missing.py)", page)


@pytest.mark.parametrize(
    ("html", "foreign"),
    [
        ('<script src="https://cdn.example/x.js"></script>', ["https://cdn.example/x.js"]),
        ('<link rel="stylesheet" href="//fonts.example/css">', ["//fonts.example/css"]),
        ('<link rel="canonical" href="https://docs.example/">', []),
        ('<a href="https://aws.amazon.com">AWS</a><script src="assets/x.js"></script>', []),
    ],
)
def test_requests_to_other_hosts_are_found(
    site: dict[str, Any], tmp_path: Path, html: str, foreign: list[str]
) -> None:
    check = site["check_hosts"]
    check.__globals__["SITE"] = tmp_path
    (tmp_path / "page.html").write_text(html, encoding="utf-8")
    if not foreign:
        check()
        return
    with pytest.raises(site["SiteError"], match=re.escape(foreign[0])):
        check()


def test_a_mermaid_block_is_rejected(site: dict[str, Any], tmp_path: Path) -> None:
    check = site["check_hosts"]
    check.__globals__["SITE"] = tmp_path
    (tmp_path / "page.html").write_text('<pre class="mermaid">', encoding="utf-8")
    with pytest.raises(site["SiteError"], match="mermaid block"):
        check()


def test_llms_txt_links_pages(site: dict[str, Any], tmp_path: Path) -> None:
    site["stage"].__globals__["STAGED"] = tmp_path
    site["stage"]()
    index = (tmp_path / "llms.txt").read_text("utf-8")
    assert re.match(r"# solotable\n\n> \S.+\n\n## ", index)
    links = re.findall(r"\]\((?!https?:)([^)#]+)", index)
    assert len(links) > 60
    assert [link for link in links if not (tmp_path / link).exists()] == []
    assert (tmp_path / "llms-full.txt").stat().st_size > 500_000
