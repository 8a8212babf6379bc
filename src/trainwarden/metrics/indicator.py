"""The key indicator: the one quantity whose course tells whether the run learns what it should."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from trainwarden.metrics.series import Series
from trainwarden.metrics.trend import LEAST
from trainwarden.records.facts import TrainingFacts

Direction = Literal["decrease", "increase"]

_RISING = re.compile(
    r"(?:^|[_/.])(?:acc|accuracy|acc_norm|f1|bleu|rouge\w*|meteor|reward\w*|score\w*|return|map\d*|"
    r"map50-95|precision|recall|auc|auroc|iou|miou|dice|r2|exact_match|em|win_rate|success\w*|"
    r"pass@?\d*|spearman\w*|pearson\w*|matthews\w*|psnr|ssim|margins?|top_?\d|elo)(?:$|[_/.])"
)
_REWARDS = (
    r"reward$",
    r"(?:^|[_/.])(?:ep_rew_mean|episode_reward_mean|episode_return_mean)$",
    r"(?:^|[_/.])(?:rewards?/mean|reward_mean|mean_reward)$",
    r"(?:^|[_/.])scores?(?:/mean)?$",
    r"(?:^|[_/.])(?:reward|return)",
)
_RL_TASKS = frozenset({"rl", "rlhf", "grpo", "ppo", "rloo", "reinforce", "dapo", "gspo", "sac"})
_RL_SIGNS = re.compile(
    r"(?:^|[_/.])(?:kl|entropy|episode\w*|ep_len_mean|clip_fraction|advantages?)"
)
_CUE = re.compile(
    r"\b(?:watch|judge|indicator|key|primary|main|track|monitor|care|matters?|focus|target|"
    r"optimi[sz]e|maximi[sz]e|minimi[sz]e|measure[ds]?|success|goal|should|go by)\b"
)
_NOT = re.compile(
    r"\b(?:ignore|not|don'?t|never|except|instead of|rather than|unlike)\b[^.;,]{0,24}$"
)
_UP = re.compile(r"\b(?:up|rise|rises|rising|increas\w+|higher|grow\w*|maximi[sz]\w*|climb\w*)\b")
_DOWN = re.compile(
    r"\b(?:down|fall|falls|falling|decreas\w+|lower|drop\w*|minimi[sz]\w*|shrink\w*)\b"
)
_KNOWN = (
    "eval_loss",
    "eval_accuracy",
    "eval_perplexity",
    "accuracy",
    "perplexity",
    "reward",
    "loss",
)
"""What guidance may name before anything was logged."""


@dataclass(frozen=True)
class Indicator:
    """The choice, and what the quantity would be if the model were not learning."""

    quantity: str
    direction: Direction
    why: str
    baseline: float | None
    baseline_source: str
    rule_of_thumb: bool = False
    """The baseline comes from nothing of the run's own."""
    chance: float | None = None
    """What uniform guessing would give, where it can be told."""
    chance_source: str = ""


def direction_of(quantity: str) -> Direction:
    """Which way is better, by the quantity's name."""
    name = quantity.lower()
    if "loss" in name or "error" in name:
        return "decrease"
    return "increase" if _RISING.search(name) else "decrease"


_OTHERWISE = re.compile(
    r"scale|coef|weight|std|_min$|_max$|/min$|/max$|threshold|count|num_|time|lr$"
)


def is_measure_of_learning(quantity: str) -> bool:
    """Whether a metric of this name tells learning, as losses, errors, scores and rewards do.

    A rate, a pace, a counter or a gradient's norm moves by itself and tells nothing of it.
    """
    name = quantity.lower()
    told = re.search(
        r"loss|error|perplexity|(?:^|[_/.])(?:ppl|nll|bpb|bpc|cer|wer|mse|mae|rmse|fid)\b", name
    )
    return bool(told or _RISING.search(name)) and not _OTHERWISE.search(name)


def is_reinforcement(names: Mapping[str, Series], task: str | None) -> bool:
    """Whether the run learns from rewards: its loss then says nothing of progress."""
    if task and task.lower() in _RL_TASKS:
        return True
    if task:
        return False
    return reward_of(names) is not None and any(_RL_SIGNS.search(name) for name in names)


def reward_of(names: Mapping[str, Series]) -> str | None:
    """The name of the logged reward or score, the plainest first."""
    for pattern in _REWARDS:
        fitting = [n for n in names if re.search(pattern, n) and not n.startswith("eval_")]
        fitting = [n for n in fitting if not re.search(r"std|_min|_max|/min|/max|loss|coef", n)]
        if fitting:
            return min(fitting, key=len)
    return None


def named_in(guidance: str, names: Mapping[str, Series]) -> tuple[str, Direction] | None:
    """The metric that the user's words make the one to watch, with its direction.

    A metric counts where a sentence names it beside a word such as watch, key, should, judge.
    """
    for sentence in re.split(r"(?<=[.;!?])\s|\n", guidance.lower()):
        if not _CUE.search(sentence):
            continue
        spaced = re.sub(r"[_/\-\s]+", " ", sentence)
        for name in sorted({*names, *_KNOWN}, key=len, reverse=True):
            words = re.escape(re.sub(r"[_/\-\s]+", " ", name.lower()))
            words = words.replace(r"eval\ ", r"(?:eval|evaluation|validation|val|test)\ ")
            found = re.search(rf"(?<![a-z0-9]){words}(?![a-z0-9])", spaced)
            if not found or _NOT.search(spaced[: found.start()]):
                continue
            direction = direction_of(name)
            if _UP.search(spaced) and not _DOWN.search(spaced):
                direction = "increase"
            elif _DOWN.search(spaced) and not _UP.search(spaced):
                direction = "decrease"
            return name, direction
    return None


def key_indicator(
    series: Mapping[str, Series], facts: TrainingFacts, guidance: str | None = None
) -> Indicator:
    """Choose among the logged `series` (none yet before the first reading).

    In this order: what the user said, the reward of reinforcement learning, the config's
    `metric_for_best_model` once logged often enough to be tested, the training loss, the
    evaluation loss, any loss, the reward or accuracy; where nothing is logged, `loss`.
    """
    remark = ""
    said = named_in(guidance or "", series)
    if said:
        name, direction = said
        if name in series or not series:
            return _with_baseline(name, direction, "the user's guidance names it", series, facts)
        remark = f"; the user's guidance names {name}, which is not logged"
    if is_reinforcement(series, facts.task):
        reward = reward_of(series)
        if reward or not series:
            why = "the run learns from rewards, and the loss of such a run says nothing of progress"
            return _with_baseline(reward or "reward", "increase", why + remark, series, facts)
    best = (facts.metric_for_best_model or "").lower()
    if best and best not in {"loss", "eval_loss"}:
        for name in (best, f"eval_{best}"):
            logged = series.get(name)
            if logged and logged.count >= LEAST:
                direction = direction_of(name)
                if facts.greater_is_better is not None:
                    direction = "increase" if facts.greater_is_better else "decrease"
                why = "the config chooses the best model by it (metric_for_best_model)" + remark
                return _with_baseline(name, direction, why, series, facts)
            if logged:
                remark += f"; {name} chooses the best model but has only {logged.count} points"
    if "loss" in series or not series:
        why = "the training loss is what the optimizer lowers, and it is logged most often"
        return _with_baseline("loss", "decrease", why + remark, series, facts)
    others = [n for n in series if re.search(r"loss(?:$|[^_a-z])", n) and "scale" not in n]
    for name in ("eval_loss", *sorted(others, key=lambda n: (-series[n].count, len(n)))):
        if name in series:
            why = f"no overall training loss is logged; {name} comes closest"
            return _with_baseline(name, "decrease", why + remark, series, facts)
    reward = reward_of(series)
    rising = [n for n in series if direction_of(n) == "increase"]
    for name in (reward or "reward", "accuracy", "eval_accuracy", *sorted(rising)):
        if name in series:
            why = f"no loss is logged; {name} tells progress"
            return _with_baseline(name, "increase", why + remark, series, facts)
    why = "no metric of learning is logged yet; a loss is what to look for"
    return _with_baseline("loss", "decrease", why + remark, series, facts)


def chance_level(quantity: str, facts: TrainingFacts) -> tuple[float | None, str]:
    """What uniform guessing gives for a cross-entropy, perplexity or accuracy, with its source."""
    if facts.task and facts.task.lower() in {*_RL_TASKS, "regression", "diffusion", "dpo"}:
        return None, ""
    size, name = facts.num_classes, "num_classes"
    if facts.vocab_size and (facts.task == "lm" or not size):
        size, name = facts.vocab_size, "vocab_size"
    if not size or size < 2:
        return None, ""
    base = quantity.removeprefix("eval_")
    if base in {"loss", "ce_loss", "nll_loss", "cross_entropy", "lm_loss"}:
        return math.log(size), f"ln({name}={size}), the cross-entropy of a uniform guess"
    if base == "perplexity":
        return float(size), f"{name}={size}, the perplexity of a uniform guess"
    if base == "accuracy":
        return 1 / size, f"1/{name} (1/{size}), the accuracy of a uniform guess"
    return None, ""


def first_level(series: Series | None, most: int = 5) -> tuple[float, str] | None:
    """Median of the first logged values, and where they stand."""
    points = series.finite()[:most] if series else []
    if not points:
        return None
    values = sorted(point.value for point in points)
    middle = len(values) // 2
    level = values[middle] if len(values) % 2 else (values[middle - 1] + values[middle]) / 2
    return level, f"median of the first {len(points)} logged values, to step {points[-1].step:g}"


def _with_baseline(
    quantity: str,
    direction: Direction,
    why: str,
    series: Mapping[str, Series],
    facts: TrainingFacts,
) -> Indicator:
    chance, chance_source = chance_level(quantity, facts)
    # A pretrained model begins well beyond chance, and is held against its own start.
    begun = first_level(series.get(quantity))
    baseline, source, thumb = chance, chance_source, False
    logged = series[quantity].first if begun else None
    beyond = chance is None or logged is None
    if chance is not None and logged is not None:
        if direction == "decrease":
            beyond = logged.value < 0.7 * chance
        else:
            beyond = logged.value > chance + 0.3 * (1 - chance)
    if begun and beyond:
        baseline, source = begun
    elif chance is None:
        source = "nothing logged and no vocabulary or class count known: the first logged value"
        thumb = True
    return Indicator(quantity, direction, why, baseline, source, thumb, chance, chance_source)
