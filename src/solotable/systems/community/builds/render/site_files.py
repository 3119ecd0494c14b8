"""`render_site`: a site and its posts as files, one after the other.

The same input gives the same bytes: no file has the time of the build. A post is in memory while its page is
rendered, so thousands of posts need little; lists and the sitemap keep a few words of each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import jinja2

from solotable.systems.community.builds.templates.manifest import template_files

from .accent import accent_css, readable
from .content import ListedPost, PostContent, PostPage, SiteContent, cleaned, custom_rows

#: How many posts the feed, the front page of a newsletter and that of a project have.
FEED_POSTS = 20
_EARLIER_ISSUES = 10
_NEWS = 5
_ARCHIVE_POSTS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A picture that ships with the templates."""

    file: str
    width: int
    height: int
    alt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """The words and the class of a layout."""

    body: str
    written: str
    archive: str = ""


_LOOKS: Final = {
    "blog": _Look(body="blog", written="Written by"),
    "newsletter": _Look(body="letter", written="Written by", archive="All issues"),
    "project": _Look(body="project", written="Kept by", archive="All news"),
}
PICTURES: Final = {
    "canal": Picture(
        file="canal.svg",
        width=1600,
        height=560,
        alt="Evening on the canal: a row of narrow houses with lit windows, two boats.",
    ),
    "garden": Picture(
        file="garden.svg",
        width=1600,
        height=800,
        alt="Rows of raised beds full of greens, a shed and two trees.",
    ),
    "studio": Picture(
        file="studio.svg", width=1200, height=900, alt="A studio with a workbench below a large window."
    ),
}


@dataclass(frozen=True, slots=True)
class RenderedFile:
    """A file of a built site."""

    path: str
    data: bytes


def render_site(site: SiteContent, posts: Iterable[PostContent], count: int) -> Iterator[RenderedFile]:
    """Yield the files of a site; `posts` has `count` posts, the newest first.

    A post that cannot be rendered raises ContentRejected.
    """
    clean_site = replace(site, title=cleaned(site.title) or "Untitled", config=cleaned(site.config))
    yield from _SiteRenderer(clean_site, count).files(posts)


class _SiteRenderer:
    """Renders one site; lists grow while posts pass."""

    def __init__(self, site: SiteContent, count: int) -> None:
        self._site = site
        self._count = count
        self._look = _LOOKS[site.layout]
        self._picture = PICTURES.get(site.config["picture"])
        self._sitemap: list[tuple[str, str]] = []
        self._feed: list[PostPage] = []
        self._listed: list[ListedPost] = []
        self._pages = 0

    def files(self, posts: Iterable[PostContent]) -> Iterator[RenderedFile]:
        yield from self._shared_files()
        newest: PostPage | None = None
        for newer, post, older in _neighbours(posts, self._count):
            newest = newest or post
            if len(self._feed) < FEED_POSTS:
                self._feed.append(post)
            yield self._post(post, newer, older)
            yield from self._add_to_lists(post.listed(self._label(post)))
        yield from self._last_lists(newest)
        yield self._file("feed.xml", posts=self._feed, updated=_latest(self._feed))
        yield self._file("sitemap.xml", pages=self._sitemap)

    def _shared_files(self) -> Iterator[RenderedFile]:
        yield RenderedFile("site.css", (template_files() / "site.css").read_bytes())
        yield RenderedFile("accent.css", accent_css(self._site.config["accent_color"]).encode())
        if self._picture is not None:
            data = (template_files() / "pictures" / self._picture.file).read_bytes()
            yield RenderedFile(self._picture.file, data)
        letter = next((each for each in self._site.title if each.isalnum()), "·").upper()[:1]
        yield self._file("icon.svg", color=readable(self._site.config["accent_color"]).light, letter=letter)
        yield self._file("404.html", "missing.html", root="/")
        yield self._file("robots.txt")

    def _post(self, post: PostPage, newer: PostPage | None, older: PostPage | None) -> RenderedFile:
        letter = self._site.layout == "newsletter"
        self._sitemap.append((post.path, post.updated[:10]))
        return self._file(
            post.path,
            "issue.html" if letter else "post.html",
            root="../",
            post=post,
            front=False,
            newer=None if newer is None else newer.listed(f"Later: {newer.title}"),
            older=None if older is None else older.listed(f"Earlier: {older.title}"),
        )

    def _label(self, post: PostPage) -> str:
        return f"{post.number}: {post.title}" if self._site.layout == "newsletter" else post.title

    def _add_to_lists(self, post: ListedPost) -> Iterator[RenderedFile]:
        # The page that is full waits for the next post, which says that an older page follows.
        if len(self._listed) == self._page_size:
            yield from self._list_page(more=True)
        self._listed.append(post)

    def _last_lists(self, newest: PostPage | None) -> Iterator[RenderedFile]:
        if self._site.layout == "blog":
            yield from self._list_page(more=False)
            return
        kept = [post.listed(self._label(post)) for post in self._feed]
        if self._has_archive:
            yield from self._list_page(more=False)
        fields = custom_rows(self._site.config)
        if self._site.layout == "newsletter":
            earlier = kept[1 : _EARLIER_ISSUES + 1]
            yield self._front("issue.html", post=newest, front=True, earlier=earlier, fields=fields)
        else:
            yield self._front("project.html", posts=kept[:_NEWS], fields=fields)

    def _list_page(self, *, more: bool) -> Iterator[RenderedFile]:
        """Yield the page of the posts that were listed, and begin the next one."""
        listed, self._listed = self._listed, []
        self._pages += 1
        number = self._pages
        newer, older = _page_path(self._stem, number - 1), _page_path(self._stem, number + 1)
        path = _page_path(self._stem, number)
        self._sitemap.append((path, listed[0].date if listed else ""))
        blog = self._site.layout == "blog"
        if blog or self._has_archive:
            yield self._file(
                path,
                "blog.html" if blog else "archive.html",
                posts=listed,
                number=number,
                heading=self._look.archive,
                fields=custom_rows(self._site.config),
                newer={"path": newer, "label": "Newer posts"} if number > 1 else None,
                older={"path": older, "label": "Older posts"} if more else None,
            )

    def _front(self, template: str, **context: Any) -> RenderedFile:
        self._sitemap.append(("index.html", self._feed[0].date if self._feed else ""))
        return self._file("index.html", template, more=self._has_archive, **context)

    @property
    def _stem(self) -> str:
        return "index" if self._site.layout == "blog" else "archive"

    @property
    def _page_size(self) -> int:
        size: int = self._site.config.get("posts_per_page", _ARCHIVE_POSTS)
        return size

    @property
    def _has_archive(self) -> bool:
        shown = {"newsletter": _EARLIER_ISSUES + 1, "project": _NEWS}.get(self._site.layout, self._count)
        return self._count > shown

    def _file(self, path: str, template: str = "", *, root: str = "", **context: Any) -> RenderedFile:
        text = _environment().get_template(template or path).render(
            site=self._site,
            config=_Config(self._site.config),
            body=self._look.body,
            written=self._look.written,
            picture=self._picture,
            path=path,
            root=root,
            **context,
        )  # fmt: skip
        return RenderedFile(path, text.encode())


class _Config(dict[str, Any]):
    """A config in templates: a name without a value is None, which a test finds false."""

    def __missing__(self, name: str) -> None:
        return None


def _neighbours(
    posts: Iterable[PostContent], count: int
) -> Iterator[tuple[PostPage | None, PostPage, PostPage | None]]:
    """Yield each post with the newer and the older one beside it."""
    newer: PostPage | None = None
    current: PostPage | None = None
    for position, post in enumerate(posts):
        older = PostPage(post, count - position)
        if current is not None:
            yield newer, current, older
            newer = current
        current = older
    if current is not None:
        yield newer, current, None


def _page_path(stem: str, number: int) -> str:
    return f"{stem}.html" if number == 1 else f"{stem}-{number}.html"


def _latest(posts: list[PostPage]) -> str:
    # A feed must have a time, and the time of the build would change the bytes of a site without posts.
    return max((post.updated for post in posts), default="1970-01-01T00:00:00Z")


@cache
def _environment() -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.PackageLoader("solotable.systems.community.builds.templates", "files"),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        auto_reload=False,
    )
