"""Findings: anomalies with their evidence, cause and first action."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Literal

from pydantic import Field, model_validator

from trainwarden.records.base import Moment, Record

FindingKind = Literal[
    "nan_loss",
    "zero_loss",
    "plateau",
    "divergence",
    "loss_spike",
    "bad_resume",
    "overfitting",
    "cuda_oom",
    "host_oom",
    "memory_leak",
    "collective_hang",
    "rank_crash",
    "straggler",
    "gpu_hardware",
    "dataloader_failure",
    "disk_full",
    "checkpoint_corrupt",
    "checkpoint_stale",
    "k8s_scheduling",
    "k8s_oomkilled",
    "preempted",
    "time_limit",
    "user_cancelled",
    "rl_zero_signal",
    "rl_kl_explosion",
    "rl_entropy_collapse",
    "rl_length",
    "rl_mismatch",
    "rl_reward_hacking",
    "loss_scale",
    "accumulation_scaling",
    "lr_schedule",
    "silent_wrong",
    "tracker_stall",
    "stall",
    "slow_input",
    "step_time_regression",
    "throttling",
    "idle_gpu",
    "network_failure",
    "crash_user_code",
    "environment_mismatch",
    # Beyond the incident vocabulary: what a watch itself comes upon.
    "killed",
    "source_disagreement",
    "launcher_died",
    "gpu_unreadable",
    "unexpected_end",
]


class Severity(str, Enum):
    """How bad: info never speaks against HEALTHY, critical always does."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Role(str, Enum):
    """Causal role, after the roles of NVIDIA's resiliency extension."""

    INITIATING = "initiating"
    CASCADE = "cascade"
    TEARDOWN = "teardown"
    ADVICE = "advice"


EvidenceType = Literal["inference", "report", "research", "observation", "definition"]

CEILINGS: dict[str, float] = {
    "inference": 0.70,
    "report": 0.70,
    "research": 0.85,
    "observation": 0.95,
    "definition": 0.95,
}
"""No claim may be surer than the evidence it rests on allows."""


class Finding(Record):
    """An anomaly: kind, severity, observations cited, since when, what it would mean."""

    id: str = ""
    kind: FindingKind
    severity: Severity
    role: Role = Role.INITIATING
    observations: tuple[str, ...] = Field(min_length=1)
    """Ids of the observations that show it."""
    since_step: int | None = None
    since_time: Moment | None = None
    summary: str = Field(min_length=1)
    meaning: str = ""
    alternatives: tuple[str, ...] = ()
    first_action: str = ""
    evidence_type: EvidenceType = "inference"
    confidence: Annotated[float, Field(gt=0, le=0.95)]

    @model_validator(mode="after")
    def _under_ceiling(self) -> Finding:
        ceiling = CEILINGS[self.evidence_type]
        if self.confidence > ceiling:
            raise ValueError(
                f"confidence {self.confidence} is above {ceiling}, "
                f"the ceiling of evidence type {self.evidence_type!r}"
            )
        return self
