"""A site of 2,000 posts: memory does not grow with the number of posts (C2.11)."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from solotable import connect
from solotable.systems.community.builds.render.content import PostContent, SiteContent
from solotable.systems.community.builds.render.site_files import render_site
from solotable.systems.community.builds.templates.manifest import checked_config, shipped_templates
from solotable.systems.community.builds.worker import BuildWorker
from solotable.systems.community.entities.builds import Build
from solotable.systems.community.entities.sites import Post
from solotable.systems.community.table import community
from solotable.systems.storage import FolderStorage
from tests.torture.size import LIMIT_SECONDS, amount, report

from .workshop import ADA, SETTINGS, add_site

pytestmark = pytest.mark.timeout(LIMIT_SECONDS)

BODY = ("The lock is closed until Thursday. " * 60 + "\n\n") * 6
START = datetime(2020, 1, 1, tzinfo=UTC)


def contents(count: int) -> Iterator[PostContent]:
    for number in range(count):
        yield PostContent(
            rkey=f"3k{number}",
            name=f"post-{number}",
            title=f"Post {number}",
            body=f"{number}\n\n{BODY}",
            published_at=START - timedelta(hours=number),
        )


def peak_of(count: int) -> int:
    """Return the most bytes that rendering a site took."""
    config = checked_config(shipped_templates()["newsletter"], {})
    site = SiteContent(title="Notes", layout="newsletter", base_url="https://a.example/", config=config)
    tracemalloc.start()
    try:
        for file in render_site(site, contents(count), count):
            assert file.data
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_c2_11_rendering_more_posts_takes_no_more_memory() -> None:
    peak_of(1)  # compiles the templates
    few, many = peak_of(30), peak_of(amount(90, 2000))
    # The lists and the sitemap keep some words of each post: of 12 KB, less than one in 10.
    assert many - few < amount(60, 1970) * len(BODY) / 10


def test_c2_11_a_site_of_many_posts_is_built(tmp_path: Path) -> None:
    """The short form has 60 posts, the long form 2,000 of 12 KB."""
    count = amount(60, 2000)
    with connect(f"sqlite:///{tmp_path / 'c.db'}?durability=relaxed", community) as db:
        site = add_site(db, posts=0)
        with db.batch(overwrite=True) as batch:
            for number in range(count):
                batch.put(
                    Post(
                        did=ADA,
                        site_id=site.site_id,
                        rkey=f"3k{number:06}",
                        title=f"Post {number}",
                        slug=f"post-{number}",
                        body=BODY,
                        published_at=START + timedelta(hours=number),
                    )
                )
        build = db.create(Build(did=ADA, site_id=site.site_id))
        with BuildWorker(db, FolderStorage(tmp_path / "files"), SETTINGS) as worker:
            assert worker.run_once().live == 1
        ended = db.require(Build, site_id=site.site_id, job_id=build.job_id)
        assert ended.content_count == count
        report(f"{count} posts: {ended.stages}")
    assert len(list((tmp_path / "files").rglob("posts/*.html"))) == count
