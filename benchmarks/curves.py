"""Curves of sound runs and of runs with a fault put in, by seed: what `false_alarms.py` judges.

A sound curve is a level that falls as training has it, times the exponential of noise: first-order
autoregressive, with normal or heavy-tailed (Student's t, 3 degrees of freedom) innovations. The
shapes are those that schedules give. A fault of a size is put into a sound curve.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.random import Generator

Values = dict[str, list[float]]
EVERY = 10
"""Steps from one logged value to the next."""
PER_EVALUATION = 15
"""Logged values from one evaluation to the next."""
CLASSES = 256


def noise(rng: Generator, points: int, scale: float, memory: float, heavy: bool) -> list[float]:
    """First-order autoregressive noise with a standard deviation of about `scale`."""
    drawn = rng.standard_t(3, points) / math.sqrt(3) if heavy else rng.normal(size=points)
    state, made = 0.0, []
    for one in drawn:
        state = memory * state + math.sqrt(1 - memory**2) * float(one)
        made.append(scale * state)
    return made


def warmup(share: float, index: int, points: int) -> float:
    """The factor of the learning rate in a linear warm-up over a share of the run."""
    return min(1.0, (index + 1) / max(1, int(share * points)))


def _power(i: int, _n: int) -> float:
    return 1.5 + 4.0 * (1 + i / 10) ** -0.45


def _cosine(i: int, n: int) -> float:
    return 1.5 + 2.5 * (1 + i / 10) ** -0.3 + 0.5 * 0.5 * (1 + math.cos(math.pi * i / n))


def _milestones(i: int, n: int) -> float:
    return (2.2 + 3.3 * math.exp(-i / 15)) * (0.6 if i > 0.7 * n else 0.75 if i > 0.4 * n else 1)


def _restarts(i: int, n: int) -> float:
    """Warm restarts: up at each, at most by a quarter of what had been gained, then on."""
    within = (i % max(1, n // 4)) / max(1, n // 4)
    up = 0.35 * math.exp(-6 * within) if i >= n // 4 else 0.0
    return 1.8 + 3.7 * math.exp(-i / 25) + up


def _fine_tuning(i: int, _n: int) -> float:
    return 1.1 + 0.25 * math.exp(-i / 40)


def _saturating(i: int, _n: int) -> float:
    return 0.3 + 5.2 * math.exp(-i / 20)


def _long_warmup(i: int, n: int) -> float:
    late = max(0, i - n // 10)
    return 1.5 + 4.0 * (1 + late / 12) ** -0.5


SHAPES: Mapping[str, Callable[[int, int], float]] = {
    "power law": _power,
    "cosine": _cosine,
    "step decay": _milestones,
    "warm restarts": _restarts,
    "fine-tuning": _fine_tuning,
    "converged": _saturating,
    "long warm-up": _long_warmup,
}


def rates(shape: str, points: int) -> list[float]:
    """The learning rate that goes with a shape."""
    made = []
    for i in range(points):
        at = i / points
        rate = {
            "step decay": 0.01 if at > 0.7 else 0.1 if at > 0.4 else 1.0,
            "warm restarts": 0.5 * (1 + math.cos(math.pi * ((4 * at) % 1.0))) + 0.01,
            "fine-tuning": 1 - 0.95 * at,
        }.get(shape, 0.1 + 0.45 * (1 + math.cos(math.pi * at)))
        made.append(3e-4 * rate * warmup(0.1 if shape == "long warm-up" else 0.03, i, points))
    return made


def sound(seed: int, shape: str, points: int = 240) -> Values:
    """A sound run: loss, evaluations, gradient norm, learning rate, step time, loss scale."""
    rng = np.random.default_rng((seed, sorted(SHAPES).index(shape)))
    heavy = bool(rng.random() < 0.3)
    scale = float(rng.choice([0.01, 0.03, 0.08]))
    memory = float(rng.choice([0.0, 0.5, 0.9]))
    level = [SHAPES[shape](i, points) for i in range(points)]
    wander = noise(rng, points, scale, memory, heavy)
    times = np.exp(noise(rng, points, 0.05, 0.3, heavy)) * 0.4
    times[0] *= float(rng.uniform(3, 40))  # compiles
    times[PER_EVALUATION::PER_EVALUATION] *= float(rng.uniform(1, 8))  # evaluates, saves
    scaler = 65536.0 / 2 ** int(rng.integers(0, 5))
    evaluations = level[PER_EVALUATION - 1 :: PER_EVALUATION]
    return {
        "loss": [v * math.exp(w) for v, w in zip(level, wander, strict=True)],
        "eval_loss": [
            1.04 * v * math.exp(w)
            for v, w in zip(
                evaluations,
                noise(rng, len(evaluations), 0.25 * scale, 0.0, False),
                strict=True,
            )
        ],
        "grad_norm": [float(v) for v in np.exp(noise(rng, points, 0.5, 0.3, True))],
        "learning_rate": rates(shape, points),
        "step_time": [float(v) for v in times],
        "loss_scale": [max(scaler, 65536.0 / 2**i) for i in range(points)],
    }


def sound_rl(seed: int, points: int = 160) -> Values:
    """A sound run that learns from rewards, with a loss near 0 as GRPO has it."""
    rng = np.random.default_rng((seed, 99))
    memory, scale = float(rng.choice([0.0, 0.5])), float(rng.choice([0.02, 0.06, 0.12]))
    gain = float(rng.uniform(0.1, 0.5))
    reward = noise(rng, points, scale, memory, False)
    length = noise(rng, points, 0.08, 0.5, False)
    return {
        "loss": [1e-4 * i / points + float(rng.normal(0, 0.01)) for i in range(points)],
        "reward": [0.3 + gain * (1 - math.exp(-i / 60)) + reward[i] for i in range(points)],
        "reward_std": [float(v) for v in rng.uniform(0.05, 0.3, points)],
        "grad_norm": [float(v) for v in np.exp(rng.normal(-1, 0.5, points))],
        "kl": [0.001 + 0.0004 * i + abs(float(rng.normal(0, 0.003))) for i in range(points)],
        "entropy": [
            0.8 * math.exp(-i / 300) * math.exp(float(rng.normal(0, 0.05))) for i in range(points)
        ],
        "completions/mean_length": [300 * (1 + 0.5 * i / points) * math.exp(length[i])
                                    for i in range(points)],
        "completions/clipped_ratio": [float(v) for v in rng.uniform(0.0, 0.35, points)],
    }  # fmt: skip


Fault = Callable[[Values, int, float, Generator], None]
"""Puts a fault of a size into a run, from the value at that index on."""


def _divergence(v: Values, at: int, size: float, _rng: Generator) -> None:
    """The loss goes up by `size` times what had been gained, over some 20 values."""
    gained = v["loss"][0] - float(np.median(v["loss"][at - 10 : at]))
    for i in range(at, len(v["loss"])):
        up = 1 - math.exp(-(i - at) / 8)
        v["loss"][i] += size * gained * up
        v["grad_norm"][i] *= 1 + 4 * up


def _spike(v: Values, _at: int, size: float, _rng: Generator) -> None:
    """The last value is `size` times the usual one."""
    v["loss"][-1] *= size


def _nan(v: Values, _at: int, size: float, _rng: Generator) -> None:
    """The last `size` values of the loss are no numbers."""
    v["loss"][-int(size) :] = [math.nan] * int(size)


def _never_learns(v: Values, _at: int, size: float, rng: Generator) -> None:
    """The loss stays at ln(classes) with a relative scatter of `size`."""
    n = len(v["loss"])
    v["loss"] = [math.log(CLASSES) * math.exp(x) for x in noise(rng, n, size, 0.3, False)]
    v.pop("eval_loss")


def _stops(v: Values, _at: int, size: float, rng: Generator) -> None:
    """Learning ends after a share of `size` of the run, while it was still fast."""
    n = len(v["loss"])
    stop, scatter = int(size * n), noise(rng, n, 0.02, 0.3, False)
    for i in range(n):
        level = 1.5 + 4.0 * (1 + min(i, stop) / 60) ** -0.9
        v["loss"][i] = level * math.exp(scatter[i])
    v.pop("eval_loss")


def _slower(v: Values, at: int, size: float, _rng: Generator) -> None:
    """Steps take `size` times as long from there on."""
    v["step_time"][at:] = [size * x for x in v["step_time"][at:]]


def _overfitting(v: Values, at: int, size: float, _rng: Generator) -> None:
    """The evaluation loss rises by a share of `size` up to the end, the training loss does not."""
    first, n = at // PER_EVALUATION, len(v["eval_loss"])
    for i in range(first, n):
        v["eval_loss"][i] *= 1 + size * (i - first) / max(1, n - 1 - first)


def _loss_scale(v: Values, at: int, size: float, _rng: Generator) -> None:
    """The loss scale is halved from value to value down to `size`."""
    v["loss_scale"][at:] = [
        max(size, 65536.0 / 2 ** (i + 1)) for i in range(len(v["loss_scale"]) - at)
    ]


def _no_rate(v: Values, _at: int, size: float, _rng: Generator) -> None:
    """The learning rate is 0 in the last `size` values, long before the planned end."""
    n = int(size)
    v["learning_rate"][-n:] = [0.0] * n


def _rate_off(v: Values, at: int, size: float, _rng: Generator) -> None:
    """The learning rate is `size` times what the declared schedule gives, from there on."""
    v["learning_rate"][at:] = [size * x for x in v["learning_rate"][at:]]


def _kl(v: Values, at: int, size: float, _rng: Generator) -> None:
    """KL grows up to `size`."""
    n = len(v["kl"]) - at
    v["kl"][at:] = [
        max(x, size * math.exp(-8 * (1 - (i + 1) / n)))
        for i, x in enumerate(v["kl"][at:])
    ]  # fmt: skip


def _entropy(v: Values, at: int, size: float, rng: Generator) -> None:
    """Entropy falls to a share of `size`, and the reward stays where it began."""
    v["entropy"][at:] = [
        max(size * 0.8, 0.8 * math.exp(-i / 5)) for i in range(len(v["entropy"]) - at)
    ]
    v["reward"] = [0.3 + float(rng.normal(0, 0.05)) for _ in v["reward"]]


def _no_signal(v: Values, _at: int, size: float, _rng: Generator) -> None:
    """The rewards of each group are alike, with no gradient, in the last `size` values."""
    n = int(size)
    v["reward_std"][-n:] = v["grad_norm"][-n:] = [0.0] * n


def _cut(v: Values, _at: int, size: float, rng: Generator) -> None:
    """A share of `size` of the answers is cut, and the reward stays where it began."""
    v["completions/clipped_ratio"] = [
        min(1.0, max(0.0, size + float(rng.normal(0, 0.02)))) for _ in v["reward"]
    ]
    v["reward"] = [0.2 + float(rng.normal(0, 0.04)) for _ in v["reward"]]


def _hacking(v: Values, _at: int, size: float, rng: Generator) -> None:
    """What is meant falls by `size` over the run, while the reward rises."""
    n = len(v["reward"])
    v["reward"] = [0.3 + 0.4 * i / n + float(rng.normal(0, 0.04)) for i in range(n)]
    v["critic/score/mean"] = [0.6 - size * i / n + float(rng.normal(0, 0.03)) for i in range(n)]


FAULTS: Mapping[str, tuple[str, Fault, Sequence[float], bool]] = {
    "divergence": ("divergence", _divergence, (0.3, 0.6, 1.0), False),
    "spike still up": ("loss_spike", _spike, (2, 4, 8), False),
    "nan": ("nan_loss", _nan, (1, 3), False),
    "never learns": ("plateau", _never_learns, (0.005, 0.02), False),
    "stops learning": ("plateau", _stops, (0.2, 0.4, 0.6), False),
    "slower steps": ("step_time_regression", _slower, (1.5, 2, 4), False),
    "overfitting": ("overfitting", _overfitting, (0.05, 0.2, 0.6), False),
    "loss scale at its floor": ("loss_scale", _loss_scale, (1.0, 0.25), False),
    "learning rate of 0": ("lr_schedule", _no_rate, (12, 40), False),
    "learning rate off its schedule": ("lr_schedule", _rate_off, (0.1, 3, 10), False),
    "KL explosion": ("rl_kl_explosion", _kl, (3, 30), True),
    "entropy collapse": ("rl_entropy_collapse", _entropy, (0.1, 0.01), True),
    "no signal": ("rl_zero_signal", _no_signal, (3, 20), True),
    "answers cut": ("rl_length", _cut, (0.7, 1.0), True),
    "reward hacking": ("rl_reward_hacking", _hacking, (0.1, 0.4), True),
}
"""Name: the kind that names it rightly, what puts it in, its sizes, whether it is one of RL."""
