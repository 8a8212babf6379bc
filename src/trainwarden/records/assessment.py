"""The verdict of step 4 and the words that must come with it."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field

from trainwarden.records.base import Record, Scalar, Step


class Status(str, Enum):
    """The four verdicts."""

    HEALTHY = "HEALTHY"
    WARNING = "WARNING"
    UNCERTAIN = "UNCERTAIN"
    CRITICAL = "CRITICAL"

    @property
    def exit_code(self) -> int:
        """What `run` and `finish` exit with."""
        return {"HEALTHY": 0, "WARNING": 10, "UNCERTAIN": 20, "CRITICAL": 30}[self.value]


Text = Annotated[str, Field(min_length=1, max_length=20_000)]


class Criterion(Record):
    """One value to judge by, derived from the run's own artefacts, with where it came from."""

    id: str = ""
    name: str
    value: Scalar
    unit: str | None = None
    source: str
    """E.g. `config train.yaml: max_steps`, `ln(vocab_size)`, `session 2026-11-01_120000`."""
    rule_of_thumb: bool = False


class KeyIndicator(Record):
    """The one quantity whose course tells whether the run learns what it should."""

    quantity: str
    direction: Literal["decrease", "increase"]
    why: Text


class Deferral(Record):
    """Judgement put off during warm-up: only with a signal, and a step at which it ends."""

    signal: Text
    until_step: Step


class Assessment(Record):
    """Status with the articulation that each status owes.

    HEALTHY: `progress` cites observations of progress beyond the baseline. WARNING: `process`
    says what was examined. CRITICAL: `failure` cites what shows it. UNCERTAIN: `tried`,
    `why_failed`, `would_resolve` and a `question`.
    """

    status: Status
    indicator: KeyIndicator
    expected: Text
    baseline: Text
    """What this would look like if the model were not learning."""
    reasoning: Text
    progress: tuple[str, ...] = ()
    failure: tuple[str, ...] = ()
    process: str = ""
    tried: str = ""
    why_failed: str = ""
    would_resolve: str = ""
    question: str = ""
    deferral: Deferral | None = None
    disputed: dict[str, str] = Field(default_factory=dict)
    """Findings the analyst does not accept: finding id to the reason."""


class RootCause(Record):
    """One link of the causal chain found in step 7, in causal order."""

    statement: Text
    role: Literal["initiating", "cascade", "teardown", "advice"]
    observations: tuple[str, ...] = Field(min_length=1)
    evidence_type: Literal["inference", "report", "research", "observation", "definition"]
    confidence: Annotated[float, Field(gt=0, le=0.95)]
    alternatives: tuple[str, ...] = ()
    first_action: Text


class Troubleshooting(Record):
    """Step 7: root causes in causal order, or the reason for skipping."""

    causes: tuple[RootCause, ...] = ()
    skipped: str = ""
