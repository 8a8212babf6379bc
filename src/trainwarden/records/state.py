"""The state of a job, as kept in `monitoring-logs/jobs/<job-id>.json`."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from trainwarden.records.assessment import Criterion, KeyIndicator, Status
from trainwarden.records.base import Moment, OpenRecord, Real
from trainwarden.records.hypothesis import Hypothesis, HypothesisScore, Plan, When
from trainwarden.records.prediction import Calibration

SCHEMA_VERSION = 1


class Meta(OpenRecord):
    """Which job this is."""

    job: str
    config: str | None = None
    model: str | None = None
    logs: list[str] = Field(default_factory=list)
    created: Moment
    last_updated: Moment
    session_count: int = 0


class StatusEntry(OpenRecord):
    """One finished session's verdict."""

    session: str
    time: Moment
    status: Status
    step: int | None = None
    indicator: KeyIndicator | None = None
    value: Real | None = None
    """The key indicator's last value."""
    findings: list[str] = Field(default_factory=list)
    head: str = ""
    """Seal of the session's last gate."""
    deferred_until: int | None = None
    """The step at which the deferral of judgement ends, where there was one."""


class OpenSession(OpenRecord):
    """The session that is under way."""

    session: str
    begun: Moment
    head: str
    why: str | None = None
    """Why it was set aside, where somebody said so."""


class Monitor(OpenRecord):
    """What watching needs to remember."""

    criteria: list[Criterion] = Field(default_factory=list)
    status: Status | None = None
    status_history: list[StatusEntry] = Field(default_factory=list)
    user_guidance: list[str] = Field(default_factory=list)
    calibration: dict[str, Calibration] = Field(default_factory=dict)
    reading_positions: dict[str, dict[str, Any]] = Field(default_factory=dict)
    """Per log file: how far it has been read (offset, inode, fingerprint)."""
    samples: list[dict[str, Any]] = Field(default_factory=list)
    """One row a session of what no log keeps: time, step, rss, gpu memory, …"""
    learnings: list[str] = Field(default_factory=list)
    open_session: OpenSession | None = None
    abandoned: list[OpenSession] = Field(default_factory=list)


class StrategyState(OpenRecord):
    """What was decided and what is still to be judged."""

    decisions: list[dict[str, Any]] = Field(default_factory=list)
    hypotheses: list[Hypothesis] = Field(default_factory=list)
    """Chosen ones that wait for their outcome."""
    outcomes: list[HypothesisScore] = Field(default_factory=list)
    plan: Plan | None = None
    evaluate_after: When | None = None


class JobState(OpenRecord):
    """Three namespaces; a writer changes its own and keeps the others and any unknown field."""

    schema_version: int = SCHEMA_VERSION
    meta: Meta
    monitor: Monitor = Field(default_factory=Monitor)
    strategy: StrategyState = Field(default_factory=StrategyState)
