"""Read a large log with a second process, which looks at every other block ahead of the reader.

The reader takes all blocks in order, with what was found in them, so the reading is the same. A
helper that cannot be started, or dies, costs its block's look and nothing else.
"""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson

import trainwarden
from trainwarden.metrics.block import Plan
from trainwarden.metrics.formats import LineFormat, builtin_formats
from trainwarden.metrics.formats.base import Row, SpannedFormat
from trainwarden.metrics.reader import LogReader
from trainwarden.metrics.survey import Found, Sketch, Survey, survey

LARGE = 48 << 20
"""Bytes from which on a helper is worth its start."""
OWN, HELPERS = 1 << 20, 3 << 19
"""Sizes of blocks: the reader takes in what both found, so it looks at less."""


def pays(stream: io.BufferedIOBase, start: int) -> bool:
    """Whether so much of a file is to be read that a helper is worth its start."""
    if (os.cpu_count() or 1) < 2 or not isinstance(stream, io.BufferedReader):
        return False
    return os.fstat(stream.fileno()).st_size - start > LARGE


def read_ahead(stream: io.BufferedIOBase, reader: LogReader, deadline: float | None) -> bool:
    """Feed a file from where it stands to its end; whether the end was reached."""
    blocks = _Blocks(stream)
    while not reader.plan().order()[0] and not reader.plan().formats and blocks.more:
        reader.feed(blocks.take(OWN))  # nothing to look for is known yet
        if _over(deadline):
            return False
    with Helper(reader.formats) as helper:
        plan, first = reader.plan(), blocks.take(HELPERS)
        helper.send(plan, first)
        while first:
            own_plan, own = reader.plan(), blocks.take(OWN)
            own_seen = own_plan.look(own, reader.formats) if own else None
            seen = helper.receive(first)
            next_plan, following = reader.plan(), blocks.take(HELPERS)
            if following:
                helper.send(next_plan, following)
            reader.feed(first, (plan, seen) if seen else None)
            reader.feed(own, (own_plan, own_seen) if own_seen else None)
            plan, first = next_plan, following
            if first and _over(deadline):
                return False
    reader.feed(blocks.rest)
    return True


def _over(deadline: float | None) -> bool:
    return deadline is not None and time.monotonic() > deadline


class _Blocks:
    """A stream by whole lines."""

    def __init__(self, stream: io.BufferedIOBase) -> None:
        self._stream = stream
        self.rest = b""
        """What has no end yet."""
        self.more = True

    def take(self, size: int) -> bytes:
        """About so many bytes; none at the end."""
        while self.more:
            data = self._stream.read(size)
            self.more = bool(data)
            cut = max(data.rfind(b"\n"), data.rfind(b"\r")) + 1
            block, self.rest = self.rest + data[:cut], data[cut:] if cut else self.rest + data
            if cut:
                return block
            if len(self.rest) > 4 * size:
                block, self.rest = self.rest, b""
                return block
        return b""


class Helper:
    """The other process. It ends with this one, and is ended when the block is left."""

    def __init__(self, formats: Sequence[LineFormat]) -> None:
        own = [one for one in formats if type(one).__module__.startswith("trainwarden.metrics.")]
        self._formats = {one.name: one for one in own}
        self._process: subprocess.Popen[bytes] | None = None
        self._asked: Plan | None = None

    def __enter__(self) -> Helper:
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
        with suppress(OSError):
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trainwarden.evidence.ahead"],
                cwd=Path(trainwarden.__file__).parents[1],
                env={**os.environ, "PYTHONPATH": path},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            process.wait()

    def send(self, plan: Plan, block: bytes) -> None:
        """Let it look at a block."""
        self._asked = None
        if self._process is None or not block:
            return
        sketches, names, memory = plan.order()
        names = [name for name in names if name in self._formats]
        order = orjson.dumps([list(map(tuple, sketches)), names, memory, len(block)])
        try:
            self._process.stdin.write(order + b"\n" + block)  # type: ignore[union-attr]
            self._process.stdin.flush()  # type: ignore[union-attr]
            self._asked = plan
        except OSError:
            self._end()

    def receive(self, block: bytes) -> Survey | None:
        """What it found in the block that was sent; None where it died."""
        if self._process is None or self._asked is None:
            return None
        try:
            return self._found(self._process.stdout, block, self._asked)  # type: ignore[arg-type]
        except (OSError, ValueError):
            self._end()
            return None

    def _found(self, pipe: IO[bytes], block: bytes, plan: Plan) -> Survey:
        lines, told = orjson.loads(pipe.readline())
        starts = _array(pipe, np.int64, lines)
        found: list[Found] = []
        for shape, n, columns, timed in told:
            at = _array(pipe, np.int64, n)
            numbers = [_array(pipe, np.float64, n) for _ in range(columns)]
            times = _array(pipe, np.float64, n) if timed else None
            row = shape
            if isinstance(shape, str):
                text = block[starts[at[0]] : starts[at[0] + 1] - 1].decode("latin-1")
                row = self._row(shape, text, plan)
            if isinstance(row, int | Row):
                found.append(Found(row, at, numbers, times))
        return Survey(starts, found)

    def _row(self, name: str, text: str, plan: Plan) -> Row | None:
        format_ = self._formats[name]
        told = isinstance(format_, SpannedFormat) and format_.spans(text, dict(plan.memory))
        return told[0] if told else None


def _array(pipe: IO[bytes], kind: Any, n: int) -> Any:
    data = pipe.read(8 * n)
    if len(data) < 8 * n:
        raise EOFError
    return np.frombuffer(data, kind)


def help_out(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Look at blocks as they are sent, until there are no more."""
    formats = builtin_formats()
    while line := orders.readline():
        sketches, names, memory, size = orjson.loads(line)
        block = orders.read(size)
        if len(block) < size:
            return
        seen = survey(block, [Sketch(*sketch) for sketch in sketches], names, memory, formats)
        told = [
            (
                one.shape if isinstance(one.shape, int) else one.shape.format,
                len(one.at),
                len(one.columns),
                one.times is not None,
            )
            for one in seen.found
        ]
        answers.write(orjson.dumps([len(seen.starts), told]) + b"\n" + seen.starts.tobytes())
        for one in seen.found:
            answers.write(one.at.astype(np.int64).tobytes())
            for column in one.columns:
                answers.write(column.tobytes())
            if one.times is not None:
                answers.write(one.times.tobytes())
        answers.flush()


if __name__ == "__main__":
    # Ctrl-C is the reader's to take; this process ends when its orders do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with suppress(BrokenPipeError):
        help_out(sys.stdin.buffer, sys.stdout.buffer)
