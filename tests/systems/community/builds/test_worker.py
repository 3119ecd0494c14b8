"""Builds from request to end: stages, log, history, limits, retries, cancellation (S2.7, S2.11)."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from types import MappingProxyType
from typing import Any

import pytest

from solotable.errors import ConditionFailed, NotFound
from solotable.systems.community.builds.stages import STAGES, Stage
from solotable.systems.community.builds.worker import WorkDone
from solotable.systems.community.entities.builds import Build, BuildLog, CustomTemplate
from solotable.systems.community.entities.sites import Site
from solotable.systems.storage import Storage

from .workshop import ADA, SETTINGS, Workshop, add_post


def test_s2_7_a_requested_build_goes_live(workshop: Workshop) -> None:
    site = workshop.site()
    requested = workshop.request(site)
    assert (requested.status, requested.attempts, requested.trigger) == ("pending", 0, "manual")
    assert workshop.work().live == 1
    build = workshop.again(requested)
    assert (build.status, build.error, build.stage) == ("completed", None, None)
    assert (build.content_count, build.attempts) == (2, 1)
    assert tuple(build.stages) == STAGES
    live = workshop.live(site)
    assert (live.live_job_id, live.status) == (build.job_id, "published")
    assert live.public_url == "https://ada.nbhd.example/"
    files = workshop.files(site)
    assert b"Text of <strong>post 1</strong>" in files["posts/post-1.html"]
    assert [line.text for line in workshop.log(build)][-1] == "live at https://ada.nbhd.example/"
    assert workshop.work().is_empty


def test_c2_8_two_requests_of_one_moment_are_two_builds_found_by_the_site_alone(workshop: Workshop) -> None:
    site = workshop.site()
    workshop.sent()
    first, consumed = workshop.measured(workshop.builds.request(site.site_id))
    # The owner by the id of the site, the site, and the build with its entries in two indexes.
    assert workshop.sent() == ["GetItem", "GetItem", "PutItem"]
    assert (consumed.rcu, consumed.wcu) == (1.0, 3.0)
    second = workshop.request(site)
    assert first.created_at == second.created_at
    assert first.job_id != second.job_id
    assert {each.job_id for each in workshop.run(workshop.builds.recent(site.site_id))} == {
        first.job_id,
        second.job_id,
    }
    assert workshop.work().live == 2
    assert workshop.live(site).live_job_id == second.job_id
    with pytest.raises(NotFound):
        workshop.run(workshop.builds.request("unknown"))


def test_s2_11_the_history_has_the_last_ten_builds_newest_first(workshop: Workshop) -> None:
    site, other = workshop.site(), workshop.site("eva")
    workshop.request(other)
    made = []
    for _ in range(12):
        workshop.pass_time(seconds=1)
        made.append(workshop.request(site).job_id)
    workshop.sent()
    recent, consumed = workshop.measured(workshop.builds.recent(site.site_id))
    assert [each.job_id for each in recent] == made[:1:-1]
    assert workshop.sent() == ["Query"]
    assert consumed.rcu <= 1.0


def test_c2_3_the_index_of_builds_has_every_build_and_no_site(workshop: Workshop) -> None:
    site = workshop.site()
    made = {workshop.request(site).job_id for _ in range(3)}
    recent = workshop.run(workshop.builds.recent(site.site_id))
    assert {each.job_id for each in recent} == made
    assert all(each.created_at for each in recent)
    assert {item["entity_type"]["S"] for item in workshop.raw() if "GSI4PK" in item} == {"BUILD"}


def test_s2_23_lines_of_a_log_end_after_90_days_whatever_the_sweeper_does(workshop: Workshop) -> None:
    build = workshop.build(workshop.site())
    workshop.sent()
    lines, consumed = workshop.measured(workshop.builds.log(build.site_id, build.job_id))
    assert len(lines) == 6
    assert workshop.sent() == ["Query"]
    assert consumed.rcu <= 1.0
    workshop.pass_time(days=89)
    assert workshop.log(build) == lines
    workshop.pass_time(days=1)
    assert workshop.log(build) == []
    # C2.9: DynamoDB may delete them days later: they are stored, and not read.
    assert sum(item["entity_type"] == {"S": "BUILD_LOG"} for item in workshop.raw()) == len(lines)


def test_a_post_without_a_date_stops_the_build_and_readers_see_the_one_before(workshop: Workshop) -> None:
    site = workshop.site()
    first = workshop.build(site)
    add_post(workshop.blocking, site, 9, title="Ice on the lock", published_at=None)
    build = workshop.build(site)
    assert (build.status, build.error_stage) == ("failed", "render")
    assert build.error == "Post “Ice on the lock” has no date."
    assert list(build.stages) == ["fetch", "inject"]
    assert workshop.live(site).live_job_id == first.job_id
    assert [line.text for line in workshop.log(build) if line.level == "error"] == [build.error]


@pytest.mark.parametrize(
    ("fields", "stage", "text"),
    [
        (
            {"config": {"accent_color": "red"}},
            "inject",
            "config.accent_color: must be a color such as #0f6b6b.",
        ),
        ({"config": {"posts": []}}, "inject", "config.posts: posts are not part of the config"),
        ({"template": "unknown"}, "fetch", "The template 'unknown' does not exist; choose another one."),
    ],
)
def test_a_wrong_site_fails_in_its_stage_at_the_first_attempt(
    workshop: Workshop, fields: dict[str, Any], stage: Stage, text: str
) -> None:
    build = workshop.build(workshop.site(**fields))
    assert (build.status, build.error_stage, build.attempts) == ("failed", stage, 1)
    assert (build.error or "").startswith(text)


@pytest.mark.parametrize("stage", ["", "fetch", "invalidate"])
def test_a_build_of_a_deleted_site_publishes_nothing(workshop: Workshop, stage: str) -> None:
    site = workshop.site()
    build = workshop.request(site)

    def delete(at: Stage, done: int) -> None:
        if (at, done) == (stage, 0):
            workshop.blocking.delete(
                Site, did=site.did, site_id=site.site_id, version=workshop.live(site).version
            )

    if not stage:
        workshop.blocking.delete(site)
        with pytest.raises(NotFound):
            workshop.request(site)
    assert workshop.work(progress=delete).failed == 1
    ended = workshop.again(build)
    assert (ended.status, ended.error) == ("failed", "The site was deleted.")
    restored = workshop.blocking.undelete(Site, did=site.did, site_id=site.site_id)
    assert restored.live_job_id is None


def test_a_build_that_waits_is_cancelled_at_once(workshop: Workshop) -> None:
    site = workshop.site()
    build = workshop.request(site)
    assert workshop.run(workshop.builds.queue_position(build)) == 0
    cancelled = workshop.run(workshop.builds.cancel(site.site_id, build.job_id))
    assert cancelled.status == "cancelled"
    assert workshop.work().is_empty
    with pytest.raises(ConditionFailed, match="has ended: cancelled"):
        workshop.run(workshop.builds.cancel(site.site_id, build.job_id))


@pytest.mark.parametrize("stage", STAGES)
def test_a_running_build_that_is_cancelled_publishes_nothing(workshop: Workshop, stage: Stage) -> None:
    site = workshop.site()
    build = workshop.request(site)

    def cancel(at: Stage, done: int) -> None:
        if (at, done) == (stage, 0):
            current = workshop.again(build)
            workshop.blocking.update(current, set={"cancel_requested": True})

    assert workshop.work(progress=cancel).cancelled == 1
    ended = workshop.again(build)
    assert (ended.status, ended.error_stage) == ("cancelled", None)
    assert workshop.live(site).live_job_id is None
    assert workshop.work().is_empty


class Unreachable:
    """A storage whose puts fail some times; the rest is another storage."""

    def __init__(self, storage: Storage, failures: int) -> None:
        self._storage = storage
        self.failures = failures

    def __getattr__(self, name: str) -> object:
        return getattr(self._storage, name)

    async def put(self, key: str, data: bytes, *, mime: str) -> None:
        if self.failures:
            self.failures -= 1
            raise ConnectionError("https://user:secret@storage.internal is down")
        await self._storage.put(key, data, mime=mime)


def test_an_error_that_passes_is_tried_again_later(workshop: Workshop) -> None:
    site = workshop.site()
    build = workshop.request(site)
    workshop.storage = Unreachable(workshop.storage, 1)  # type: ignore[assignment] # __getattr__ has the rest
    assert workshop.work().later == 1
    waiting = workshop.again(build)
    assert (waiting.status, waiting.attempts) == ("pending", 1)
    assert workshop.work().is_empty
    workshop.pass_time(seconds=5)
    assert workshop.work().live == 1
    assert workshop.again(build).attempts == 2
    (warning,) = [line for line in workshop.log(build) if line.level == "warning"]
    assert warning.text.endswith("Attempt 1 of 3; next in 5 s.")


def test_an_error_that_lasts_fails_after_three_attempts_and_names_no_internals(workshop: Workshop) -> None:
    build = workshop.request(workshop.site())
    workshop.storage = Unreachable(workshop.storage, 99)  # type: ignore[assignment] # __getattr__ has the rest
    for _ in range(3):
        workshop.work()
        workshop.pass_time(minutes=1)
    ended = workshop.again(build)
    assert (ended.status, ended.error_stage, ended.attempts) == ("failed", "upload", 3)
    assert "secret" not in f"{ended!r}{workshop.log(build)!r}"


@pytest.mark.parametrize("stage", STAGES[:4])
def test_a_stage_that_takes_too_long_fails(workshop: Workshop, stage: Stage) -> None:
    limits = MappingProxyType({**SETTINGS.stage_seconds, stage: 0.0})
    settings = replace(SETTINGS, stage_seconds=limits, max_attempts=1)
    build = workshop.build(workshop.site(), settings=settings)
    if stage == "inject":
        # It has no steps, so that nothing can take long.
        assert build.status == "completed"
        return
    assert (build.status, build.error_stage) == ("failed", stage)
    assert build.error == f"The stage {stage!r} took longer than 0 seconds."


def test_builds_of_one_moment_run_once_each_although_two_workers_run(workshop: Workshop) -> None:
    """The second worker runs in each stage of the first one, and finds the site taken."""
    site, other = workshop.site(), workshop.site("eva")
    build, second = workshop.request(site), workshop.request(other)
    found: list[WorkDone] = []

    def run_another(at: Stage, done: int) -> None:
        if at == "upload" and done == 0 and not found:
            found.append(workshop.work())

    assert workshop.work(progress=run_another).live == 1
    assert [each.live for each in found] == [1]
    assert [workshop.again(each).attempts for each in (build, second)] == [1, 1]


@pytest.mark.parametrize("stage", STAGES)
def test_a_late_worker_cannot_publish_over_the_worker_that_took_over(
    workshop: Workshop, stage: Stage
) -> None:
    site = workshop.site()
    build = workshop.request(site)
    others: list[WorkDone] = []

    def stall(at: Stage, done: int) -> None:
        if (at, done) == (stage, 0) and not others:
            workshop.pass_time(seconds=SETTINGS.lease_seconds + 2)
            add_post(workshop.blocking, site, 7, title="Written since")
            others.append(workshop.work())

    late = workshop.work(progress=stall)
    assert (late.live, late.lost) == (0, 1)
    assert others[0].live == 1
    ended = workshop.again(build)
    assert (ended.status, ended.attempts, ended.content_count) == ("completed", 2, 3)
    assert b"Written since" in workshop.files(site)["index.html"]


def test_an_older_build_that_ends_later_does_not_replace_a_newer_one(workshop: Workshop) -> None:
    site = workshop.site()
    older = workshop.request(site)
    reachable = workshop.storage
    workshop.storage = Unreachable(reachable, 99)  # type: ignore[assignment] # __getattr__ has the rest
    assert workshop.work().later == 1
    workshop.storage = reachable
    workshop.pass_time(seconds=1)
    newer = workshop.build(site)
    workshop.pass_time(seconds=5)
    assert workshop.work().replaced == 1
    assert workshop.again(older).status == "completed"
    assert workshop.live(site).live_job_id == newer.job_id
    # The files of the older one are removed.
    workshop.pass_time(minutes=61)
    workshop.work()
    assert [(each.job_id, each.live) for each in workshop.stored(site)] == [(newer.job_id, True)]


def test_a_build_whose_worker_dies_each_time_fails_after_three_attempts(workshop: Workshop) -> None:
    site = workshop.site()
    build = workshop.request(site)

    class Killed(BaseException):
        """The process ends here."""

    def die(at: Stage, done: int) -> None:
        if at == "render":
            raise Killed

    for _ in range(3):
        with pytest.raises(Killed):
            workshop.work(progress=die)
    assert workshop.work(progress=die).failed == 1
    ended = workshop.again(build)
    assert (ended.status, ended.error) == ("failed", "The worker stopped 3 times in the stage 'render'.")


def test_replaced_files_stay_for_readers_and_are_removed_then(workshop: Workshop) -> None:
    site = workshop.site()
    workshop.build(site)
    before = workshop.stored(site)[0].prefix
    workshop.pass_time(seconds=1)
    workshop.build(site)
    workshop.pass_time(minutes=9)
    assert workshop.work().removed_files == 0
    assert (workshop.folder / before / "index.html").exists()
    workshop.pass_time(minutes=2)
    assert workshop.work().removed_files > 8
    assert not list((workshop.folder / before).rglob("*.*"))
    # Live files stay, however long; those of a purged site do not.
    workshop.pass_time(days=40)
    assert workshop.work().is_empty
    assert "index.html" in workshop.files(site)


def test_files_of_a_purged_site_are_removed(workshop: Workshop) -> None:
    from solotable.jobs.purge import purge

    site = workshop.site()
    workshop.build(site)
    (stored,) = workshop.stored(site)
    workshop.blocking.delete(workshop.live(site))
    workshop.pass_time(days=3)
    # The site can be restored, so its files stay.
    assert workshop.work().removed_files == 0
    workshop.pass_time(days=5)
    purge(workshop.blocking.admin())
    assert workshop.work().removed_files > 8
    assert not list((workshop.folder / stored.prefix).rglob("*.*"))
    assert workshop.stored(site) == []


MANIFEST = {
    "name": "harbour",
    "version": "1.0.0",
    "title": "Harbour log",
    "layout": "blog",
    "defaults": {"accent_color": "#123456"},
    "fields": {
        "type": "object",
        "required": ["berth"],
        "properties": {"berth": {"type": "string", "maxLength": 20}},
    },
}


def test_a_custom_template_is_analysed_by_the_worker_and_used(workshop: Workshop) -> None:
    submitted = workshop.run(workshop.builds.submit_template(ADA, dict(MANIFEST)))
    assert submitted.status == "pending"
    early = workshop.request(workshop.site("early", template=submitted.template_id))
    assert workshop.work().templates == 1
    assert workshop.again(early).error == "The template 'harbour' is not ready: pending."
    ready = workshop.blocking.require(CustomTemplate, did=ADA, template_id=submitted.template_id)
    assert (ready.status, ready.problems) == ("ready", [])
    assert ready.config_schema["properties"]["custom_fields"]["required"] == ["berth"]
    refused = workshop.build(workshop.site("eva", template=ready.template_id, config={}))
    assert (refused.error_stage, refused.error) == ("inject", "config.custom_fields: is required.")
    site = workshop.site(template=ready.template_id, config={"custom_fields": {"berth": "Nine"}})
    assert workshop.build(site).status == "completed"
    files = workshop.files(site)
    assert b"Nine" in files["index.html"]
    assert b"#123456" in files["accent.css"]


def test_a_custom_template_with_mistakes_is_rejected_with_each_of_them(workshop: Workshop) -> None:
    manifest = {"name": "x", "version": "1", "layout": "blog", "source_url": "https://example.org/x"}
    submitted = workshop.run(workshop.builds.submit_template(ADA, dict(manifest)))
    workshop.work()
    found = workshop.blocking.require(CustomTemplate, did=ADA, template_id=submitted.template_id)
    assert found.status == "rejected"
    assert found.problems == [
        "version: must be three numbers, such as 1.0.0.",
        "source_url: the host is not on the list of allowed hosts (none).",
    ]
    with pytest.raises(NotFound):
        workshop.run(workshop.builds.template(ADA, submitted.template_id))


def test_a_worker_without_work_asks_three_queues_and_no_more(workshop: Workshop) -> None:
    workshop.build(workshop.site())
    workshop.sent()
    with workshop.blocking.consumed() as used:
        assert workshop.work().is_empty
    # Builds, templates and files: four shards each, and nothing is in them.
    assert workshop.sent() == ["Query"] * 12
    assert used.rcu <= 6.0


def test_a_build_writes_a_bounded_number_of_items(workshop: Workshop) -> None:
    site = workshop.site()
    workshop.request(site)
    workshop.sent()
    workshop.work()
    sent = workshop.sent()
    # Claim, five stages, the announced upload and the publication; six lines of the log; the lease.
    assert sent.count("TransactWriteItems") == 8
    assert sent.count("PutItem") == 6
    assert sent.count("UpdateItem") == 2


def test_s2_7_build_items_have_what_the_design_names(workshop: Workshop) -> None:
    """S2.7: the key and the attributes of a build, and of the lines of its log."""
    build = workshop.build(workshop.site())
    (item,) = [each for each in workshop.raw() if each["entity_type"] == {"S": "BUILD"}]
    assert item["PK"]["S"] == f"BUILD#{build.site_id}"
    assert item["SK"]["S"] == f"JOB#{build.job_id}"
    assert {"job_id", "site_id", "status", "started_at", "completed_at"} <= set(item)
    assert isinstance(build, Build)
    line = workshop.log(build)[0]
    assert isinstance(line, BuildLog)
    assert line.created_at is not None
    assert line.expires_at == line.created_at + timedelta(days=90)
