"""Build the site of the documentation: `python docs/site.py`, or `make docs`.

The pages in docs/ are also read in the repository, so links may lead to files outside of docs/, and pictures
are separate files. This program copies the pages to build/docs and adapts them: such a file becomes a page,
and a picture becomes part of its page, so that it follows the colours of the page. zensical then builds
build/site. The build fails on a broken link, and on a page that would load something from another host.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
STAGED = ROOT / "build" / "docs"
SITE = ROOT / "build" / "site"
#: Pages that are not in docs/.
PROJECT = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
LINK = re.compile(r"(?<=\]\()(?!https?://|mailto:|#)([^)#\s]+)(#[^)\s]*)?(?=\))")
PICTURE = re.compile(r"^!\[([^\]]+)\]\(([^)\s]+\.svg)\)$", re.MULTILINE)
FENCE = re.compile(r"^(```.*?^```)$", re.MULTILINE | re.DOTALL)
TITLE = re.compile(r"^# (.+)$", re.MULTILINE)
#: What browsers load without a click, and the attribute with its address.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
#: Links that name a relation to a page, and load nothing.
NOT_LOADED = {"canonical", "next", "prev", "alternate"}
LANGUAGES = {".py": "python", ".yaml": "yaml", ".json": "json", ".toml": "toml"}


class SiteError(Exception):
    """The site cannot be published as it is."""


def stage() -> None:
    """Copy the pages to build/docs, with links and pictures that work on the site."""
    shutil.rmtree(STAGED, ignore_errors=True)
    for source in sorted(DOCS.rglob("*")):
        if source.suffix in (".md", ".css"):
            target = STAGED / source.relative_to(DOCS)
            target.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            target.write_text(adapt(text, source) if source.suffix == ".md" else text, encoding="utf-8")
    for name in PROJECT:
        target = STAGED / "project" / name.lower()
        target.parent.mkdir(exist_ok=True)
        target.write_text(adapt((ROOT / name).read_text(encoding="utf-8"), ROOT / name), encoding="utf-8")
    (STAGED / "adr" / "index.md").write_text(decisions(), encoding="utf-8")
    write_llms()


def adapt(text: str, source: Path) -> str:
    """Return a page for the site; code is not changed."""
    parts = FENCE.split(text)
    # The text between code is at even positions.
    for position in range(0, len(parts), 2):
        parts[position] = PICTURE.sub(lambda found: inline(found, source), parts[position])
        parts[position] = LINK.sub(lambda found: relink(found, source), parts[position])
    return "".join(parts)


def relink(found: re.Match[str], source: Path) -> str:
    """Return the address on the site of a file that a page links to."""
    path, anchor = found[1], found[2] or ""
    wanted = (source.parent / path).resolve()
    if wanted.is_dir():
        wanted = wanted / "index.md"
    if wanted.is_relative_to(DOCS):
        page = STAGED / wanted.relative_to(DOCS)
    elif wanted.name in PROJECT:
        page = STAGED / "project" / wanted.name.lower()
    elif wanted.name == "README.md":
        page = STAGED / "index.md"
    else:
        page = stage_file(wanted, named_by=source)
    here = staged_path(source).parent
    return Path(os.path.relpath(page, here)).as_posix() + anchor


def staged_path(source: Path) -> Path:
    """Return where a page is staged."""
    if source.is_relative_to(DOCS):
        return STAGED / source.relative_to(DOCS)
    return STAGED / "project" / source.name.lower()


def stage_file(path: Path, *, named_by: Path) -> Path:
    """Make a page of a file of the repository, and return it."""
    if not path.is_file():
        raise SiteError(f"{named_by.relative_to(ROOT)} links to {path}, which is not a file.")
    name = path.relative_to(ROOT).as_posix()
    page = STAGED / "source" / f"{name.replace('/', '-').replace('.', '-')}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    language = LANGUAGES.get(path.suffix, "text")
    text = path.read_text(encoding="utf-8")
    page.write_text(f"# {name}\n\n````{language}\n{text}````\n", encoding="utf-8")
    return page


def inline(found: re.Match[str], source: Path) -> str:
    """Return a picture as part of the page, so that it has the colours of the page."""
    picture = (source.parent / found[2]).read_text(encoding="utf-8")
    # A blank line would end the HTML block.
    lines = [line for line in picture.splitlines() if line.strip() and not line.startswith("<?xml")]
    return '<figure class="diagram" markdown="0">\n' + "\n".join(lines) + "\n</figure>"


def decisions() -> str:
    """Return the page that lists the decision records."""
    lines = [
        "# Decisions",
        "",
        "The architecture decision records: context, decision, consequences, alternatives.",
        "",
    ]
    records = sorted((DOCS / "adr").glob("[0-9]*.md"))
    lines += [f"- [{title_of(record)}]({record.name})" for record in records]
    return "\n".join(lines) + "\n"


def title_of(page: Path) -> str:
    found = TITLE.search(page.read_text(encoding="utf-8"))
    if found is None:
        raise SiteError(f"{page} has no title; start it with `# Title`.")
    return found[1]


def write_llms() -> None:
    """Write llms.txt, an index for language models, and llms-full.txt, all pages in one file.

    The pages are also published as Markdown, beside their HTML.
    """
    index = (STAGED / "index.md").read_text(encoding="utf-8")
    head, _, rest = index.partition("\n## ")
    title, _, summary = head.partition("\n")
    intro = " ".join(summary.split("\n\n")[0].split())
    (STAGED / "llms.txt").write_text(f"{title}\n\n> {intro}\n\n## {rest}", encoding="utf-8")
    pages = [page for page in sorted(STAGED.rglob("*.md")) if page.parent.name not in ("source", "adr")]
    texts = [
        f"<!-- {page.relative_to(STAGED).as_posix()} -->\n{page.read_text(encoding='utf-8')}"
        for page in pages
    ]
    (STAGED / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")


class _Loads(HTMLParser):
    """Collects the addresses that a page loads from another host."""

    def __init__(self) -> None:
        super().__init__()
        self.foreign: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        address = given.get(LOADED.get(tag, "")) or ""
        if address.startswith(("http:", "https:", "//")) and given.get("rel") not in NOT_LOADED:
            self.foreign.append(address)
        # The theme fetches the program that draws these from another host.
        if "mermaid" in (given.get("class") or "").split():
            self.foreign.append("a mermaid block; use a picture from docs/pictures instead")


def check_hosts() -> None:
    """Raise SiteError if a page loads something from another host."""
    for page in sorted(SITE.rglob("*.html")):
        parser = _Loads()
        parser.feed(page.read_text(encoding="utf-8"))
        if parser.foreign:
            raise SiteError(f"{page.relative_to(SITE)} loads from another host: {', '.join(parser.foreign)}")


def publish_markdown() -> None:
    """Copy the Markdown of each page beside its HTML, as llms.txt links it."""
    for page in STAGED.rglob("*.md"):
        target = SITE / page.relative_to(STAGED)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(page, target)


def build() -> None:
    """Build the site; raise SiteError if something is wrong with it."""
    stage()
    shutil.rmtree(SITE, ignore_errors=True)
    zensical = Path(sys.executable).with_name("zensical")
    if not zensical.exists():
        raise SiteError("zensical is not installed; run: pip install '.[docs]'")
    done = subprocess.run(  # noqa: S603 - the installed zensical
        [zensical, "build", "--clean", "--strict", "--config-file", ROOT / "mkdocs.yml"],
        cwd=ROOT,
        check=False,
    )
    if done.returncode:
        raise SiteError("zensical failed; the messages above name the pages.")
    check_hosts()
    publish_markdown()


if __name__ == "__main__":
    try:
        build()
    except SiteError as error:
        sys.exit(f"docs: {error}")
    pages = len(list(SITE.rglob("*.html")))
    sys.stdout.write(
        f"{pages} pages in build/site; read them: python -m http.server --directory build/site\n"
    )
