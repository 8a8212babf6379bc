"""The jobs' states on disk: `monitoring-logs/jobs/<job-id>.json`."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Literal

from pydantic import ValidationError

from trainwarden.errors import Refusal, Trouble
from trainwarden.files import locked, make_folder, trouble, write_atomically
from trainwarden.records.hostile import clean
from trainwarden.records.job import Job
from trainwarden.records.state import SCHEMA_VERSION, JobState, Meta

Namespace = Literal["meta", "monitor", "strategy"]


class StateStore:
    """States of all jobs under one root."""

    def __init__(self, root: Path) -> None:
        self.logs = root / "monitoring-logs"
        self.jobs = self.logs / "jobs"
        self.readings = self.logs / "readings"
        """Where the log reader keeps how far it is; can be deleted at any time."""

    def path(self, job: str) -> Path:
        """Where a job's state is kept. Raises Refusal for what is no job's id."""
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,199}", job):
            raise Refusal(f"{clean(job)!r} is no job's id: `trainwarden status` lists them")
        return self.jobs / f"{job}.json"

    @contextmanager
    def hold(self, job: str, *, wait: float, purpose: str) -> Iterator[None]:
        """Be the only one at work on a job. Raises Trouble when another is, for too long."""
        with locked(self.jobs / f"{job}.lock", wait=wait, purpose=purpose):
            yield

    def known(self) -> list[str]:
        """Ids of all jobs that have a state, sorted."""
        try:
            return sorted(path.stem for path in self.jobs.glob("*.json"))
        except OSError:
            return []

    def load(self, job: str) -> tuple[JobState | None, str | None]:
        """A job's state, None where there is none yet, and a note for the user.

        A corrupt file is kept aside under another name, never overwritten, and the note says so.
        Raises Trouble where the file is of a newer version or cannot be read.
        """
        path = self.path(job)
        try:
            data = path.read_bytes()
        except FileNotFoundError:
            return None, None
        except OSError as error:
            raise trouble("read", path, error) from error
        try:
            raw = json.loads(data)
            version = raw.get("schema_version") if isinstance(raw, dict) else None
            if isinstance(version, int) and version > SCHEMA_VERSION:
                raise Trouble(
                    f"{path} was written by a newer trainwarden (schema {version}, this one knows "
                    f"{SCHEMA_VERSION}): upgrade trainwarden, or move the file away to start anew"
                )
            return JobState.model_validate(raw), None
        except (ValueError, RecursionError, ValidationError):
            kept = self._keep_aside(path)
            return None, f"the job's state was corrupt; it is kept as {kept} and a new one begun"

    def peek(self, job: str) -> JobState | None:
        """A job's state for those who only look: nothing is moved, None where it is corrupt."""
        try:
            return JobState.model_validate(json.loads(self.path(job).read_bytes()))
        except (OSError, ValueError, RecursionError, Refusal):
            return None

    def _keep_aside(self, path: Path) -> Path:
        for number in range(1, 10_000):
            kept = path.with_name(f"{path.name}.corrupt-{number}")
            if not kept.exists():
                try:
                    path.rename(kept)
                except OSError as error:
                    raise trouble("keep aside", path, error) from error
                return kept
        raise Trouble(f"too many corrupt copies of {path}: look at them and delete some")

    def create(self, job: Job, now: datetime) -> JobState:
        """A state for a job that has none. Not yet written."""
        meta = Meta(
            job=job.id,
            config=job.config,
            model=job.model,
            logs=list(job.logs),
            created=now,
            last_updated=now,
        )
        return JobState(meta=meta)

    def update(
        self, job: Job, now: datetime, change: Callable[[JobState], None], *namespaces: Namespace
    ) -> JobState:
        """Apply `change` to the file's present content and write only the namespaces named.

        Everything else in the file, fields that this version does not know included, stays. The
        job must be held (`hold`). Raises Trouble.
        """
        make_folder(self.jobs)
        state, _ = self.load(job.id)
        state = state or self.create(job, now)
        before = state.model_dump(mode="json")
        change(state)
        state.meta.last_updated = max(now, state.meta.last_updated)
        after = state.model_dump(mode="json")
        merged = before | {name: after[name] for name in (*namespaces, "meta")}
        write_atomically(
            self.path(job.id), json.dumps(merged, indent=1, ensure_ascii=False, allow_nan=False)
        )
        return state
