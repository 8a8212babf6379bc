"""Learning rates as schedules define them, in closed form."""

from __future__ import annotations

import math

POLYNOMIAL_END = 1e-7
"""`lr_end` of Hugging Face's polynomial schedule where none is given."""


def learning_rate_at(
    step: float,
    peak: float,
    total: float | None,
    warmup: float = 0,
    schedule: str | None = "linear",
    minimum: float | None = None,
    *,
    power: float = 1.0,
    cycles: float | None = None,
    decay_steps: float | None = None,
    step_size: float | None = None,
    gamma: float = 0.1,
) -> float | None:
    """The learning rate after `step` scheduler steps; None where it cannot be told.

    `peak` is the rate after warm-up, `total` the planned steps (warm-up included), `warmup` the
    steps of linear warm-up from zero, `minimum` the rate to end at. `power` is of polynomial,
    `cycles` of cosine (waves, 0.5 by default) and cosine_with_restarts (1), `decay_steps` of wsd
    (the last steps, in which it falls), `step_size` and `gamma` of step.

    Defined as in `transformers.optimization` (`get_constant_schedule`,
    `get_linear_schedule_with_warmup`, `get_cosine_schedule_with_warmup`,
    `get_cosine_with_min_lr_schedule_with_warmup`, `get_polynomial_decay_schedule_with_warmup`,
    `get_inverse_sqrt_schedule`, `get_wsd_schedule`), and for step as `torch.optim.lr_scheduler.
    StepLR`. A minimum with linear is the end of the line, as Megatron-LM has it. None for another
    schedule, a missing total where one is needed, or numbers that make no sense.
    """
    values = [step, peak, warmup, *(v for v in (total, minimum) if v is not None)]
    if not all(math.isfinite(value) and value >= 0 for value in values) or peak == 0:
        return None
    if schedule == "constant":
        return peak
    if schedule in _WARMED and step < warmup:
        return peak * step / max(1.0, warmup)
    if schedule == "constant_with_warmup":
        return peak
    if schedule == "inverse_sqrt":
        timescale = warmup or 10_000
        return max(peak / math.sqrt((step + timescale - warmup) / timescale), minimum or 0.0)
    if schedule == "step":
        return None if not step_size else peak * gamma ** (step // step_size)
    if total is None or total <= 0 or schedule not in _WARMED:
        return None
    progress = (step - warmup) / max(1.0, total - warmup)
    least = minimum or 0.0
    if least > peak:
        return None
    if schedule == "linear":
        return least + (peak - least) * max(0.0, 1.0 - progress)
    if schedule == "polynomial":
        end = POLYNOMIAL_END if minimum is None else minimum
        return (peak - end) * math.pow(max(0.0, 1.0 - progress), power) + end
    if schedule == "wsd":
        if decay_steps is None:
            return None
        fallen = (step - (total - decay_steps)) / max(1.0, decay_steps)
        return least + (peak - least) * _wave(min(max(fallen, 0.0), 1.0), 0.5)
    if schedule == "cosine_with_restarts":
        if progress >= 1.0:
            return least
        return least + (peak - least) * 0.5 * (
            1.0 + math.cos(math.pi * ((cycles or 1.0) * progress % 1.0))
        )
    # A run past its planned end stays at the least, where transformers' cosine would rise again.
    return least + (peak - least) * _wave(min(progress, 1.0), cycles or 0.5)


def _wave(progress: float, cycles: float) -> float:
    """1 at the start, falling along a cosine; `cycles` waves by progress 1."""
    return max(0.0, 0.5 * (1.0 + math.cos(math.pi * cycles * 2.0 * progress)))


_WARMED = frozenset(
    {
        "constant_with_warmup",
        "linear",
        "cosine",
        "cosine_with_min_lr",
        "cosine_with_restarts",
        "polynomial",
        "inverse_sqrt",
        "wsd",
    }
)
