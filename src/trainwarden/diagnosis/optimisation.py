"""Does it learn: values that are no numbers, a loss of zero, spikes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from trainwarden.diagnosis.base import View, whole
from trainwarden.diagnosis.course import Direction, current_run, unbroken
from trainwarden.diagnosis.rl import is_rl
from trainwarden.diagnosis.text import figure
from trainwarden.metrics.series import Series
from trainwarden.records.finding import Finding, Severity

LOSSES = ("loss", "eval_loss", "train_loss_total", "perplexity", "eval_perplexity")


def detect_nan(view: View) -> Iterator[Finding]:
    """A loss (train or evaluation) or gradient norm that is no number, since its first step."""
    for name in (*LOSSES, "grad_norm", "reward", "kl"):
        series = view.series(name)
        if series is None or not series.nonfinite or series.first_nonfinite is None:
            continue
        first = series.first_nonfinite
        recent = series.recent[-20:]
        bad = sum(not math.isfinite(point.value) for point in recent)
        now_bad = bool(recent) and not math.isfinite(recent[-1].value)
        if name == "grad_norm":
            severity = _bad_gradients(view, series)
            if severity is None:
                continue
        elif now_bad or bad >= 2:
            severity = Severity.CRITICAL
        else:
            severity = Severity.WARNING
        value = "nan" if math.isnan(first.value) else figure(first.value)
        now = "and is so now" if now_bad else f"and {bad} of the last {len(recent)} values are"
        yield Finding(
            kind="nan_loss",
            severity=severity,
            observations=view.cite(name, "first_nonfinite", "last"),
            since_step=whole(first.step),
            summary=f"{name} became {value} at step {figure(first.step)} {now}.",
            meaning="From the first such value on, weights updated with it can be lost for good.",
            alternatives=(
                "Learning rate too high for this model or batch",
                "A corrupt batch or label",
                "Overflow of a 16-bit format",
                "A failing GPU",
            ),
            first_action="Keep the last checkpoint from before that step; look at gradient norm, "
            "learning rate and data of the steps just before it.",
            evidence_type="observation",
            confidence=0.95,
        )


def _bad_gradients(view: View, series: Series) -> Severity | None:
    """Single overflows belong to dynamic loss scaling; a stretch up to now does not."""
    recent = [math.isfinite(point.value) for point in series.recent[-10:]]
    if len(recent) >= 3 and not any(recent[-3:]):
        loss = view.series("loss")
        if loss and loss.last and (loss.last.value == 0 or not math.isfinite(loss.last.value)):
            return Severity.CRITICAL
        return Severity.WARNING
    return Severity.INFO


def detect_zero_loss(view: View) -> Iterator[Finding]:
    """A loss of exactly 0, with no gradient where gradients are logged."""
    loss = view.series("loss")
    if loss is None or is_rl(view):
        return
    stretch = unbroken(loss, lambda value: value == 0)
    zeros = len(stretch)
    norms = view.series("grad_norm")
    if zeros < (3 if norms else 5):
        return
    fell = _fell_at_once(loss, zeros)
    least = TINY if fell else 0.0
    if norms and any(point.value > least for point in norms.recent[-min(zeros, 3) :]):
        return
    gradient = " with a gradient norm of next to 0 or nan" if norms else ""
    yield Finding(
        kind="zero_loss",
        severity=Severity.CRITICAL,
        observations=(*view.cite("loss", "last"), *view.cite("grad_norm", "last")),
        since_step=whole(stretch[0].step),
        summary=f"The loss is exactly 0 in the last {zeros} values{gradient}: nothing is learnt.",
        meaning="No target contributes to the loss, or overflow made every step void.",
        alternatives=(
            "All labels are masked (a template that does not fit the tokenizer)",
            "16-bit overflow that the trainer prints as 0",
            "The model was loaded broken",
        ),
        first_action="Count the unmasked labels of one batch and compute its loss in fp32.",
        evidence_type="observation",
        confidence=0.95,
    )


def _fell_at_once(loss: Series, zeros: int) -> bool:
    """Whether the value before the zeros was that of a model that still had to learn."""
    before = [point.value for point in loss.points()[:-zeros]]
    return bool(before) and before[-1] > 0.05


TINY = 1e-3
"""A gradient norm up to this beside a loss that fell to exactly 0 at once is that of no loss."""


def indicator_series(view: View) -> tuple[str, Direction, Series] | None:
    """The key indicator (else the loss) with its direction."""
    if view.indicator is not None:
        found = view.series(view.indicator.quantity)
        if found is not None:
            return view.indicator.quantity, view.indicator.direction, found
    found = view.series("loss")
    return ("loss", "decrease", found) if found is not None else None


def baseline_of(view: View, name: str) -> float | None:
    """The loss of a model that learnt nothing: ln(vocabulary) or ln(classes), if known."""
    for size in (view.facts.num_classes, view.facts.vocab_size):
        if size and size > 1 and name in ("loss", "eval_loss"):
            return math.log(size)
    return None


TRAILING = 60
"""Values before a spike that it must tower over."""


def detect_spike(view: View) -> Iterator[Finding]:
    """A loss far outside what came before: recovered (info) or still up (warning)."""
    series = view.series("loss")
    if series is None or is_rl(view):
        return
    points = [p for p in current_run(series.recent) if math.isfinite(p.value)]
    if len(points) < 40:
        return
    from trainwarden.metrics.changepoint import spikes

    found = spikes(points, threshold=8.0)
    if not found:
        return
    last = found[-1]
    open_end = last.recovered_at is None
    value, usual = last.value, last.expected
    # Single batches scatter: what is still up must also tower over what was logged shortly before.
    before = [p.value for p in points if p.step < last.step][-TRAILING:]
    towering = value > 2 * usual and (not before or value > 1.5 * max(before))
    if open_end and not towering:
        return
    yield Finding(
        kind="loss_spike",
        severity=Severity.WARNING if open_end else Severity.INFO,
        observations=view.cite("loss", "last", "max"),
        since_step=whole(last.step),
        summary=f"loss rose to {figure(value)} at step {figure(last.step)} where "
        f"{figure(usual)} was usual; "
        + (
            "it has not come back yet."
            if open_end
            else f"it was back by step {figure(last.recovered_at)}."
        ),
        meaning="Spikes that recover are common in large runs; one that stays is divergence.",
        alternatives=("A hard or corrupt batch", "Too high a learning rate"),
        first_action="Watch a fixed number of steps before doing anything.",
        evidence_type="observation",
        confidence=0.8,
    )
