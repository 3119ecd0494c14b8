"""The worker: builds the sites that wait, analyses templates, and removes files of replaced builds.

Any number of workers may run. A lease with a fencing token lets one of them build a site at a time; every
write of a build checks it. A worker that dies keeps its lease for seconds. Then another one starts the build
again, at most `max_attempts` times.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from types import TracebackType
from typing import Any, Literal, Self

from solotable import ANY, Database, Lease
from solotable.errors import ConditionFailed, LeaseHeld, LeaseLost, NotFound, TransactionFailed
from solotable.systems.community.entities.builds import Build, BuildReference, CustomTemplate
from solotable.systems.community.table import community
from solotable.systems.errors import InvalidInput, first_error
from solotable.systems.storage import Storage

from .publish import files_to_remove, remove_files
from .run import BuildRun, BuildTools
from .stages import BuildCancelled, BuildRejected, BuildSettings, Progress, Stage, StageTimedOut
from .templates.analysis import analyse

_log = logging.getLogger("solotable.community")
_INTERNAL = "An internal error stopped the stage {stage!r}; build again, or ask the operator."

Ending = Literal["live", "replaced", "failed", "cancelled", "later", "lost"]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkDone:
    """What one run of a worker did: builds by how they ended, templates, and removed files."""

    live: int = 0
    replaced: int = 0
    failed: int = 0
    cancelled: int = 0
    #: Builds that another attempt repeats.
    later: int = 0
    #: Builds that another worker took over.
    lost: int = 0
    templates: int = 0
    removed_files: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether there was nothing to do."""
        return self == WorkDone()


class BuildWorker:
    """Does what waits; `with BuildWorker(...) as worker: worker.run_once()`."""

    def __init__(
        self,
        db: Database,
        storage: Storage,
        settings: BuildSettings | None = None,
        *,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        progress: Progress | None = None,
    ) -> None:
        self._tools = BuildTools(
            db=db,
            storage=storage,
            settings=settings or BuildSettings(),
            runner=asyncio.Runner(),
            now=now,
            progress=progress,
        )
        self._db = db
        self._settings = self._tools.settings

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._tools.runner.close()

    def run_once(self, *, stop: Callable[[], bool] = lambda: False) -> WorkDone:
        """Build what waits, the oldest first, then do the rest; `stop` ends the run between two builds."""
        endings: list[Ending] = []
        for reference in list(self._db.all(Build.waiting(), unknown="skip")):
            if stop():
                break
            ending = self._try(reference)
            if ending is not None:
                endings.append(ending)
        counts: dict[str, int] = {each: endings.count(each) for each in endings}
        templates = 0 if stop() else self._analyse_templates()
        removed = 0 if stop() else self._remove_files()
        return WorkDone(**counts, templates=templates, removed_files=removed)

    def _try(self, reference: BuildReference) -> Ending | None:
        """Build one site, unless another worker has it or its next attempt is later."""
        build = self._current(reference)
        if build is None or (build.retry_at is not None and build.retry_at > self._tools.now()):
            return None
        lease = self._db.lease(
            f"build/{build.site_id}", seconds=self._settings.lease_seconds, table=community
        )
        try:
            with lease:
                # Another worker may have ended the build before this one had the lease.
                current = self._current(reference)
                return None if current is None else self._attempt(current, lease)
        except LeaseHeld:
            return None

    def _current(self, reference: BuildReference) -> Build | None:
        build = self._db.get(Build, site_id=reference.site_id, job_id=reference.job_id, consistent=True)
        return build if build is not None and build.status in ("pending", "running") else None

    def _attempt(self, found: Build, lease: Lease) -> Ending:
        """Claim the build, run its stages, and store how it ended."""
        try:
            build = self._claim(found, lease)
        except (LeaseLost, ConditionFailed, NotFound):
            return "lost"
        run = BuildRun(self._tools, build, lease)
        try:
            if found.cancel_requested:
                raise BuildCancelled("The build was cancelled.")
            if build.attempts > self._settings.max_attempts:
                raise BuildRejected(
                    f"The worker stopped {found.attempts} times in the stage {found.stage!r}."
                )
            return "live" if run.run() else "replaced"
        except LeaseLost:
            # The attempt that replaces this one writes how the build ended.
            return "lost"
        except BuildCancelled as error:
            return self._end(run, build, lease, "cancelled", str(error))
        except (BuildRejected, InvalidInput) as error:
            return self._end(run, build, lease, "failed", str(error))
        except Exception as error:  # noqa: BLE001 - it is logged, and the build is repeated
            # The edge of a build: a storage raises errors of its client, and other builds must run.
            _log.exception("build %s of site %s failed in %s", build.job_id, build.site_id, run.stage)
            return self._after_error(run, build, lease, error)

    def _claim(self, build: Build, lease: Lease) -> Build:
        claimed: dict[str, Any] = {
            "status": "running",
            "stage": "fetch",
            "token": lease.token,
            "attempts": build.attempts + 1,
            "started_at": build.started_at or self._tools.now(),
            "retry_at": None,
        }
        self._write(build, lease, claimed)
        return build.model_copy(update=claimed)

    def _after_error(self, run: BuildRun, build: Build, lease: Lease, error: Exception) -> Ending:
        timed_out = isinstance(error, TimeoutError)
        text = f"The stage {run.stage!r} took too long." if timed_out else _public_text(error, run.stage)
        if build.attempts >= self._settings.max_attempts:
            return self._end(run, build, lease, "failed", text)
        pause = self._settings.retry_seconds * 2 ** (build.attempts - 1)
        later = {"status": "pending", "stage": None, "retry_at": self._tools.now() + timedelta(seconds=pause)}
        if not self._finish(build, lease, later):
            return "lost"
        text = f"{text} Attempt {build.attempts} of {self._settings.max_attempts}; next in {pause:g} s."
        run.log.write(text, stage=run.stage, level="warning")
        return "later"

    def _end(
        self, run: BuildRun, build: Build, lease: Lease, status: Literal["failed", "cancelled"], text: str
    ) -> Ending:
        failed = status == "failed"
        ended = {
            "status": status,
            "stage": None,
            "error": text,
            "error_stage": run.stage if failed else None,
            "stages": dict(run.seconds),
            "content_count": run.content_count,
            "completed_at": self._tools.now(),
        }
        if not self._finish(build, lease, ended):
            return "lost"
        run.log.write(text, stage=run.stage, level="error" if failed else "warning")
        run.log.write("build stopped; readers see what they saw before", stage=run.stage)
        return status

    def _finish(self, build: Build, lease: Lease, changes: dict[str, Any]) -> bool:
        """Write how an attempt ended, unless another worker has the build; return whether it was written."""
        try:
            self._write(build, lease, changes)
        except (LeaseLost, ConditionFailed, NotFound):
            return False
        return True

    def _write(self, build: Build, lease: Lease, changes: dict[str, Any]) -> None:
        try:
            with self._db.transaction() as tx:
                tx.update(
                    Build,
                    site_id=build.site_id,
                    job_id=build.job_id,
                    version=ANY,
                    set={name: value for name, value in changes.items() if value is not None},
                    remove=[name for name, value in changes.items() if value is None],
                    where=lambda stored: (stored.status == "pending") | (stored.status == "running"),
                )
                tx.check_lease(lease)
        except TransactionFailed as failed:
            raise first_error(failed) from failed

    def _analyse_templates(self) -> int:
        """Analyse the manifests that wait. Two workers find the same, and one of them writes it."""
        done = 0
        for reference in list(self._db.all(CustomTemplate.waiting(), unknown="skip")):
            template = self._db.get(CustomTemplate, **dict(reference), consistent=True)
            if template is None or template.status != "pending":
                continue
            result = analyse(template.manifest, allowed_hosts=self._settings.template_hosts)
            schema = {} if result.template is None else result.template.schema
            try:
                self._db.update(
                    template,
                    set={
                        "status": "rejected" if result.template is None else "ready",
                        "problems": list(result.findings),
                        "config_schema": schema,
                    },
                )
            except (ConditionFailed, NotFound):
                continue
            done += 1
        return done

    def _remove_files(self) -> int:
        removed = 0
        for files in files_to_remove(self._db, self._tools.now()):
            at_once = self._settings.uploads_at_once
            removed += self._tools.runner.run(
                remove_files(self._tools.storage, files.prefix, at_once=at_once)
            )
            self._db.delete(files)
        return removed


def _public_text(error: Exception, stage: Stage) -> str:
    """Return what the owner may read; the text of an unknown error may name machines or keys."""
    return str(error) if isinstance(error, StageTimedOut) else _INTERNAL.format(stage=stage)
