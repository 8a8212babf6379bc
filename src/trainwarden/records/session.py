"""A session and its sealed gates, as kept in `session.json`."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, model_serializer

from trainwarden.records.assessment import Criterion
from trainwarden.records.base import Moment, Record
from trainwarden.records.job import Job

STEPS = (
    "predict",
    "collect",
    "compare",
    "metrics",
    "resources",
    "review",
    "troubleshoot",
    "strategy",
    "summary",
)
"""The nine steps, in order; step n is `STEPS[n - 1]`."""

Authority = Literal["observe", "act"]


class _Sparse(Record):
    """A record whose fields for Claude Code are left out where they say nothing.

    So the digest of what was sealed without them stays the same.
    """

    @model_serializer(mode="wrap")
    def _said(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        data: dict[str, Any] = handler(self)
        unsaid = {"guarded": None, "unguarded": "", "client": None}
        return {key: v for key, v in data.items() if key not in unsaid or v != unsaid[key]}


class Gate(_Sparse):
    """A sealed step. `content` is the data that the Markdown file was rendered from."""

    step: int = Field(ge=1, le=9)
    name: str
    revision: int = Field(ge=1)
    file: str
    job: str
    session: str
    analyst: str
    sealed_at: Moment
    skipped: bool = False
    guarded: bool | None = None
    """Whether the guard's record vouches for it; None where it was not sealed in Claude Code."""
    unguarded: str = ""
    """Why it does not."""
    content: dict[str, Any]
    previous: str
    seal: str


class SessionHeader(_Sparse):
    """What is fixed when a session begins; its digest is the seal before the first gate."""

    schema_version: int = 1
    session: str
    number: int = Field(ge=1)
    job: Job
    analyst: str
    client: str | None = None
    """The Claude Code session that opened it; None where it was opened elsewhere."""
    authority: Authority = "observe"
    begun_at: Moment
    criteria: tuple[Criterion, ...] = ()
    due: tuple[str, ...] = ()
    """Ids of hypotheses that this session must score."""
    learnings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    """What the runtime came upon while beginning (clock set back, state kept aside, …)."""


class SessionRecord(Record):
    """The whole of `session.json`."""

    header: SessionHeader
    gates: tuple[Gate, ...] = ()
