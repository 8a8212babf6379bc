"""Reinforcement learning: signal, divergence from the reference, entropy, length, reward."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from statistics import median

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import course, even, moved, turned, unbroken
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Series
from trainwarden.records.finding import Finding, Role, Severity

MOST = 0.5
LASTING = 20
"""Values for which more than half of all answers are cut before that is more than a bad start."""
_MARKS = ("reward", "advantage", "ep_rew", "completions/", "clip_ratio", "episode_return")


def is_rl(view: View) -> bool:
    """Whether the run learns from rewards, by its config or by what it logs."""
    if view.facts.task is not None:
        return view.facts.task.lower() in {"rl", "grpo", "ppo", "rlhf", "dapo", "rloo"}
    return any(
        mark in name for reading in view.readings for name in reading.series for mark in _MARKS
    )


def _all(series: Series | None, test: float, least: int, above: bool = False) -> bool:
    """Whether the last values (at least `least`) all equal, or reach, `test`."""
    if series is None or series.count < least:
        return False
    tail = [point.value for point in series.recent[-max(least, min(series.count, 5)) :]]
    return all(value >= test if above else value == test for value in tail)


def detect_truncation(view: View) -> Iterator[Finding]:
    """Completions that all hit the length limit, or lengths that explode or collapse."""
    clipped = view.series_like("completions/clipped_ratio", "clipped_ratio", "length/clip_ratio")
    length = view.series_like(
        "completions/mean_length", "response_length/mean", "mean_length", "response_length"
    )
    reward = _reward(view)
    if clipped is not None and _all(clipped, 0.95, 2, above=True):
        dead = reward is None or _all(reward, 0.0, 2)
        yield Finding(
            kind="rl_length",
            severity=Severity.CRITICAL if dead else Severity.WARNING,
            observations=view.cite(clipped.name, "last") or view.cite_log(),
            since_step=_since(clipped, lambda value: value >= 0.95),
            summary=f"{clipped.name} is {figure(clipped.recent[-1].value)}: practically every "
            "completion is cut off at the length limit"
            + (" and no reward is given." if dead and reward else "."),
            meaning="Answers end before the part that is scored, so rewards say nothing.",
            alternatives=("The model never emits its end token", "A reward that always fails"),
            first_action="Read a few completions; raise the completion limit before anything else.",
            evidence_type="observation",
            confidence=0.9,
        )
        return
    mostly = _mostly_cut(view, clipped, reward)
    if mostly is not None:
        yield mostly
        return
    found = course(length, "increase")
    if length is None or found is None or len(found.points) < 20 or found.early <= 0:
        return
    ratio = found.recent / found.early
    width = len(found.recent_points)
    begun = [point.value for point in found.points[:width]]
    now = [point.value for point in found.recent_points]
    collapsed = ratio < 0.2 and max(now) < min(begun)
    exploded = ratio > 4 and min(now) > max(begun)
    if not (collapsed or exploded):
        return
    yield Finding(
        kind="rl_length",
        severity=Severity.WARNING,
        observations=view.cite(length.name, "last", "first") or view.cite_log(),
        since_step=whole(turned(found, found.early)),
        summary=f"{length.name} went from {figure(found.early)} to {figure(found.recent)} "
        "(medians of the first and last tenth).",
        meaning="A policy whose answers shrink or swell this far mostly games the reward's length.",
        alternatives=("A task that truly needs another length", "A broken end-of-text token"),
        first_action="Read completions from the beginning and from now side by side.",
        evidence_type="inference",
        confidence=0.65,
    )


def _mostly_cut(view: View, clipped: Series | None, reward: Series | None) -> Finding | None:
    """More than half of the completions cut for long, while the reward does not rise."""
    if clipped is None or reward is None:
        return None
    stretch, points = unbroken(clipped, lambda value: value >= MOST), even(reward)
    if min(len(stretch), len(points)) < LASTING or moved(points) == 1:
        return None
    return Finding(
        kind="rl_length",
        severity=Severity.WARNING,
        observations=(*view.cite(clipped.name, "last"), *view.cite(reward.name, "last"))
        or view.cite_log(),
        since_step=whole(stretch[0].step),
        summary=f"{clipped.name} is {figure(stretch[-1].value)} and has long been {MOST:g} or "
        f"more, while {reward.name} does not rise.",
        meaning="Most answers end at the length limit, mostly before the part that is scored, so "
        "that few groups have anything to tell apart.",
        alternatives=(
            "The task is too hard, and answers ramble",
            "An end token that is not taken for one",
        ),
        first_action="Read a few completions; raise the completion limit before anything else.",
        evidence_type="inference",
        confidence=0.65,
    )


def _since(series: Series, holds: Callable[[float], bool]) -> int | None:
    """The step since which all values are so."""
    stretch = unbroken(series, holds)
    return whole(stretch[0].step) if stretch else None


def _reward(view: View) -> Series | None:
    return view.series("reward") or view.series_like(
        "reward_mean", "rewards/mean", "mean_reward", "score/mean"
    )


def detect_zero_signal(view: View) -> Iterator[Finding]:
    """No gradient although rewards are given, or rewards without any spread."""
    if not is_rl(view):
        return
    norms = view.series("grad_norm")
    std = view.series_like("reward_std", "rewards/std")
    zero_std = view.series_like("frac_reward_zero_std")
    no_spread = _all(std, 0.0, 3) or _all(zero_std, 0.999, 3, above=True)
    no_gradient = _all(norms, 0.0, 2)
    begun = _mostly_dead(norms, std, zero_std)
    no_gradient, no_spread = no_gradient or begun, no_spread or begun
    if norms is not None and not no_gradient:
        return
    if not (no_gradient or no_spread):
        return
    clipped = view.series_like("clipped_ratio", "length/clip_ratio")
    truncated = _all(clipped, 0.95, 2, above=True)
    shown = next((s for s in (norms if no_gradient else None, std, zero_std) if s), None)
    if shown is None:
        return
    cause = (
        "every group's rewards are equal"
        if no_spread
        else "although rewards differ"
        if std is not None and not _all(std, 0.0, 1)
        else "and the rewards show no use"
    )
    what = "The gradient norm is exactly 0" if no_gradient else "Rewards have no spread"
    yield Finding(
        kind="rl_zero_signal",
        severity=Severity.WARNING if begun else Severity.CRITICAL,
        role=Role.CASCADE if truncated else Role.INITIATING,
        observations=tuple(
            dict.fromkeys(
                (*view.cite(shown.name, "last"), *(view.cite(std.name, "last") if std else ()))
            )
        )
        or view.cite_log(),
        since_step=_since(
            shown,
            (lambda value: value >= 0.999) if shown is zero_std else (lambda value: value == 0),
        ),
        summary=f"{what} in the last values, {cause}: the policy does not change.",
        meaning="Without differences within a group there is no advantage, hence no gradient.",
        alternatives=(
            "All answers right or all wrong: too easy or too hard",
            "Gradients lost by the optimizer or its wrapper",
            "A reward function that fails quietly",
        ),
        first_action="Read one group's completions with their rewards; print the gradient norm "
        "before the optimizer.",
        evidence_type="observation",
        confidence=0.9,
    )


def _mostly_dead(norms: Series | None, std: Series | None, zero_std: Series | None) -> bool:
    """In a log too short for the above: neither spread nor gradient in most steps and the last."""
    spread = zero_std if std is None else std
    if norms is None or spread is None or not 3 < norms.count < 10:
        return False
    still = unbroken(norms, lambda value: value == 0)
    level = unbroken(spread, lambda value: value == (0 if spread is std else 1))
    return min(len(still), len(level)) >= max(3, 0.6 * norms.count)


def detect_kl(view: View) -> Iterator[Finding]:
    """A divergence from the reference policy that runs away."""
    if not is_rl(view):
        return
    series = view.series("kl") or view.series_like("ppo_kl", "approx_kl", "/kl")
    found = course(series, "decrease")
    if series is None or found is None:
        return
    if len(found.points) < 20 and not _runs_away([point.value for point in found.points]):
        return
    half = [point.value for point in found.points[: len(found.points) // 2]]
    middle = median(half)
    high = found.recent > 1.0 and found.recent > 10 * max(abs(middle), 1e-3)
    if not high or min(point.value for point in found.recent_points) <= max(half):
        return
    yield Finding(
        kind="rl_kl_explosion",
        severity=Severity.CRITICAL,
        observations=view.cite(series.name, "last", "first") or view.cite_log(),
        since_step=whole(turned(found, middle)),
        summary=f"{series.name} stands at {figure(found.recent)} where its first half had "
        f"{figure(middle)} (medians).",
        meaning="The policy has left the reference far behind; its language usually breaks.",
        alternatives=("A learning rate too high", "A reference or sampler out of step"),
        first_action="Read completions; go back to the checkpoint before the rise.",
        evidence_type="inference",
        confidence=0.65,
    )


def _runs_away(values: list[float]) -> bool:
    """Of few values: each of the last four far above the one before, and all that went before."""
    last = values[-4:]
    rising = all(b > 1.2 * a for a, b in pairwise(last))
    return len(values) >= 8 and rising and last[1] > 10 * max(median(values[:-4]), 1e-3)


def detect_entropy(view: View) -> Iterator[Finding]:
    """Entropy near zero while the reward does not rise."""
    if not is_rl(view):
        return
    series = view.series("entropy") or view.series_like("entropy")
    found = course(series, "increase")
    if series is None or found is None or len(found.points) < 20 or found.early <= 0:
        return
    if found.recent > 0.1 * found.early or found.recent > 0.1:
        return
    reward = _reward(view)
    rewarded = reward is not None and moved(even(reward)) == 1
    yield Finding(
        kind="rl_entropy_collapse",
        severity=Severity.INFO if rewarded else Severity.WARNING,
        observations=view.cite(series.name, "last", "first") or view.cite_log(),
        since_step=whole(series.last.step if series.last else None),
        summary=f"{series.name} fell from {figure(found.early)} to {figure(found.recent)} "
        f"(medians){', while the reward rises' if rewarded else ''}.",
        meaning="A policy without entropy no longer explores.",
        alternatives=("The task is solved", "Sampling temperature was lowered"),
        first_action="Look at the variety of completions of one prompt.",
        evidence_type="inference",
        confidence=0.6,
    )


_RATIOS = ("importance_sampling_ratio/mean", "rollout_is_mean", "rollout_corr/rollout_is_mean")
_GAPS = (
    "logprob_abs_diff", "logprob_diff_mean", "logp_diff", "logp_difference/mean", "probs_diff_mean",
    "rollout_corr/kl", "rollout_corr/k3_kl", "mismatch_kl", "rollout_kl", "mismatch/kl",
)  # fmt: skip


def detect_mismatch(view: View) -> Iterator[Finding]:
    """Training and sampling that no longer compute the same policy."""
    ratio, gap = view.series_like(*_RATIOS), view.series_like(*_GAPS)
    for series in (ratio, gap):
        if series is None or series.count < 5:
            continue
        recent = median(point.value for point in series.recent[-5:])

        def apart(value: float, of_ratio: bool = series is ratio) -> bool:
            return not 0.5 <= value <= 2 if of_ratio else abs(value) > 0.1

        if not apart(recent):
            continue
        usual = "0.5 to 2" if series is ratio else "up to 0.1"
        yield Finding(
            kind="rl_mismatch",
            severity=Severity.WARNING,
            observations=view.cite(series.name, "last", "first") or view.cite_log(),
            since_step=_since(series, apart) or whole(series.recent[-5:][0].step),
            summary=f"{series.name} stands at {figure(recent)} (median of the last five values) "
            f"where {usual} is usual by rule of thumb.",
            meaning="Samples come from another policy than the one that is updated, so that "
            "updates are biased.",
            alternatives=(
                "The sampler holds stale weights",
                "The two engines differ in numerics (precision, kernels, sampling settings)",
                "Too many updates on the same samples",
            ),
            first_action="Compare the log-probabilities that both engines give to one fixed "
            "sample right after the weights were synchronised.",
            evidence_type="inference",
            confidence=0.65,
        )
        return


def _fell_since(goal: Series) -> int | None:
    """The step at which what is meant began to fall."""
    found = course(goal, "increase")
    return whole(turned(found, found.best)) if found is not None else None


def detect_reward_hacking(view: View) -> Iterator[Finding]:
    """The reward that is optimised rises while what it stands for falls."""
    reward = view.series_like("critic/rewards/mean") or view.series("reward")
    goal = view.series_like("critic/score/mean", "score/mean", "eval_reward", "eval_score")
    goal = goal or view.series_like("val-core", "eval_accuracy", "accuracy")
    if reward is None or goal is None or reward is goal or "reward" in goal.name:
        return
    if min(reward.count, goal.count) < 16:
        return
    if moved(even(reward), 0.005) != 1 or moved(even(goal), 0.005) != -1:
        return
    yield Finding(
        kind="rl_reward_hacking",
        severity=Severity.CRITICAL,
        observations=tuple(
            dict.fromkeys((*view.cite(reward.name, "last"), *view.cite(goal.name, "last")))
        )
        or view.cite_log(),
        since_step=_fell_since(goal),
        summary=f"{reward.name} rises ({figure(reward.recent[0].value)} to "
        f"{figure(reward.recent[-1].value)}) while {goal.name} falls "
        f"({figure(goal.recent[0].value)} to {figure(goal.recent[-1].value)}).",
        meaning="The policy improves what is rewarded, not what is meant.",
        alternatives=("A penalty (length, KL) makes up the reward's rise", "Held-out data differ"),
        first_action="Read the highest-rewarded completions; split the reward into its parts.",
        evidence_type="inference",
        confidence=0.65,
    )
