"""Simulated runs: what healthy training and each fault look like in a log, by seed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from support.views import reading, series
from trainwarden.metrics.reading import Reading
from trainwarden.metrics.series import Series

Values = list[float]


def curve(
    seed: int,
    points: int,
    *,
    vocab: int = 256,
    noise: float = 0.05,
    every: int = 10,
    floor: float = 1.5,
    exponent: float = 0.35,
    memory: float = 0.5,
) -> Values:
    """A power-law loss from ln(vocab) to a floor, with autocorrelated noise in its logarithm."""
    rng = np.random.default_rng(seed)
    start = math.log(vocab)
    wander, values = 0.0, []
    for index in range(points):
        wander = memory * wander + math.sqrt(1 - memory**2) * float(rng.normal())
        step = 1 + every * index
        level = floor + (start - floor) * (1 + step / 100) ** -exponent
        values.append(level * math.exp(noise * wander))
    return values


def rates(points: int, warmup: int, total: int, peak: float = 3e-4) -> Values:
    """Linear warm-up, then cosine to a tenth."""
    made = []
    for index in range(points):
        if index < warmup:
            made.append(peak * (index + 1) / warmup)
        else:
            share = min(1.0, (index - warmup) / max(1, total - warmup))
            made.append(peak * (0.1 + 0.9 * 0.5 * (1 + math.cos(math.pi * share))))
    return made


def norms(seed: int, points: int) -> Values:
    rng = np.random.default_rng(seed + 7)
    return [float(v) for v in np.exp(rng.normal(0, 0.35, points))]


def times(seed: int, points: int, base: float = 0.5) -> Values:
    """Step times with a slow first step and long steps at evaluations."""
    rng = np.random.default_rng(seed + 13)
    made = [base * float(np.exp(rng.normal(0, 0.04))) for _ in range(points)]
    made[0] *= 20
    for index in range(50, points, 50):
        made[index] *= 6
    return made


def train(
    seed: int,
    points: int = 300,
    total_points: int = 400,
    change: Callable[[dict[str, Values]], None] | None = None,
    ended: str = "running",
    noise: float = 0.05,
    every: int = 10,
    memory: float = 0.5,
    evaluated: bool = True,
) -> Reading:
    """A language-model run as its log gives it; `change` breaks it."""
    values = {
        "loss": curve(seed, points, noise=noise, every=every, memory=memory),
        "grad_norm": norms(seed, points),
        "learning_rate": rates(points, 20, total_points),
        "step_time": times(seed, points),
    }
    evaluations = max(1, points // 25)
    values["eval_loss"] = [
        value * 1.05 for value in curve(seed + 1, evaluations, noise=0.004, every=25 * every)
    ]
    if change is not None:
        change(values)
    parts: list[Series] = [
        series(name, one, every=25 * every if name == "eval_loss" else every)
        for name, one in values.items()
        if evaluated or name != "eval_loss"
    ]
    return reading(*parts, total=total_points * every, ended=ended)
