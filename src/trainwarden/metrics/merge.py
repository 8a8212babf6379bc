"""Many lines of a log taken in at once, where they do what lines mostly do: go on.

Whatever would make a difference line by line (a step that falls back, a new bar, an epoch that
begins) is left alone: nothing is taken then, and the lines are to be taken one by one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from trainwarden.metrics.columns import Column, Run
from trainwarden.metrics.formats.base import PART, Numbers, Places, Row
from trainwarden.metrics.places import Bar, Logger
from trainwarden.metrics.repeats import said

if TYPE_CHECKING:
    from trainwarden.metrics.recorder import Binding, Recorder


@dataclass(slots=True, eq=False)
class Part:
    """Lines of one shape: their places among all lines, numbers by pair, times, byte offsets."""

    row: Row
    key: Any
    rank: int | None
    at: Places
    columns: Sequence[Numbers]
    times: Numbers | None
    offsets: Places
    binding: Binding = field(init=False)
    logger: Logger | None = None
    """None where the lines are copies by another process than the one that counts."""
    x: Numbers = field(init=False)
    """Their steps on the axis of the series."""

    def __len__(self) -> int:
        return len(self.at)

    def between(self, begin: int, end: int) -> Part:
        """Those of the lines from one to another."""
        low, high = np.searchsorted(self.at, (begin, end))
        some = slice(low, high)
        return Part(
            self.row,
            self.key,
            self.rank,
            self.at[some],
            [column[some] for column in self.columns],
            None if self.times is None else self.times[some],
            self.offsets[some],
        )

    def ends(self) -> list[tuple[int, float]]:
        """The first and the last time told, with their lines."""
        if self.times is None:
            return []
        told = np.flatnonzero(~np.isnan(self.times))
        return [(int(self.at[i]), float(self.times[i])) for i in (*told[:1], *told[-1:])]

    def get(self, role: str) -> Numbers | None:
        """The numbers of a position, where the lines have it."""
        index = dict(self.binding.places).get(role)
        return None if index is None else self.columns[index]


class Merge:
    """What a recorder would make of some parts; `commit` makes it so."""

    def __init__(self, recorder: Recorder, parts: Sequence[Part]) -> None:
        self.recorder = recorder
        self.tracker = recorder.tracker
        self.parts = parts
        self.bars: list[Part] = []
        self.stepped: list[Part] = []
        self.free: list[Part] = []
        self.bar: Bar | None = None
        self.bar_key = ""
        self.moved: Any = slice(None)
        self.active = self.on_main = False

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
        steps = _joined(self.bars, [part.x for part in self.bars])
        fresh = np.diff(steps, prepend=bar.n)
        if not (fresh >= 0).all():
            return False
        if not (fresh > 0).all():
            # Redrawn where it stands: only what evaluations say is taken again.
            if len(self.bars) > 1 or self.bars[0].binding.evaluated:
                return False
            if bar.head not in {None, tracker.head}:
                return False  # an epoch began
            self.moved = fresh > 0
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
        for logger, group in _by_logger(self.stepped):
            steps = _joined(group, [part.x for part in group])
            strides = np.diff(steps, prepend=logger.last)
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
                part.x = _as_of(part, stepped, tracker.current)
            return True
        if tracker.main_bar:
            return self._beside_bar(told)
        if not tracker.counted or self.bars:
            return False
        for logger, group in _by_logger(told):
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
            part.x = _as_of(part, self.bars, bar.base + bar.n)
        # Rows at one place of the bar may say the same again.
        every = _joined(told, [part.x for part in told])
        if not (np.diff(every, prepend=tracker.said.get("bar", -1.0)) > 0).all():
            return False
        for logger, group in _by_logger(told):
            steps = _joined(group, [part.x for part in group])
            if not (np.diff(steps, prepend=logger.last) > 0).all():
                return False
            if bar.total > 0 and steps[-1] > bar.base + bar.total:
                return False
        return True

    # Taking them in ----------------------------------------------------------------------------

    def commit(self) -> None:
        """Take the parts in."""
        tracker, ending = self.tracker, self.recorder.ending
        told = [part for part in (*self.stepped, *self.free) if part.logger is not None]
        self._commit_bars()
        self._commit_positions()
        self._commit_said()
        counting = [part for part in told if self._counts(part)]
        for logger, group in _by_logger(told):
            steps = _joined(group, [part.x for part in group])
            self._commit_logger(logger, group, steps)
        if counting:
            x = max(float(part.x.max()) for part in counting)
            if x > tracker.current:
                tracker.current = tracker.printed = x
                tracker.runs = max(tracker.runs, 1)
        tracker.rows += sum(len(part.at) for part in told)
        lively = told + [part for part in self.bars if self.on_main and part.binding.values]
        self._commit_values(lively)
        self._commit_redrawn()
        self._commit_times([part for part in told if part.times is not None])
        if lively and (ending.fatal is not None or ending.finish):
            for x in _joined(lively, [self._part_moved(part, part.x) for part in lively]).tolist():
                ending.went_on(x)
        if lively and any(len(self._part_moved(part, part.x)) for part in lively):
            ending.paused = False

    def _commit_said(self) -> None:
        if not self.free:
            return
        tracker = self.tracker
        last = max(self.free, key=lambda part: int(part.at[-1]))
        numbers = [float(column[-1]) for column in last.columns]
        bar = tracker.bar_at
        if not tracker.explicit and tracker.main_bar:
            bar = float(last.x[-1])
        tracker.said = said(last.row, numbers, bar) | {"x": float(last.x[-1])}
        for part in self.free:
            if any(pair.unit == PART for pair in part.row.pairs):
                tracker.counted = True

    def _counts(self, part: Part) -> bool:
        """Whether the lines say themselves how far training is."""
        return part.binding.step_at >= 0 or not (self.tracker.explicit or self.tracker.main_bar)

    def _part_moved(self, part: Part, values: Any) -> Any:
        return values[self.moved] if part.row.kind == "bar" else values

    def _commit_bars(self) -> None:
        tracker, bar = self.tracker, self.bar
        if bar is None:
            return
        x = max(float(part.x[-1]) for part in self.bars)
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

    def _commit_positions(self) -> None:
        tracker = self.tracker
        epochs: list[tuple[int, float]] = []
        totals: list[tuple[int, float]] = []
        for part in self.parts:
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
        strides = np.diff(steps, prepend=logger.last)
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

    def _commit_redrawn(self) -> None:
        """What the bar said when it was redrawn where it stands, as the last of the lines."""
        if not self.on_main or isinstance(self.moved, slice) or self.moved[-1]:
            return
        part = self.bars[0]
        for index, column, factor in part.binding.takes:
            value = float(part.columns[index][-1]) * factor
            column.shown = (float(part.x[-1]), value, int(part.offsets[-1]))

    def _commit_values(self, parts: Iterable[Part]) -> None:
        pieces: dict[int, tuple[Column, list[tuple[Places, Run]]]] = {}
        for part in parts:
            x, offsets, at = (self._part_moved(part, v) for v in (part.x, part.offsets, part.at))
            if not len(x):
                continue
            for index, column, factor in part.binding.takes:
                values = self._part_moved(part, part.columns[index])
                values = values if factor == 1.0 else values * factor
                run = (x, values, offsets)
                pieces.setdefault(id(column), (column, []))[1].append((at, run))
        for column, runs in pieces.values():
            if len(runs) == 1:
                column.take(runs[0][1])
            else:
                order = np.argsort(np.concatenate([at for at, _run in runs]), kind="stable")
                x, values, offsets = (
                    np.concatenate(each)[order]
                    for each in zip(*[run for _at, run in runs], strict=True)
                )
                column.take((x, values, offsets))

    def _commit_times(self, parts: list[Part]) -> None:
        if parts:
            times = _joined(parts, [part.times for part in parts])
            steps = _joined(parts, [part.x for part in parts])
            self.tracker.timed_all(times, steps, _joined(parts, [part.offsets for part in parts]))


def _by_logger(parts: Iterable[Part]) -> list[tuple[Logger, list[Part]]]:
    groups: dict[int, tuple[Logger, list[Part]]] = {}
    for part in parts:
        if part.logger is not None:
            groups.setdefault(id(part.logger), (part.logger, []))[1].append(part)
    return list(groups.values())


def _joined(parts: Sequence[Part], values: Sequence[Any]) -> Any:
    """Values of several parts in the order of their lines."""
    if len(parts) == 1:
        return values[0]
    at = np.concatenate([part.at for part in parts])
    return np.concatenate(values)[np.argsort(at, kind="stable")]


def _as_of(part: Part, movers: Sequence[Part], start: float) -> Numbers:
    """How far the highest `x` of other parts was at each line of a part."""
    if not movers:
        return np.full(len(part.at), start)
    at = np.sort(np.concatenate([mover.at for mover in movers]))
    x = np.maximum.accumulate([start, *_joined(movers, [mover.x for mover in movers])])
    return x[np.searchsorted(at, part.at)]
