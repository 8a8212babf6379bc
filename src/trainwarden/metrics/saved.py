"""What a log reader keeps between two looks, as plain data."""

from __future__ import annotations

import base64
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from trainwarden.metrics.ending import EndingWatch
from trainwarden.metrics.formats.base import Pair, Row
from trainwarden.metrics.journal import Journal
from trainwarden.metrics.tracker import Tracker

if TYPE_CHECKING:
    from trainwarden.metrics.reader import LogReader

STATE_VERSION = 2
PLAIN = ("_offset", "_lines", "_skipping", "_in_traceback")
"""Attributes of a reader that are kept as they are."""


class Memory(dict[str, object]):
    """What formats remember of a log, and whether they touched it since that was last asked."""

    touched = False

    def __setitem__(self, key: str, value: object) -> None:
        self.touched = True
        super().__setitem__(key, value)

    def __delitem__(self, key: str) -> None:
        self.touched = True
        super().__delitem__(key)

    def pop(self, key: str, *default: Any) -> Any:
        """As a dict's; taking what is not there touches nothing."""
        self.touched = self.touched or key in self
        return super().pop(key, *default)


def dump(reader: LogReader) -> dict[str, Any]:
    """Everything of a reader that `restore` needs."""
    recorder = reader._recorder
    return {
        "version": STATE_VERSION,
        "file": reader.file,
        "plain": {name: getattr(reader, name) for name in PLAIN},
        "held": base64.b64encode(reader._held).decode("ascii"),
        "tracker": recorder.tracker.to_state(),
        "ending": asdict(recorder.ending),
        "section": recorder.section,
        "block": [
            [row.format, [list(pair[:3]) for pair in row.pairs], offset, time, rank]
            for row, offset, time, rank in recorder.block
        ],
        "memory": dict(reader._memory),
        "journal": reader._journal.to_state(),
    }


def restore(reader: LogReader, state: dict[str, Any]) -> None:
    """Bring a fresh reader to a dumped state. Raises KeyError, TypeError or ValueError."""
    for name in PLAIN:
        setattr(reader, name, state["plain"][name])
    reader._held = base64.b64decode(state["held"])
    recorder = reader._recorder
    recorder.tracker = Tracker.from_state(state["tracker"])
    recorder.ending = EndingWatch(**state["ending"])
    recorder.section = state["section"]
    recorder.block = [
        (Row(format_, [Pair(*pair) for pair in pairs], kind="partial"), offset, time, rank)
        for format_, pairs, offset, time, rank in state["block"]
    ]
    reader._memory = Memory(state["memory"])
    reader._journal = Journal.from_state(state["journal"])
