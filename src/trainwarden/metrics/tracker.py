"""Where a run is, told from the lines of its log: steps, epochs, bars, restarts."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trainwarden.metrics.columns import DERIVED, Columns
from trainwarden.metrics.formats.base import Numbers, Row
from trainwarden.metrics.parts import gaps
from trainwarden.metrics.places import Bar, Logger, bar_kind

FEW = 20
"""So many lines that say a step and nothing else are those of a training."""


@dataclass(slots=True)
class Tracker:
    """State of a log's position; plain data in `to_state`."""

    columns: Columns = field(default_factory=Columns)
    loggers: dict[str, Logger] = field(default_factory=dict)
    bars: dict[str, Bar] = field(default_factory=dict)
    main_bar: str = ""
    last_bar: str = ""
    bar_total: float | None = None
    current: float = -1.0
    """Last known position of training on the axis of the series; -1 before any."""
    printed: float = -1.0
    """Last step as printed."""
    explicit: bool = False
    """Whether some line states its step."""
    total: float | None = None
    stated_total: float | None = None
    epoch: float | None = None
    first_epoch: float | None = None
    total_epochs: float | None = None
    epochs_done: float = 0.0
    """How many epochs were summed up, or stand for steps."""
    epoch_steps: float | None = None
    runs: int = 0
    resuming: bool = False
    """A restart is likely: an error or a word of resuming stood since the last row."""
    restarted_at: float | None = None
    last_time: float | None = None
    last_time_step: float | None = None
    counted: bool = False
    relative: bool = False
    rows: int = 0
    test_rows: int = 0
    """How many rows there were at the last row of a test after training."""
    detailed: bool = False
    """Whether rows state their step and their place in the epoch."""
    said: dict[str, Any] = field(default_factory=dict)
    """The last row that stated no step, as `repeats` has it, with its step."""
    head: float | None = None
    """The epoch of the last line that said an epoch and nothing else."""
    turned_at: float = -2.0
    """Where the run stood when such a line said the epoch after the one before."""
    least: float | None = None
    """The lowest step stated by a row of training."""
    records: bool = False
    """Whether training is told in records of a trainer's own kind, without steps: Transformers."""
    logged: bool = False
    """Whether a line that states its step was more than a print."""

    def locate(
        self, places: dict[str, float], row: Row, shape: str, rank: int | None
    ) -> float | None:
        """The step of a row; None where it is to be left out (another rank's copy)."""
        evaluation = row.phase == "eval"
        if not evaluation:
            self._totals(places)
            self.detailed = self.detailed or {"step", "epoch_step"} <= places.keys()
        step = places.get("step")
        epoch = places.get("epoch")
        if epoch is not None and not evaluation:
            self.epoch = epoch
            if self.first_epoch is None:
                self.first_epoch = epoch
        if step is None and "epoch_step" in places:
            return self._in_epoch(places, shape, rank, evaluation)
        if step is not None:
            self.logged = self.logged or not row.bare
            return self._stated(step, epoch, shape, rank, evaluation)
        logger = self.loggers.setdefault(f"?{shape}", Logger(rank=rank))
        if logger.rank != rank:
            return None
        logger.rows += 1
        if row.phase == "summary" and epoch is not None:
            self.epoch_done(epoch)
        if row.phase in {"eval", "summary"}:
            return self._here(epoch)
        if not self.explicit and self.main_bar:
            return self._beside_bar(logger)
        if self.explicit:
            return self._here(epoch)
        if epoch is None and not self.counted and self.head not in {None, logger.epoch}:
            logger.epoch = head = float(self.head or 0.0)
            self.epoch_done(head)
            if head >= self.current:
                self._advance(head, head)
            return self.current
        # Once an epoch was a fraction, a whole one is a line like the others.
        whole = epoch is not None and epoch == int(epoch) and not self.counted
        if epoch is not None and whole and logger.epoch != epoch:
            if logger.epoch is not None and epoch < logger.epoch:
                self._restart(epoch)
            logger.epoch = epoch
            self.epoch_done(epoch)
            if epoch >= self.current:
                self._advance(epoch, epoch)
                return epoch
        if not whole or logger.epoch is None:
            self.counted = True
            logger.last = float(logger.rows)
            if logger.rows > self.current:
                self._advance(float(logger.rows), float(logger.rows))
            return float(logger.rows)
        return self._here(epoch)

    def headed(self, epoch: float, total: float | None) -> None:
        """Take a line that says which epoch begins, and nothing else."""
        following = self.head is not None and epoch == self.head + 1 and not self.resuming
        self.turned_at = self.current if following else -2.0
        self.head = epoch
        if self.first_epoch is None:
            self.first_epoch = epoch
        if total is not None:
            self.total_epochs = total

    def ahead(self, places: dict[str, float]) -> bool:
        """Whether a place lies beyond where the run stands."""
        if "step" in places:
            return places["step"] > self.current
        if "epoch_step" not in places:
            return False
        epoch = places.get("epoch")
        if epoch is not None and self.epoch is not None:
            return epoch > self.epoch
        return self._inner(places) > self.current

    def sums_up(self, places: dict[str, float]) -> bool:
        """Whether a row sums up an epoch of a log whose steps are printed line by line.

        Such a row has an epoch alone; or, as fairseq's, the last step with it, but no place in
        the epoch, where other rows have all three.
        """
        if not self.explicit or "epoch" not in places or "epoch_step" in places:
            return False
        return self.detailed or "step" not in places

    def _here(self, epoch: float | None) -> float:
        if self.current >= 0:
            return self.current
        return epoch if epoch is not None else 0.0

    def _totals(self, places: dict[str, float]) -> None:
        total = places.get("total_steps")
        if total is not None and total >= places.get("step", total + 1):
            self.total = total
        if (epochs := places.get("total_epochs")) is not None and epochs > 0:
            self.total_epochs = epochs
        if (steps := places.get("epoch_steps")) is not None and steps > 0:
            self.epoch_steps = steps

    def epoch_done(self, epoch: float) -> None:
        """An epoch was summed up."""
        self.epochs_done = epoch + (1.0 if self.first_epoch == 0 else 0.0)

    def tells_records(self) -> None:
        """Training turns out to be told in records, and where it stands by a bar.

        What prints had said before was not of the training: a model's answers, which a reward
        function shows.
        """
        self.records = True
        if self.explicit and not self.logged:
            self.columns, self.loggers = Columns(), {}
            self.explicit, self.relative = False, False
            self.runs, self.rows, self.least = 1, 0, None
            self.current = self.printed = self.bar_at

    def stands_at(self, step: float) -> None:
        """Take where the run stands before its first step is printed."""
        self._advance(step, step)

    def _advance(self, x: float, printed: float) -> None:
        self.current, self.printed = x, printed
        if self.runs == 0:
            self.runs = 1

    def _in_epoch(
        self, places: dict[str, float], shape: str, rank: int | None, evaluation: bool
    ) -> float | None:
        if evaluation:
            return self._here(places.get("epoch", self.epoch))
        return self._stated(self._inner(places), None, f"{shape}@", rank, False)

    def _inner(self, places: dict[str, float]) -> float:
        epoch = places.get("epoch", self.epoch)
        if epoch is None:
            return places["epoch_step"]
        done = self.epochs_before(epoch) * (places.get("epoch_steps") or 0.0)
        return done + places["epoch_step"]

    def epochs_before(self, epoch: float) -> float:
        """How many epochs there were before one, which are counted from 0 or from 1."""
        return max(0.0, epoch - (0.0 if self.first_epoch == 0 else 1.0))

    def _stated(
        self, step: float, epoch: float | None, shape: str, rank: int | None, evaluation: bool
    ) -> float | None:
        if not self.explicit and not evaluation:
            self.explicit = True
            self.current = self.printed = -1.0  # what bars had said counts no more
        logger = self.loggers.get(shape)
        if logger is None:
            logger = self.loggers[shape] = Logger(rank=rank)
        if logger.rank != rank:
            return None
        logger.rows += 1
        if evaluation:
            if self.current < 0 and step >= 0:
                self._advance(step, step)
            # What counts otherwise than training does: LitGPT's iterations of several to a step.
            elsewhere = self.rows >= 5 and step + logger.base > self.current + 3.0 * self.stride
            # Or it tells how long it was itself.
            if elsewhere or (epoch is not None and epoch == self.epoch and step < self.current):
                return self._here(epoch)
            return step + logger.base
        fell, restarted = step < logger.last, False
        turned = self.turned_at == self.current and step <= logger.last
        if turned or (fell and None not in {epoch, logger.epoch} and epoch > logger.epoch):  # type: ignore[operator]
            # The first row of an epoch is as far from the last one of that before as any two.
            logger.base += logger.last + max(0.0, (logger.stride or step) - step)
            self.turned_at = -2.0
            self.relative = True
        elif step < self.current and step == self.epoch and logger.last < 0:
            logger.rows -= 1
            return self.current  # it is the epoch that is called so: mmengine's scores
        elif restarted := fell and self._fell_back(logger, step):
            logger.base = 0.0
            self._restart(step)
        elif fell and not logger.base and logger.last - step > 2 * (logger.stride or 1.0):
            return None  # a line like that of the training, from elsewhere
        if self.least is None or step < self.least:
            self.least = step
        if step > logger.last >= 0:
            logger.stride = step - logger.last
        logger.last = step
        if epoch is not None:
            logger.epoch = epoch
        x = logger.base + step
        if x > self.current or restarted or logger.base:
            self._advance(x, step)
        self.resuming = False
        return x

    def _fell_back(self, logger: Logger, step: float) -> bool:
        if logger.rows < max((other.rows for other in self.loggers.values()), default=0) / 4:
            return False
        return self.resuming or logger.last - step > 2 * (logger.stride or 1.0)

    def _restart(self, step: float) -> None:
        self.runs = max(1, self.runs) + 1
        self.restarted_at = step
        self.epochs_done = 0.0
        self.current = self.printed = step

    def _beside_bar(self, logger: Logger) -> float:
        bar = self.bars[self.main_bar]
        if self.last_bar != self.main_bar and bar.n >= bar.total > 0 and self.last_bar:
            self.main_bar = self.last_bar
            bar = self.bars[self.main_bar]
        x = bar.base + bar.n
        if x <= logger.last:
            # Several lines between two redraws: the bar lags behind.
            x = logger.last + 1.0
        if bar.total > 0:
            x = min(x, max(bar.base + bar.total, logger.last))
        logger.last = x
        if self.runs == 0:
            self.runs = 1
        return x

    def bar(
        self, places: dict[str, float], label: str, progress: bool = False, aside: bool = False
    ) -> tuple[float | None, bool]:
        """Take a bar's position: its step where it is the training's bar, and whether it moved.

        `progress` says that the bar carries a loss or the like; `aside` that an evaluation is
        under way, whose own bars may look like those of training.
        """
        n, total = places.get("step", 0.0), places.get("total_steps", 0.0)
        key, active = self.bar_of(label, total, progress)
        bar = self.bars.get(key)
        if bar is None:
            if len(self.bars) > 200:
                self.bars = {k: v for k, v in self.bars.items() if k == self.main_bar}
            bar = self.bars[key] = Bar(total=total, n=-1.0)
        epoch = places.get("epoch")
        moved = n != bar.n or (epoch is not None and epoch != bar.epoch)
        if n <= bar.n and epoch is None and bar.head not in {None, self.head}:
            bar.base += bar.total  # a line said that an epoch began
            moved = True
        elif n < bar.n:
            if bar.n >= bar.total or (epoch is not None and epoch != bar.epoch):
                bar.base += bar.total
            elif key == self.main_bar and not self.explicit and bar.n - n > 1:
                self._restart(bar.base + n)
        bar.n, bar.head = n, self.head
        if epoch is not None:
            bar.epoch = epoch
            self.epoch = epoch
            if self.first_epoch is None:
                self.first_epoch = epoch
            bar.base = self.epochs_before(epoch) * total
        if not active:
            return None, moved
        if aside and key != self.main_bar:
            return None, moved
        if not self.main_bar:
            self.main_bar = key
        if key != self.main_bar and n > 0 and self.bars[self.main_bar].n <= 0:
            self.main_bar = key  # Lightning's first bar never moves
        self.last_bar = key
        if key != self.main_bar:
            return None, moved
        if (epochs := places.get("total_epochs")) is not None and total:
            self.bar_total = epochs * total
        elif total and not bar.base:
            self.bar_total = total
        if not self.explicit and moved:
            x = bar.base + n
            if x > self.current:
                self._advance(x, x)
        return bar.base + n, moved

    @staticmethod
    def bar_of(label: str, total: float, progress: bool) -> tuple[str, bool]:
        """What a bar is kept under, and whether it may be the training's."""
        kind, eligible, other = bar_kind(label)
        return f"{kind}|{total:g}", eligible or (progress and not other)

    def timed_all(self, times: Numbers, steps: Numbers, offsets: NDArray[Any]) -> None:
        """As `timed` for many rows; a time that is NaN is none."""
        told = ~np.isnan(times)
        times, steps, offsets = times[told], steps[told], offsets[told]
        at = self.last_time_step
        if not len(times):
            return
        if at is None or self.last_time is None or not (gaps(steps, at) >= 0).all():
            for row in zip(times.tolist(), steps.tolist(), offsets.tolist(), strict=True):
                self.timed(*row)
            return
        fresh = gaps(steps, at) > 0
        times, steps, offsets = times[fresh], steps[fresh], offsets[fresh]
        if not len(times):
            return
        spent = gaps(times, self.last_time)
        paces = spent / gaps(steps, at)
        later = spent > 0
        self.last_time, self.last_time_step = float(times[-1]), float(steps[-1])
        column = self.columns.get(DERIVED, None)
        if column is not None and later.any():
            column.take((steps[later], paces[later], offsets[later]))

    def timed(self, time: float, step: float, offset: int) -> None:
        """Derive seconds per step from the timestamps of two rows."""
        before, at = self.last_time, self.last_time_step
        if before is not None and at is not None and step > at and time > before:
            column = self.columns.get(DERIVED, None)
            if column is not None:
                column.pending.append((step, (time - before) / (step - at), offset))
        if at is None or step != at:
            self.last_time, self.last_time_step = time, step

    @property
    def last_step(self) -> int | None:
        """The last step as printed (or by the training's bar).

        None where all that was read is a few steps, which may be those of a recipe.
        """
        told = len(self.columns) or self.bars or self.rows >= FEW or self.total_steps is not None
        return int(self.printed) if self.printed >= 0 and told else None

    @property
    def total_steps(self) -> int | None:
        """How many steps the run is to make, where the log says it."""
        reached = self.printed
        if self.total is not None and self.total >= reached:
            return int(self.total)
        near = self.bars.get(self.main_bar)
        by_epoch = near is not None and bool(near.base or near.epoch is not None)
        if near and by_epoch and self.total_epochs and near.total and not self.explicit:
            return int(near.total * self.total_epochs)  # a bar for each epoch
        if self.bar_total is not None and self.bar_total >= reached:
            at = near.base + near.n if near else 0.0
            if not self.explicit or abs(at - reached) <= max(3.0, 0.02 * self.bar_total):
                return int(self.bar_total)
        if self.stated_total is not None and self.stated_total >= reached:
            return int(self.stated_total)
        planned = (self.epoch_steps or 0.0) * (self.total_epochs or 0.0)
        if planned and planned >= reached:
            return int(planned)
        if self.total_epochs and not self.explicit and not self.counted and not self.main_bar:
            return int(self.total_epochs)  # the steps are epochs
        return None

    @property
    def bar_at(self) -> float:
        """Where the training's bar stands; -1 where there is none."""
        bar = self.bars.get(self.main_bar)
        return bar.base + bar.n if bar is not None else -1.0

    @property
    def arrived(self) -> bool:
        """Whether the last step that was planned was reached; counted from 0, it is one less."""
        total, step = self.total_steps, self.last_step
        if self.total_epochs and self.epochs_done >= self.total_epochs:
            return True
        if total is None or step is None or total <= 0:
            return False
        near = self.bars.get(self.main_bar)
        if near and near.epoch is not None and near.total == total and not self.total_epochs:
            return False  # the bar is one epoch's, of an unknown number
        return step >= total or (self.least == 0 and self.explicit and step == total - 1)

    @property
    def stride(self) -> float:
        """Steps between two rows of the logger that prints most."""
        most = max(self.loggers.values(), key=lambda logger: logger.rows, default=None)
        return (most.stride or 1.0) if most is not None else 1.0

    def copy(self) -> Tracker:
        """An independent copy."""
        state = self.to_state(columns=False)
        return Tracker.from_state(state, self.columns.copy())

    def to_state(self, columns: bool = True) -> dict[str, Any]:
        """Plain data; `from_state` is its inverse."""
        state: dict[str, Any] = {
            name: getattr(self, name)
            for name in self.__slots__
            if name not in {"columns", "loggers", "bars"}
        }
        state["loggers"] = {key: asdict(value) for key, value in self.loggers.items()}
        state["bars"] = {key: asdict(value) for key, value in self.bars.items()}
        if columns:
            state["columns"] = self.columns.to_state()
        return state

    @classmethod
    def from_state(cls, state: dict[str, Any], columns: Columns | None = None) -> Tracker:
        """Rebuild what `to_state` gave. Raises KeyError, TypeError or ValueError on other data."""
        data = dict(state)
        if columns is None:
            columns = Columns.from_state(data.pop("columns"))
        data.pop("columns", None)
        loggers = {key: Logger(**value) for key, value in data.pop("loggers").items()}
        bars = {key: Bar(**value) for key, value in data.pop("bars").items()}
        return cls(columns=columns, loggers=loggers, bars=bars, **data)
