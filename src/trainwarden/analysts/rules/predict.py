"""Step 1 by rules: intervals that can be defended, wide from the config, then from history."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from trainwarden.analysts.rules.history import History, spacing
from trainwarden.analysts.rules.life import life, machine, power
from trainwarden.analysts.rules.rates import rate_at
from trainwarden.metrics.forecast import Interval, forecast, printed_precision
from trainwarden.metrics.indicator import (
    Indicator,
    direction_of,
    is_reinforcement,
    key_indicator,
)
from trainwarden.metrics.series import Series
from trainwarden.procedure.foresight import NOT_LEARNING, emptiness, tells_learning
from trainwarden.procedure.roles import Briefing
from trainwarden.records.facts import TrainingFacts, planned_steps
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
LONGEST = 1e8
"""Steps that hardly any run makes, those that count frames included: a rule of thumb."""
ABOVE_CHANCE = 1.3
"""How far above a uniform guess an untrained model's loss may be: a rule of thumb."""


def predict(briefing: Briefing) -> tuple[Prediction, ...]:
    """Predict progress, learning and resources before anything of this session was read."""
    history = History.of(briefing)
    made = list(_from_config(briefing) if history is None else _from_history(briefing, history))
    # Where a run has left what its config says far behind, an honest interval can be so wide that
    # the procedure takes it for one that cannot miss: nothing is said of that quantity then.
    criteria = briefing.header.criteria
    telling = [one for one in made if emptiness(one, criteria) is None]
    if not any(tells_learning(one.quantity) for one in telling):
        telling.append(_first_learning(key_indicator({}, briefing.facts, _guidance(briefing))))
    return tuple(telling)


# First session ---------------------------------------------------------------------------------


def _source(facts: TrainingFacts, name: str) -> str:
    return clean(f"config: {facts.keys.get(name, name)}", 120)


def _from_config(briefing: Briefing) -> Iterator[Prediction]:
    facts = briefing.facts
    total = planned_steps(facts)
    basis = "no planned length is known; runs seldom count so many steps: a rule of thumb"
    if total is not None:
        which = "max_steps" if facts.max_steps else "epochs"
        basis = f"planned length {total} steps ({_source(facts, which)})"
    yield Prediction(quantity="step", low=0, high=total or LONGEST, level=LEVEL, basis=basis)
    indicator = key_indicator({}, facts, _guidance(briefing))
    yield _first_learning(indicator)
    if facts.learning_rate and facts.learning_rate > 0:
        yield _first_learning_rate(facts)
    ended = ("running", "unknown", "finished")
    basis = "a run that is to be watched is taken to go on, or to have reached its end"
    yield Prediction(quantity="log.ended", one_of=ended, level=LEVEL, basis=basis)
    basis = "a run that is to be watched is taken to have a process: nothing of it was seen yet"
    yield Prediction(quantity="process.alive", one_of=(True,), level=0.8, basis=basis)
    if (facts.world_size or 1) > 1 or re.search("16|8", facts.precision or ""):
        # More than one rank, or numbers that hardly anything but a GPU is trained with.
        yield power()


def _guidance(briefing: Briefing) -> str | None:
    said = briefing.state.monitor.user_guidance if briefing.state else []
    return briefing.header.job.guidance or (said[-1] if said else None)


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
        high = None if "loss" in name else 1e12
        return Prediction(quantity=name, low=0.0, high=high, level=LEVEL, basis=basis)
    basis = "nothing of its scale is known before the first reading: any finite number"
    return Prediction(quantity=name, low=-1e12, high=1e12, level=LEVEL, basis=basis)


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
    if ended == "finished" and history.complete:
        last = history.last_step
        step = Interval(last, last, last, f"the log had ended as finished at step {last:g}")
        paced = True
    elif ended in {"finished", "crashed", "interrupted"}:
        remark = f"; the log had ended as {ended}, so that it may stay at {history.last_step:g}"
        step = Interval(history.last_step, step.high, step.center, step.basis + remark)
    high = float(math.ceil(step.high)) if paced else history.total
    low = float(math.floor(step.low))
    if high is None and low <= 0:
        # With no end known and no step seen, a lower bound alone could not miss.
        high = LONGEST
    yield Prediction(
        quantity="step",
        low=low,
        high=None if high is None else max(high, low),
        level=LEVEL,
        basis=step.basis,
    )
    names = {n: s for reading in reversed(history.readings) for n, s in reading.series.items()}
    indicator = key_indicator(names, facts, _guidance(briefing))
    evaluated = sorted(name for name in names if name.startswith("eval_"))
    chosen = dict.fromkeys((indicator.quantity, *METRICS, *evaluated))
    reinforcement = is_reinforcement(names, facts.task)
    count, learnt = 0, False
    for name in chosen:
        series = history.series(name)
        if series is None or count >= MOST:
            continue
        signed = may_be_negative(series, reinforcement)
        expected = _metric(series, step, stays=ended not in {"running", "unknown"}, signed=signed)
        if expected is not None:
            learnt = learnt or not NOT_LEARNING.fullmatch(name)
            count += 1
            yield _widened(expected, calibration.get(name))
    if not learnt:
        # Nothing of learning was logged so far; what the config says of it still holds.
        yield _first_learning(indicator)
    rate = rate_at(history, facts, step)
    if rate is not None:
        made = Prediction(
            quantity="learning_rate", low=rate.low, high=rate.high, level=LEVEL, basis=rate.basis
        )
        yield _widened(made, calibration.get("learning_rate"))
    yield from life(history, step, paced)
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
    yield from machine(history)


def _metric(series: Series, step: Interval, stays: bool, signed: bool = False) -> Prediction | None:
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
        share = is_share(series.name)
        said = [
            found
            for target in dict.fromkeys(at)
            if (found := forecast(points, target, LEVEL, signed=signed, share=share))
        ]
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


_SIGNED = re.compile(r"loss|kl|entropy|reward|return|score|advantage|margin")
_POSITIVE = re.compile(
    r"loss$|perplexity|time|per_second|norm|mfu|memory|acc|entropy|learning_rate|loss_scale"
)


def may_be_negative(series: Series, reinforcement: bool) -> bool:
    """Whether values below 0 may come, though none did so far."""
    if reinforcement and _SIGNED.search(series.name):
        return True
    return series.count < 20 and not (_POSITIVE.search(series.name) or is_share(series.name))


def is_share(name: str) -> bool:
    """Whether the name is of something between 0 and 1, such as an accuracy."""
    return direction_of(name) == "increase" and not re.search(
        "reward|return|score|elo|psnr|margin|r2|spearman|pearson|matthews", name
    )


def _range(step: Interval) -> tuple[float, float, float]:
    # The middle is looked at only where the ends are far apart.
    middle = step.center if step.high > 1.3 * step.low else step.high
    return step.low, middle, step.high


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
    if prediction.low >= 0:
        low = max(low, prediction.low / factor)
    high = prediction.high + extra
    if is_share(prediction.quantity) and prediction.low >= 0 and prediction.high <= 1:
        high = min(high, 1.0)
    return prediction.model_copy(
        update={
            "low": low,
            "high": high,
            "basis": f"{prediction.basis}; {factor:.2g} times as wide, since only {record.held} of "
            f"{seen} earlier ones held",
        }
    )
