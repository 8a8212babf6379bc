"""Many lines of a log taken in at once, where they do what lines mostly do: go on.

Whatever would make a difference line by line (a step that falls back, a new bar, an epoch that
begins) is left alone: nothing is taken then, and the lines are to be taken one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from trainwarden.metrics.columns import Column, Run
from trainwarden.metrics.formats.base import PART, Numbers, Places
from trainwarden.metrics.parts import Part, as_of, by_logger, gaps, joined
from trainwarden.metrics.places import Bar, Logger
from trainwarden.metrics.repeats import said

if TYPE_CHECKING:
    from trainwarden.metrics.recorder import Recorder


class Merge:
    """What a recorder would make of some parts; `commit` makes it so, up to a line.

    Other lines may be taken between two commits: as long as the merge `stands` after them. The
    points are put into their columns by `flush`, many at once.
    """

    def __init__(self, recorder: Recorder, parts: Sequence[Part]) -> None:
        self.recorder = recorder
        self.tracker = recorder.tracker
        self.parts = parts
        self.bars: list[Part] = []
        self.stepped: list[Part] = []
        self.free: list[Part] = []
        self.bar: Bar | None = None
        self.bar_key = ""
        self.active = self.on_main = False
        self._begin = self._end = 0
        """The lines that were committed and not yet flushed."""
        self._left: tuple[object, ...] = ()

    def possible(self) -> bool:
        """Whether the parts hold nothing but lines that go on. Changes nothing."""
        if self.recorder.section is not None:
            return False
        for part in self.parts:
            binding = self.recorder.bound(part.key)
            if binding is None:
                return False
            part.binding = binding
            if part.row.kind == "bar":
                self.bars.append(part)
            elif binding.step_at >= 0:
                self.stepped.append(part)
            elif binding.free:
                self.free.append(part)
            else:
                return False
        return self._bars_go_on() and self._steps_go_on() and self._others_go_on()

    # Whether they go on ------------------------------------------------------------------------

    def _bars_go_on(self) -> bool:
        if not self.bars:
            return True
        tracker = self.tracker
        keys, actives = set(), set()
        for part in self.bars:
            n, total = part.get("step"), part.get("total_steps")
            if n is None or total is None or not (total == total[0]).all():
                return False
            if not {"step", "total_steps", "epoch"}.issuperset(dict(part.binding.places)):
                return False
            key, active = tracker.bar_of(part.row.label, float(total[0]), part.binding.progress)
            keys.add(key)
            actives.add(active)
            part.x = n
        if len(keys) > 1 or len(actives) > 1 or (True in actives and not tracker.main_bar):
            return False
        self.bar_key = keys.pop()
        self.bar = bar = tracker.bars.get(self.bar_key)
        if bar is None:
            return False
        for part in self.bars:
            epochs = part.get("epoch")
            if epochs is None:
                continue
            if bar.epoch is None or tracker.first_epoch is None or (epochs != bar.epoch).any():
                return False
            if bar.base != tracker.epochs_before(bar.epoch) * bar.total:
                return False
        steps = joined(self.bars, [part.x for part in self.bars])
        fresh = gaps(steps, bar.n)
        if not (fresh >= 0).all():
            return False
        if not (fresh > 0).all():
            # Redrawn where it stands: only what evaluations say is taken again.
            if len(self.bars) > 1 or self.bars[0].binding.evaluated:
                return False
            if bar.head not in {None, tracker.head}:
                return False  # an epoch began
            self.bars[0].moved = fresh > 0
        for part in self.bars:
            part.x = part.x + bar.base
        self.active = actives == {True}
        self.on_main = self.active and self.bar_key == tracker.main_bar
        return True

    def _steps_go_on(self) -> bool:
        tracker = self.tracker
        if self.stepped and not tracker.explicit:
            return False
        for part in self.stepped:
            logger = tracker.loggers.get(part.binding.shape)
            epochs = part.get("epoch")
            if logger is None or logger.base or logger.last < 0:
                return False
            if epochs is not None and (tracker.first_epoch is None or np.isnan(epochs).any()):
                return False
            part.x = part.columns[part.binding.step_at]
            part.logger = logger if logger.rank == part.rank else None
        for logger, group in by_logger(self.stepped):
            steps = joined(group, [part.x for part in group])
            strides = gaps(steps, logger.last)
            if not (strides >= 0).all() or math.isinf(steps[-1]):
                return False
            if tracker.turned_at >= 0 and not strides.all():
                return False  # an epoch may have begun
        return True

    def _others_go_on(self) -> bool:
        tracker = self.tracker
        for part in self.free:
            logger = tracker.loggers.get(f"?{part.binding.shape}")
            epochs = part.get("epoch")
            if logger is None:
                return False
            if epochs is not None and (tracker.first_epoch is None or np.isnan(epochs).any()):
                return False
            if logger.rank != part.rank:
                return False
            part.logger = logger
        told = self.free
        if not told:
            return True
        if (tracker.explicit or not tracker.main_bar) and not self._all_differ():
            return False
        if tracker.explicit:
            if tracker.current < 0 or self.bars:
                return False
            stepped = [part for part in self.stepped if part.logger is not None]
            for part in told:
                part.x = as_of(part, stepped, tracker.current)
            return True
        if tracker.main_bar:
            return self._beside_bar(told)
        if not tracker.counted or self.bars:
            return False
        for logger, group in by_logger(told):
            if len(group) > 1:
                return False
            group[0].x = logger.rows + np.arange(1.0, len(group[0].at) + 1)
        return True

    def _all_differ(self) -> bool:
        """Whether no row without a step says the same as the one before it."""
        if len(self.free) > 1:
            return False
        part, before = self.free[0], self.tracker.said
        rows = np.stack(part.columns)
        if not (rows[:, 1:] != rows[:, :-1]).any(axis=0).all():
            return False
        if not before:
            return True
        same_names = before["names"] == [pair.name for pair in part.row.pairs]
        return same_names and bool(before["numbers"] != rows[:, 0].tolist())

    def _beside_bar(self, told: list[Part]) -> bool:
        tracker = self.tracker
        bar = tracker.bars[tracker.main_bar]
        if tracker.last_bar not in {"", tracker.main_bar} or (self.bars and not self.on_main):
            return False
        for part in told:
            part.x = as_of(part, self.bars, bar.base + bar.n)
        # Rows at one place of the bar may say the same again.
        every = joined(told, [part.x for part in told])
        if not (gaps(every, tracker.said.get("bar", -1.0)) > 0).all():
            return False
        for logger, group in by_logger(told):
            steps = joined(group, [part.x for part in group])
            if not (gaps(steps, logger.last) > 0).all():
                return False
            if bar.total > 0 and steps[-1] > bar.base + bar.total:
                return False
        return True

    # Taking them in ----------------------------------------------------------------------------

    def stands(self) -> bool:
        """Whether all is as the last commit left it, as far as it matters here."""
        if self._state() != self._left:
            return False
        if any(column.pending for column in self._columns()):
            # Other lines have points of the same columns, which come after those so far.
            self.flush()
            self._gather()
        return True

    def _gather(self) -> None:
        for column in self._columns():
            column.gather()

    def _columns(self) -> Iterable[Column]:
        return (column for part in self.parts for _, column, _ in part.binding.takes)

    def _state(self) -> tuple[object, ...]:
        recorder, tracker, bar = self.recorder, self.tracker, self.bar
        return (
            *(recorder.section, tracker.columns, tracker.explicit, tracker.detailed),
            *(tracker.records, tracker.main_bar, tracker.last_bar, tracker.first_epoch),
            *(tracker.current, tracker.turned_at, tracker.head, tracker.counted, tracker.said),
            *(tracker.last_time, tracker.last_time_step),
            bar and (tracker.bars.get(self.bar_key) is bar, bar.n, bar.base, bar.epoch, bar.head),
            *(
                (one.last, one.base, one.rank, one.rows)
                for part in self.parts
                if (one := part.logger) is not None
            ),
        )

    def commit(self, begin: int, end: int) -> None:
        """Take in the lines from one to another, which follow those of the commit before."""
        tracker, ending = self.tracker, self.recorder.ending
        if not self._left:
            self._begin = begin
            self._gather()
        bars, stepped, free = (
            [one for part in parts if len(one := part.between(begin, end))]
            for parts in (self.bars, self.stepped, self.free)
        )
        told = [part for part in (*stepped, *free) if part.logger is not None]
        self._commit_bars(bars)
        self._commit_positions((*bars, *stepped, *free))
        self._commit_said(free)
        counting = [part for part in told if self._counts(part)]
        for logger, group in by_logger(told):
            self._commit_logger(logger, group, joined(group, [part.x for part in group]))
        if counting:
            x = max(float(part.x.max()) for part in counting)
            if x > tracker.current:
                tracker.current = tracker.printed = x
                tracker.runs = max(tracker.runs, 1)
        tracker.rows += sum(len(part.at) for part in told)
        self._commit_redrawn(bars)
        self._commit_times([part for part in told if part.times is not None])
        lively = self._lively(told, bars)
        if lively and (ending.fatal is not None or ending.finish):
            for x in joined(lively, [part.fresh(part.x) for part in lively]).tolist():
                ending.went_on(x)
        if lively and any(len(part.fresh(part.x)) for part in lively):
            ending.paused = False
        self._end = end
        self._left = self._state()

    def flush(self) -> None:
        """Put the points of all lines that were committed into their columns."""
        begin, self._begin = self._begin, self._end
        told = [part for part in (*self.stepped, *self.free) if part.logger is not None]
        some = [part.between(begin, self._end) for part in self._lively(told, self.bars)]
        self._commit_values([part for part in some if len(part)])

    def _lively(self, told: list[Part], bars: list[Part]) -> list[Part]:
        return told + [part for part in bars if self.on_main and part.binding.values]

    def _commit_said(self, free: list[Part]) -> None:
        if not free:
            return
        tracker = self.tracker
        last = max(free, key=lambda part: int(part.at[-1]))
        numbers = [float(column[-1]) for column in last.columns]
        bar = tracker.bar_at
        if not tracker.explicit and tracker.main_bar:
            bar = float(last.x[-1])
        tracker.said = said(last.row, numbers, bar) | {"x": float(last.x[-1])}
        for part in free:
            if any(pair.unit == PART for pair in part.row.pairs):
                tracker.counted = True

    def _counts(self, part: Part) -> bool:
        """Whether the lines say themselves how far training is."""
        return part.binding.step_at >= 0 or not (self.tracker.explicit or self.tracker.main_bar)

    def _commit_bars(self, bars: list[Part]) -> None:
        tracker, bar = self.tracker, self.bar
        if bar is None or not bars:
            return
        x = max(float(part.x[-1]) for part in bars)
        bar.n, bar.head = x - bar.base, tracker.head
        if self.active:
            tracker.last_bar = self.bar_key
        if not self.on_main:
            return
        if bar.total and not bar.base:
            tracker.bar_total = bar.total
        if not tracker.explicit and x > tracker.current:
            tracker.current = tracker.printed = x
            tracker.runs = max(tracker.runs, 1)

    def _commit_positions(self, parts: Iterable[Part]) -> None:
        tracker = self.tracker
        epochs: list[tuple[int, float]] = []
        totals: list[tuple[int, float]] = []
        for part in parts:
            if (column := part.get("epoch")) is not None:
                epochs.append((int(part.at[-1]), float(column[-1])))
            if part.row.kind != "bar" and (column := part.get("total_steps")) is not None:
                valid = np.flatnonzero(column >= part.x)
                if len(valid):
                    totals.append((int(part.at[valid[-1]]), float(column[valid[-1]])))
        if epochs:
            tracker.epoch = max(epochs)[1]
        if totals:
            tracker.total = max(totals)[1]

    def _commit_logger(self, logger: Logger, group: list[Part], steps: Numbers) -> None:
        tracker = self.tracker
        logger.rows += len(steps)
        if group[0].binding.step_at < 0:
            if not tracker.explicit:
                logger.last = float(steps[-1])
                tracker.runs = max(tracker.runs, 1)
            return
        strides = gaps(steps, logger.last)
        if (strides > 0).any():
            logger.stride = float(strides[strides > 0][-1])
        logger.last = float(steps[-1])
        epochs = [
            (int(part.at[-1]), float(column[-1]))
            for part in group
            if (column := part.get("epoch")) is not None
        ]
        if epochs:
            logger.epoch = max(epochs)[1]
        tracker.resuming = False

    def _commit_redrawn(self, bars: list[Part]) -> None:
        """What the bar said when it was redrawn where it stands, as the last of the lines."""
        if not self.on_main or not bars or bars[0].moved is None or bars[0].moved[-1]:
            return
        part = bars[0]
        for index, column, factor in part.binding.takes:
            value = float(part.columns[index][-1]) * factor
            column.shown = (float(part.x[-1]), value, int(part.offsets[-1]))

    def _commit_values(self, parts: Iterable[Part]) -> None:
        pieces: dict[int, tuple[Column, list[tuple[Places, Run]]]] = {}
        for part in parts:
            x, offsets, at = (part.fresh(v) for v in (part.x, part.offsets, part.at))
            if not len(x):
                continue
            for index, column, factor in part.binding.takes:
                values = part.fresh(part.columns[index])
                values = values if factor == 1.0 else values * factor
                run = (x, values, offsets)
                pieces.setdefault(id(column), (column, []))[1].append((at, run))
        for column, runs in pieces.values():
            later, column.pending[:] = column.pending[:], ()
            if len(runs) == 1:
                column.take(runs[0][1])
            else:
                order = np.argsort(np.concatenate([at for at, _run in runs]), kind="stable")
                x, values, offsets = (
                    np.concatenate(each)[order]
                    for each in zip(*[run for _at, run in runs], strict=True)
                )
                column.take((x, values, offsets))
            column.pending += later

    def _commit_times(self, parts: list[Part]) -> None:
        if parts:
            times = joined(parts, [part.times for part in parts])
            steps = joined(parts, [part.x for part in parts])
            self.tracker.timed_all(times, steps, joined(parts, [part.offsets for part in parts]))
