"""Step 1 by rules: intervals that can be defended, wide from the config, then from history."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from trainwarden.analysts.rules.history import History, planned_steps, spacing
from trainwarden.evidence.config import TrainingFacts
from trainwarden.metrics.forecast import Interval, forecast, printed_precision
from trainwarden.metrics.indicator import Indicator, key_indicator
from trainwarden.metrics.schedule import learning_rate_at
from trainwarden.metrics.series import Series
from trainwarden.procedure.roles import Briefing
from trainwarden.records.hostile import clean
from trainwarden.records.prediction import Calibration, Prediction

LEVEL = 0.9
METRICS = (
    "loss",
    "eval_loss",
    "grad_norm",
    "step_time",
    "tokens_per_second",
    "samples_per_second",
    "steps_per_second",
    "reward",
    "accuracy",
    "eval_accuracy",
    "perplexity",
    "eval_perplexity",
    "kl",
    "entropy",
    "mfu",
    "gpu_memory",
    "memory",
    "loss_scale",
)
"""What is predicted where the run logs it, the key indicator before all."""
MOST = 14
ABOVE_CHANCE = 1.3
"""How far above a uniform guess an untrained model's loss may be: a rule of thumb."""


@dataclass(frozen=True)
class Schedule:
    """A learning-rate schedule with its numbers."""

    name: str
    peak: float
    total: float | None
    warmup: float
    minimum: float

    def at(self, step: float) -> float:
        """The rate at a step; NaN where the schedule cannot tell."""
        value = learning_rate_at(step, self.peak, self.total, self.warmup, self.name, self.minimum)
        return math.nan if value is None else value

    def __str__(self) -> str:
        return (
            f"{self.name} schedule, peak {self.peak:g}, warm-up {self.warmup:g}, "
            f"total {self.total or 0:g}, minimum {self.minimum:g},"
        )


def predict(briefing: Briefing) -> tuple[Prediction, ...]:
    """Predict progress, learning and resources before anything of this session was read."""
    history = History.of(briefing)
    made = _from_config(briefing) if history is None else _from_history(briefing, history)
    return tuple(made)


# First session ---------------------------------------------------------------------------------


def _source(facts: TrainingFacts, name: str) -> str:
    return clean(f"config: {facts.keys.get(name, name)}", 120)


def _from_config(briefing: Briefing) -> Iterator[Prediction]:
    facts = briefing.facts
    total = planned_steps(facts)
    basis = "no planned length is known: a run that is watched has made a step"
    if total is not None:
        which = "max_steps" if facts.max_steps else "epochs"
        basis = f"planned length {total} steps ({_source(facts, which)})"
    yield Prediction(quantity="step", low=0 if total else 1, high=total, level=LEVEL, basis=basis)
    indicator = key_indicator({}, facts, _guidance(briefing))
    yield _first_learning(indicator)
    if facts.learning_rate and facts.learning_rate > 0:
        yield _first_learning_rate(facts)
    ended = ("running", "unknown", "finished")
    basis = "a run that is to be watched is taken to go on, or to have reached its end"
    yield Prediction(quantity="log.ended", one_of=ended, level=LEVEL, basis=basis)
    basis = "a run that is to be watched is taken to have a process: nothing of it was seen yet"
    yield Prediction(quantity="process.alive", one_of=(True,), level=0.8, basis=basis)
    yield _power()


def _guidance(briefing: Briefing) -> str | None:
    said = briefing.state.monitor.user_guidance if briefing.state else []
    return briefing.header.job.guidance or (said[-1] if said else None)


def _power() -> Prediction:
    return Prediction(
        quantity="gpu.power_share",
        low=0.0,
        high=1.05,
        level=0.95,
        basis="rated power: between idle and the enforced limit, which is held to within some "
        "per cent; what share this run draws is not known beforehand",
    )


def _first_learning(indicator: Indicator) -> Prediction:
    name = indicator.quantity
    if indicator.chance is not None and indicator.direction == "decrease":
        return Prediction(
            quantity=name,
            low=0.0,
            high=ABOVE_CHANCE * indicator.chance,
            level=LEVEL,
            basis=f"from 0 to {ABOVE_CHANCE:g} times {indicator.chance_source}; the margin for an "
            "untrained model is a rule of thumb",
        )
    if name.endswith("accuracy"):
        basis = "a share lies between 0 and 1"
        return Prediction(quantity=name, low=0.0, high=1.0, level=LEVEL, basis=basis)
    if indicator.direction == "decrease":
        basis = "no vocabulary or class count is known; losses are rarely negative: a rule of thumb"
        return Prediction(quantity=name, low=0.0, level=LEVEL, basis=basis)
    basis = "nothing of its scale is known before the first reading: any finite number"
    return Prediction(quantity=name, low=-1e12, high=1e12, level=LEVEL, basis=basis)


def _configured(facts: TrainingFacts, total: int | None) -> Schedule | None:
    if not facts.learning_rate:
        return None
    warmup = facts.warmup_steps
    if warmup is None:
        warmup = math.ceil((facts.warmup_ratio or 0.0) * total) if total else 0
    name = facts.schedule or "linear"
    return Schedule(name, facts.learning_rate, total, warmup, facts.min_learning_rate or 0.0)


def _first_learning_rate(facts: TrainingFacts) -> Prediction:
    peak = facts.learning_rate or 0.0
    low = 0.0
    if facts.schedule == "constant" and not facts.warmup_steps and not facts.warmup_ratio:
        low = 0.99 * peak
    name = facts.schedule or "an unknown schedule"
    return Prediction(
        quantity="learning_rate",
        low=low,
        high=1.01 * peak,
        level=LEVEL,
        basis=clean(f"range of {name} below its peak {peak:g}", 200)
        + f" ({_source(facts, 'learning_rate')})",
    )


# Later sessions --------------------------------------------------------------------------------


def _from_history(briefing: Briefing, history: History) -> Iterator[Prediction]:
    now = briefing.now.timestamp()
    facts = briefing.facts
    calibration = briefing.state.monitor.calibration if briefing.state else {}
    ended = history.ended
    step, paced = history.step_at(now)
    if ended == "finished":
        last = history.last_step
        step = Interval(last, last, last, f"the log had ended as finished at step {last:g}")
        paced = True
    elif ended in {"crashed", "interrupted"}:
        remark = f"; the log had ended as {ended}, so that it may stay at {history.last_step:g}"
        step = Interval(history.last_step, step.high, step.center, step.basis + remark)
    high = float(math.ceil(step.high)) if paced else history.total
    yield Prediction(
        quantity="step",
        low=math.floor(step.low),
        high=None if high is None else max(high, math.floor(step.low)),
        level=LEVEL,
        basis=step.basis,
    )
    names = {n: s for reading in reversed(history.readings) for n, s in reading.series.items()}
    indicator = key_indicator(names, facts, _guidance(briefing))
    evaluated = sorted(name for name in names if name.startswith("eval_"))
    chosen = dict.fromkeys((indicator.quantity, *METRICS, *evaluated))
    count = 0
    for name in chosen:
        series = history.series(name)
        if series is None or count >= MOST:
            continue
        expected = _metric(series, step, stays=ended != "running" and ended != "unknown")
        if expected is not None:
            count += 1
            yield _widened(expected, calibration.get(name))
    if not count:
        # Nothing of learning was logged so far; what the config says of it still holds.
        yield _first_learning(indicator)
    rate = _learning_rate(history, facts, step)
    if rate is not None:
        yield _widened(rate, calibration.get("learning_rate"))
    yield from _life(history, step, paced)
    resident = forecast(history.resident, now, LEVEL) if history.resident else None
    if resident is not None and ended != "finished":
        last_bytes = history.resident[-1][1]
        # Memory at one moment is looser than its few looks show: batches, workers, caches.
        slack = 0.1 * last_bytes
        yield _widened(
            Prediction(
                quantity="process.rss",
                subject="job",
                low=max(0.0, resident.low - slack),
                high=resident.high + slack,
                unit="bytes",
                level=LEVEL,
                basis=f"{len(history.resident)} earlier looks: {resident.basis}; a tenth more on "
                "either side",
            ),
            calibration.get("process.rss"),
        )
    yield _power()


def _metric(series: Series, step: Interval, stays: bool) -> Prediction | None:
    """One metric at the step expected; `stays` where the log may have ended for good."""
    if series.last is None:
        return None
    if len(series.recent) >= 3 and not any(math.isfinite(p.value) for p in series.recent[-3:]):
        basis = f"not finite since step {series.recent[-3].step:g} at the latest; such runs stay so"
        values = (math.nan, math.inf, -math.inf)
        return Prediction(quantity=series.name, one_of=values, level=LEVEL, basis=basis)
    points = series.finite()
    if not points:
        return None
    gap, last = spacing(series), points[-1]
    precision = 0.5 * printed_precision([p.value for p in points[-20:]])
    kept = Interval(
        last.value - precision - 1e-6 * abs(last.value),
        last.value + precision + 1e-6 * abs(last.value),
        last.value,
        f"last value, of step {last.step:g}; no newer one is due by step {step.high:g}",
    )
    if step.high < last.step - gap:
        # The log counts this metric otherwise than the run's steps.
        step = Interval(last.step + gap, last.step + gap, last.step + gap, step.basis)
    if step.high < last.step + gap:
        expected = kept
    else:
        # The last value printed at or before the step: sparse metrics lag behind it.
        at = [last.step + max(1, (s - last.step) // gap) * gap for s in _range(step)]
        said = [f for target in dict.fromkeys(at) if (f := forecast(points, target, LEVEL))]
        if not said:
            return None
        low, high = min(f.low for f in said), max(f.high for f in said)
        if stays or step.low < last.step + gap:
            low, high = min(low, kept.low), max(high, kept.high)
        middle = said[len(said) // 2]
        expected = Interval(
            low, high, middle.center, f"at step {at[len(at) // 2]:g}: {middle.basis}"
        )
    low, high, basis = expected.low, expected.high, expected.basis
    if series.name == "loss_scale":
        low, high = min(low, last.value / 2), max(high, 2 * last.value)
        basis += "; scalers halve it on overflow and double it after a while without"
    return Prediction(
        quantity=series.name,
        low=low,
        high=high,
        unit=series.unit,
        level=LEVEL,
        basis=basis,
    )


def _range(step: Interval) -> tuple[float, float, float]:
    return step.low, step.center, step.high


def _schedules(history: History, facts: TrainingFacts, series: Series) -> Iterator[Schedule]:
    """The config's schedule, then what usual schedules would be with the peak that was logged."""
    configured = _configured(facts, history.total)
    if configured is not None and facts.schedule:
        yield configured
    points = series.finite()
    top = max(points, key=lambda point: point.value)
    falling = [point for point in points if point.step > top.step and point.value < top.value]
    if history.total is None or len(falling) < 8 or points[-1].value > 0.995 * top.value:
        return
    minima = {facts.min_learning_rate or 0.0, 0.0, 0.1 * top.value}
    for name in ("linear", "cosine"):
        for least in sorted(minima):
            yield Schedule(name, top.value, history.total, max(0.0, top.step - 1), least)


def _learning_rate(history: History, facts: TrainingFacts, step: Interval) -> Prediction | None:
    series = history.series("learning_rate")
    points = series.finite()[-200:] if series else []
    if series is None or not points:
        return None
    for schedule in _schedules(history, facts, series) if len(points) >= 8 else ():
        errors = sorted(abs(schedule.at(point.step) - point.value) for point in points)
        error = errors[int(0.9 * (len(errors) - 1))]
        # It counts where it tells what was logged, but for one printed step more or less.
        if error > 0.01 * schedule.peak:
            continue
        reach = history.cadence + 1
        low, high = max(0.0, step.low - reach), step.high + reach
        values = [schedule.at(low + (high - low) * k / 64) for k in range(65)]
        slack = 1.5 * error + 1e-4 * schedule.peak
        return Prediction(
            quantity="learning_rate",
            low=max(0.0, min(values) - slack),
            high=max(values) + slack,
            level=LEVEL,
            basis=clean(
                f"{schedule} between steps {low:.0f} and {high:.0f}, which tells the "
                f"{len(points)} latest logged rates to within {error:.2g}"
            ),
        )
    expected = _metric(series, step, stays=history.ended in {"crashed", "interrupted"})
    if expected is None or expected.low is None or expected.high is None:
        return expected
    last = points[-1].value
    if len(points) < 4:
        most = max(10 * last, expected.high) if not facts.learning_rate else facts.learning_rate
        remark = "; a warm-up may be under way, so up to " + (
            "the config's peak" if facts.learning_rate else "ten times as much: a rule of thumb"
        )
        update = {
            "low": 0.0,
            "high": max(1.01 * most, expected.high),
            "basis": expected.basis + remark,
        }
        return expected.model_copy(update=update)
    if last > points[len(points) // 2].value and last >= 0.999 * max(p.value for p in points):
        # A warm-up ends, and nothing logged tells when.
        remark = "; it rises, and such a warm-up may end any time, to stay or to fall slowly"
        update = {"low": min(expected.low, 0.9 * last), "basis": expected.basis + remark}
        return expected.model_copy(update=update)
    return expected


def _life(history: History, step: Interval, paced: bool) -> Iterator[Prediction]:
    """Whether the run has ended by now, as its log and its processes will tell."""
    ended, total = history.ended, history.total
    end = None if total is None else total - history.cadence - 1
    looks = max(1, len(history.looks))
    if ended == "finished":
        yield Prediction(
            quantity="log.ended", one_of=(ended,), level=0.95, basis="it had when last read"
        )
        basis, alive, level = "the log had ended as finished", False, 0.8
    elif ended in {"crashed", "interrupted"}:
        yield Prediction(
            quantity="log.ended",
            one_of=(ended, "running"),
            level=LEVEL,
            basis="as when last read, or started again",
        )
        basis, alive, level = f"the log had ended as {ended}", False, 0.7
    elif not paced or end is None or step.high < end:
        # Laplace's rule of succession: it went on at each of so many looks.
        level = min(0.95, (looks + 1) / (looks + 2))
        yield Prediction(
            quantity="log.ended",
            one_of=("running", "unknown")
            if end is not None
            else ("running", "unknown", "finished"),
            level=level,
            basis=f"it ran at {looks} looks and is not due to end by now"
            if paced and end is not None
            else f"it ran at {looks} looks; when it is due to end is not known",
        )
        basis, alive = "the run is not known to be due to end by now", True
    else:
        due = step.low >= end
        yield Prediction(
            quantity="log.ended",
            one_of=("finished",) if due else ("running", "unknown", "finished"),
            level=0.7 if due else LEVEL,
            basis=f"step {step.low:g} to {step.high:g} of {total}: "
            + ("due to have ended" if due else "may have ended by now"),
        )
        basis, alive = f"step {step.low:g} to {step.high:g} of {total} expected by now", not due
        level = 0.7 if due else 0.5
    yield Prediction(quantity="process.alive", one_of=(alive,), level=level, basis=basis)


def _widened(prediction: Prediction, record: Calibration | None) -> Prediction:
    """Wider where earlier predictions of this quantity held less often than they said."""
    if record is None or prediction.low is None or prediction.high is None:
        return prediction
    seen = record.held + record.missed
    short = (record.expected - record.held) / seen if seen >= 3 else 0.0
    if short <= 0.05:
        return prediction
    factor = min(3.0, 1 + 4 * short)
    extra = (prediction.high - prediction.low) * (factor - 1) / 2
    low = prediction.low - extra
    return prediction.model_copy(
        update={
            "low": max(0.0, low) if prediction.low >= 0 else low,
            "high": prediction.high + extra,
            "basis": f"{prediction.basis}; {factor:.2g} times as wide, since only {record.held} of "
            f"{seen} earlier ones held",
        }
    )
