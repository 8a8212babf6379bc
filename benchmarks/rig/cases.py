"""What is run: each fault, how a finding may name it, and sound runs of the same trainers."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

PLAIN: dict[str, Any] = {
    "task": "lm", "vocab_size": 36,
    "max_steps": 3000, "batch_size": 32, "learning_rate": 10.0, "warmup_steps": 150,
    "lr_scheduler_type": "cosine", "log_every": 20, "eval_every": 300, "pause": 0.004,
}  # fmt: skip
LM: dict[str, Any] = {
    "task": "lm", "vocab_size": 36, "max_steps": 1500, "characters": 400_000,
    "hidden_size": 64, "num_layers": 2, "sequence_length": 48,
    "batch_size": 16, "learning_rate": 2e-3, "adam_beta2": 0.95,
    "warmup_steps": 75, "lr_scheduler_type": "cosine", "log_every": 10, "eval_every": 150,
    "save_every": 300, "precision": "fp32", "max_grad_norm": 1.0, "onset": 0.4,
    "loader_workers": 0, "log_memory": False, "leak_bytes": 1_000_000,
    "output_dir": "checkpoints", "pause": 0.01,
}  # fmt: skip
FP16: dict[str, Any] = {
    "precision": "fp16", "hidden_size": 32, "sequence_length": 24, "batch_size": 8, "pause": 0.0,
    "max_steps": 800, "warmup_steps": 40, "eval_every": 100,
}  # fmt: skip
"""Small, since most processors compute 16-bit floats slowly."""
NOT_FOR_THE_CONFIG = {"onset", "pause", "leak_bytes", "characters"}
"""Settings of the rig itself. A watch that read them would learn what it is to find out."""


@dataclass(frozen=True)
class Case:
    """One run: its trainer, what its config changes, its fault and the kinds that name it."""

    name: str
    trainer: str
    settings: dict[str, Any] = field(default_factory=dict)
    fault: str = ""
    names: frozenset[str] = frozenset()
    quick: bool = False
    preempt_at: int = 0
    """The step at which the first attempt is ended; a second one resumes."""
    small_disk: int = 0
    """Bytes of the file system below output_dir; 0 leaves it where the run is."""
    patience: float = 60.0
    """Seconds after the onset in which a run that stands still is watched."""

    @property
    def needs_torch(self) -> bool:
        """Whether the trainer's own environment is needed."""
        return self.trainer != "plain"

    def config(self) -> dict[str, Any]:
        """All settings, with the trainer's defaults."""
        return {**{"plain": PLAIN, "lm": LM}[self.trainer], **self.settings}


def _fault(trainer: str, fault: str, names: str, style: str, seed: int, **more: Any) -> Case:
    kept = {key: more.pop(key) for key in list(more) if key in Case.__dataclass_fields__}
    name = kept.pop("name", f"{trainer}_{fault}")
    settings = {"seed": seed, "log_style": style, **more}
    return Case(name, trainer, settings, fault, frozenset(names.split()), **kept)


def _twin(trainer: str, number: int, style: str, seed: int, **more: Any) -> Case:
    kept = {key: more.pop(key) for key in list(more) if key in Case.__dataclass_fields__}
    name = kept.pop("name", f"{trainer}_twin{number}")
    return Case(name, trainer, {"seed": seed, "log_style": style, **more}, **kept)


PLAIN_CASES = (
    _fault("plain", "no_step", "plateau silent_wrong", "plain", 11, quick=True),
    _fault("plain", "same_batch", "overfitting silent_wrong zero_loss", "jsonl", 12),
    _fault("plain", "blocks", "stall dataloader_failure", "nano", 13, quick=True),
    _fault("plain", "crash", "crash_user_code", "jsonl", 14, quick=True),
    _fault("plain", "lr_high", "divergence plateau nan_loss loss_spike lr_schedule", "plain", 15,
           learning_rate=2000.0),
    _twin("plain", 1, "plain", 21, quick=True),
    _twin("plain", 2, "jsonl", 22, batch_size=16, lr_scheduler_type="linear"),
    _twin("plain", 3, "nano", 23, learning_rate=5.0, lr_scheduler_type="constant"),
)  # fmt: skip

_LOST = "divergence plateau nan_loss loss_spike lr_schedule"
_STUCK = "plateau silent_wrong"
_RESUMED = "bad_resume lr_schedule loss_spike divergence"
LM_CASES = (
    _fault("lm", "lr_high", _LOST, "plain", 31, learning_rate=1.0, quick=True),
    _fault("lm", "lr_jump", _LOST, "jsonl", 32),
    _fault("lm", "fp16_overflow", "loss_scale nan_loss", "hf", 33, quick=True, **FP16),
    _fault("lm", "corrupt_all", "divergence loss_spike plateau dataloader_failure silent_wrong",
           "hf", 34),
    _fault("lm", "corrupt_some", "loss_spike dataloader_failure silent_wrong divergence", "jsonl",
           35, log_every=5),
    _fault("lm", "frozen", _STUCK, "nano", 36),
    _fault("lm", "no_step", _STUCK, "hf", 37, quick=True),
    _fault("lm", "label_shift", "silent_wrong overfitting plateau divergence", "jsonl", 38),
    _fault("lm", "label_leak", "silent_wrong zero_loss overfitting divergence", "plain", 39),
    _fault("lm", "same_batch", "overfitting silent_wrong zero_loss", "plain", 40),
    _fault("lm", "resume_weights", _RESUMED, "plain", 41, preempt_at=750),
    _fault("lm", "resume_optimizer", _RESUMED, "jsonl", 42, preempt_at=750, adam_beta2=0.999,
           learning_rate=4e-3),
    _fault("lm", "resume_schedule", _RESUMED, "plain", 43, preempt_at=1050),
    _fault("lm", "resume_step", _RESUMED, "nano", 44, preempt_at=750),
    _fault("lm", "loader_blocks", "stall dataloader_failure", "plain", 45, loader_workers=1,
           quick=True),
    _fault("lm", "loader_slow", "slow_input step_time_regression", "jsonl", 46),
    _fault("lm", "memory_leak", "memory_leak host_oom", "jsonl", 47, log_memory=True,
           max_steps=4000, onset=0.3, name="lm_memory_leak_printed"),
    _fault("lm", "memory_leak", "memory_leak host_oom", "plain", 48, max_steps=4000, onset=0.3),
    _fault("lm", "disk_full", "disk_full", "plain", 49, small_disk=4 << 20),
    _twin("lm", 1, "plain", 51, quick=True),
    _twin("lm", 2, "jsonl", 52, hidden_size=32, batch_size=32),
    _twin("lm", 3, "hf", 53, num_layers=1, lr_scheduler_type="linear"),
    _twin("lm", 4, "nano", 54, hidden_size=96, lr_scheduler_type="constant", learning_rate=1e-3),
    _twin("lm", 5, "hf", 55, **FP16),
    _twin("lm", 6, "jsonl", 56, **{**FP16, "hidden_size": 48, "learning_rate": 1e-3}),
    _twin("lm", 7, "plain", 57, preempt_at=750, name="lm_twin7_resumed"),
    _twin("lm", 8, "jsonl", 58, preempt_at=900, name="lm_twin8_resumed", learning_rate=1e-3),
    _twin("lm", 9, "nano", 59, preempt_at=1000, name="lm_twin9_resumed"),
    _twin("lm", 10, "plain", 60, log_memory=True, max_steps=4000, name="lm_twin10_memory"),
    _twin("lm", 11, "jsonl", 61, log_every=1, max_steps=1000),
    _twin("lm", 12, "hf", 62, log_every=50, max_steps=3000, hidden_size=32),
    _twin("lm", 13, "nano", 63, batch_size=4, log_every=1, learning_rate=1e-3),
    _twin("lm", 14, "plain", 64, loader_workers=1, sequence_length=24),
    _twin("lm", 15, "jsonl", 65, small_disk=64 << 20, name="lm_twin15_small_disk"),
)  # fmt: skip

CASES: tuple[Case, ...] = PLAIN_CASES + LM_CASES
