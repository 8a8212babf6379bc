"""Log formats of other packages, asked in a process of their own: reading goes on whatever they do.

A format that raises, gives no sound `Row`, or does not answer in time is not asked again for that
file, and its `problem` says why. Nothing else of it is trusted either: what it remembers of a log
is plain data apart from what others remember.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import IO, Any, get_args

import orjson

import trainwarden
from trainwarden import plugins
from trainwarden.metrics.formats import Line, LineFormat, Pair, Row
from trainwarden.metrics.formats.base import Phase
from trainwarden.metrics.values import to_float
from trainwarden.records.hostile import clean

PATIENCE, START = 2.0, 30.0
"""Seconds for an answer, and for the process to be there."""
LONGEST_LINE, MOST_PAIRS, LONGEST_NAME, MEMORY = 20_000, 1000, 200, 1 << 16
KINDS = ("metrics", "partial", "end", "bar", "totals", "head")


class Trouble(Exception):
    """The process gave no answer; the message says why."""


class Desk:
    """The process where the formats of other packages are asked, begun when it is needed."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._lock = threading.Lock()
        self._held = b""

    def ask(self, order: Sequence[Any]) -> dict[str, Any]:
        """The answer to an order. Raises Trouble; the process is then gone, and begun anew."""
        with self._lock:
            try:
                if self._process is None:
                    self._begin()
                self._process.stdin.write(orjson.dumps(order) + b"\n")  # type: ignore[union-attr]
                self._process.stdin.flush()  # type: ignore[union-attr]
                answer = orjson.loads(self._line(PATIENCE))
            except (OSError, ValueError, TypeError) as error:
                self.close()
                raise Trouble(f"its process ended ({type(error).__name__})") from error
            except Trouble:
                self.close()
                raise
        return answer if isinstance(answer, dict) else {}

    def close(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()  # type: ignore[union-attr]
            process.wait()

    def _begin(self) -> None:
        path = os.pathsep.join(str(Path(entry).absolute()) for entry in sys.path if entry)
        self._held = b""
        self._process = subprocess.Popen(
            [sys.executable, "-m", "trainwarden.evidence.strangers"],
            cwd=Path(trainwarden.__file__).parents[1],
            env={**os.environ, "PYTHONPATH": path},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
        )
        self._line(START)

    def _line(self, patience: float) -> bytes:
        """The next line that the process writes."""
        pipe: Any = self._process and self._process.stdout
        end = time.monotonic() + patience
        while b"\n" not in self._held:
            left = end - time.monotonic()
            if left <= 0 or not select.select([pipe], [], [], left)[0]:
                raise Trouble(f"no answer within {patience:g} s")
            data = os.read(pipe.fileno(), 1 << 16)
            if not data:
                raise Trouble("its process ended")
            self._held += data
        line, _, self._held = self._held.partition(b"\n")
        return line


@lru_cache(maxsize=1)
def desk() -> Desk:
    """The one of this process."""
    return Desk()


class Stranger(LineFormat):
    """A format of another package, which stands for it here. Raises TypeError for what is none."""

    def __init__(self, index: int, format_: LineFormat) -> None:
        self._index = index
        self.name, self.hints, self.exclusive = _face(format_)
        self._key = f"plug-in {self.name}"
        self.problem = ""
        """Why it is not asked any more."""

    def parse(self, line: Line, memory: dict[str, object]) -> Row | None:
        """What the format says of the line, as far as it is sound."""
        if self.problem or len(line.text) > LONGEST_LINE:
            return None
        known = memory.get(self._key, {})
        try:
            answer = desk().ask([self._index, self.name, list(line), known])
            if "error" in answer:
                raise Trouble(str(answer["error"]))
            row = _row(answer["row"], line.text, self.name) if answer.get("row") else None
        except (Trouble, KeyError, TypeError, ValueError, OverflowError) as error:
            what = str(error) if isinstance(error, Trouble) else f"gave no sound Row: {error}"
            self.problem = clean(f"plug-in format {self.name} is left out: {what}", 300)
            return None
        if answer.get("memory") != known:
            memory[self._key] = answer.get("memory")
        return row


def strangers() -> list[Stranger]:
    """One for each format that other packages offer; what is none is reported with the plug-ins."""
    found, problems = [], plugins.plugins().problems
    for index, format_ in enumerate(plugins.log_formats()):
        try:
            found.append(Stranger(index, format_))
        except Exception as error:  # whatever a stranger's attributes do
            told = f"log format {type(format_).__name__}: {type(error).__name__}: {error}"
            if told not in problems:
                problems.append(told)
    return found


def problems_of(reader: Any) -> list[str]:
    """What became of a reader's formats that are not asked any more."""
    formats = getattr(reader, "formats", ())
    return [one.problem for one in formats if isinstance(one, Stranger) and one.problem]


def _face(format_: Any) -> tuple[str, tuple[str, ...], bool]:
    name, hints = format_.name, format_.hints
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable():
        raise TypeError("its name is no short text")
    if isinstance(hints, str) or not all(isinstance(hint, str) and hint for hint in hints):
        raise TypeError("its hints are no texts")
    if not callable(format_.parse):
        raise TypeError("it has no parse(line, memory)")
    return name, tuple(hint.lower() for hint in hints), bool(format_.exclusive)


# What comes back -------------------------------------------------------------------------------


def _row(told: Mapping[str, Any], text: str, name: str) -> Row:
    """A row from what the process told. Raises TypeError, ValueError, KeyError or OverflowError."""
    pairs, fits = [], bool(told["repeatable"])
    if len(told["pairs"]) > MOST_PAIRS:
        raise ValueError(f"{len(told['pairs'])} pairs")
    for own, value, unit, span in told["pairs"]:
        if not isinstance(own, str) or not 0 < len(own) <= LONGEST_NAME:
            raise ValueError(f"a pair's name is {own!r:.50}")
        number = to_float(value) if isinstance(value, str) else float(value)
        place = _span(span, text) if span is not None else None
        # Lines of this shape are read by the place of their numbers: it must be right.
        fits = fits and place is not None and _same(text[slice(*place)], number)
        pairs.append(Pair(own, number, str(unit)[:LONGEST_NAME], place))
    if told["phase"] not in (None, *get_args(Phase)) or told["kind"] not in KINDS:
        raise ValueError(f"phase {told['phase']!r:.50}, kind {told['kind']!r:.50}")
    return Row(
        name,
        pairs,
        told["phase"],
        told["kind"],
        str(told["label"])[:LONGEST_NAME],
        [_span(span, text) for span in told["loose"]],
        repeatable=fits,
        rank=None if told["rank"] is None else int(told["rank"]),
        final=bool(told["final"]),
    )


def _span(span: Sequence[Any], text: str) -> tuple[int, int]:
    begin, end = (int(at) for at in span)
    if not 0 <= begin < end <= len(text):
        raise ValueError(f"a span is {begin}, {end}")
    return begin, end


def _same(digits: str, value: float) -> bool:
    try:
        found = to_float(digits)
    except ValueError:
        return False
    return found == value or (found != found and value != value)


# The process -----------------------------------------------------------------------------------


def serve(orders: IO[bytes], answers: IO[bytes]) -> None:
    """Answer orders until there are no more."""
    formats = plugins.log_formats()
    answers.write(b"{}\n")
    answers.flush()
    while line := orders.readline():
        index, name, parts, memory = orjson.loads(line)
        try:
            answer = orjson.dumps(_asked(formats[index], name, Line(*parts), memory))
        except BaseException as error:  # a stranger's code may raise anything
            told = f"{type(error).__name__}: {error}".removesuffix(": ")
            answer = orjson.dumps({"error": told[:200].encode("utf-8", "replace").decode()})
        answers.write(answer + b"\n")
        answers.flush()


def _asked(format_: Any, name: str, line: Line, memory: dict[str, Any]) -> dict[str, Any]:
    if format_.name != name:
        raise LookupError("another format stands in its place")
    row = format_.parse(line, memory)
    if len(orjson.dumps(memory)) > MEMORY:
        raise ValueError("it remembers too much")
    if row is None:
        return {"row": None, "memory": memory}
    if not isinstance(row, Row):
        raise TypeError(f"parse gave {type(row).__name__}, no Row")
    told = {
        # JSON has no NaN and no infinity.
        "pairs": [
            [p.name, str(float(p.value)), p.unit, p.span and list(map(int, p.span))]
            for p in row.pairs
        ],
        "phase": row.phase,
        "kind": row.kind,
        "label": row.label,
        "loose": [list(map(int, span)) for span in row.loose],
        "repeatable": row.repeatable and not row.free,
        "rank": row.rank,
        "final": row.final,
    }
    return {"row": told, "memory": memory}


if __name__ == "__main__":
    # Ctrl-C is the reader's to take; this process ends when its orders do.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the formats print is no answer
    with contextlib.suppress(BrokenPipeError):
        serve(sys.stdin.buffer, _answers)
