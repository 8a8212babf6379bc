"""Where detectors register: one line each. Packages add theirs by `trainwarden_detectors`."""

from __future__ import annotations

from trainwarden.diagnosis.base import Detector
from trainwarden.diagnosis.crash import detect_crash
from trainwarden.diagnosis.divergence import detect_divergence
from trainwarden.diagnosis.hardware import (
    detect_gpu_faults,
    detect_lost,
    detect_unreadable,
    detect_xid,
)
from trainwarden.diagnosis.liveness import (
    detect_end,
    detect_segfault,
    detect_stall,
    detect_zombies,
)
from trainwarden.diagnosis.lookalikes import detect_look_alikes
from trainwarden.diagnosis.memory import detect_leak, detect_low_memory, detect_oom_kill
from trainwarden.diagnosis.optimisation import (
    detect_nan,
    detect_spike,
    detect_zero_loss,
)
from trainwarden.diagnosis.overfitting import detect_overfitting
from trainwarden.diagnosis.plateau import detect_plateau
from trainwarden.diagnosis.printed import (
    detect_lost_scaling,
    detect_printed_leak,
    detect_scaled_runs,
    detect_table_of_kl,
    detect_table_of_losses,
)
from trainwarden.diagnosis.restart import detect_bad_resume, detect_scaled_loss
from trainwarden.diagnosis.rl import (
    detect_entropy,
    detect_kl,
    detect_mismatch,
    detect_reward_hacking,
    detect_truncation,
    detect_zero_signal,
)
from trainwarden.diagnosis.schedule import detect_loss_scale, detect_lr, detect_no_rate
from trainwarden.diagnosis.signatures import detect_text
from trainwarden.diagnosis.sources import detect_disagreement
from trainwarden.diagnosis.speed import (
    detect_idle_gpu,
    detect_much_slower,
    detect_slower,
    detect_throttling,
)
from trainwarden.diagnosis.storage import detect_checkpoints, detect_disk, detect_read_only
from trainwarden.diagnosis.supply import detect_slow_input, detect_straggler

DETECTORS: tuple[Detector, ...] = (
    detect_text,
    detect_crash,
    detect_nan,
    detect_zero_loss,
    detect_divergence,
    detect_spike,
    detect_plateau,
    detect_overfitting,
    detect_loss_scale,
    detect_lr,
    detect_no_rate,
    detect_truncation,
    detect_zero_signal,
    detect_kl,
    detect_entropy,
    detect_reward_hacking,
    detect_mismatch,
    detect_bad_resume,
    detect_scaled_loss,
    detect_table_of_losses,
    detect_table_of_kl,
    detect_scaled_runs,
    detect_lost_scaling,
    detect_slower,
    detect_much_slower,
    detect_slow_input,
    detect_straggler,
    detect_throttling,
    detect_idle_gpu,
    detect_xid,
    detect_lost,
    detect_gpu_faults,
    detect_unreadable,
    detect_leak,
    detect_printed_leak,
    detect_low_memory,
    detect_oom_kill,
    detect_stall,
    detect_zombies,
    detect_end,
    detect_segfault,
    detect_disk,
    detect_checkpoints,
    detect_read_only,
    detect_disagreement,
    detect_look_alikes,
)


def all_detectors() -> tuple[Detector, ...]:
    """Those of the house and those that plugins bring."""
    from trainwarden.plugins import detectors

    return (*DETECTORS, *detectors())
