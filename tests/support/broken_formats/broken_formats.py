"""Formats that break in every way that a reading must stand."""

from __future__ import annotations

import os
import re
import time
from typing import Any

from trainwarden.hookspecs import hookimpl
from trainwarden.metrics.formats import Line, Pair, Row


class Format:
    hints = ("loss",)
    exclusive = True

    def __init__(self, name: str, parse: Any) -> None:
        self.name, self._parse = name, parse

    def parse(self, line: Line, memory: dict[str, object]) -> Any:
        print("to be seen by nobody")
        return self._parse(line, memory)


class Faceless:
    name = "faceless"


def raising(*_: Any) -> Any:
    raise ZeroDivisionError("broken while parsing")


def leaving(*_: Any) -> Any:
    raise SystemExit(3)


def dying(*_: Any) -> Any:
    os.kill(os.getpid(), 9)


def backtracking(*_: Any) -> Any:
    return re.match(r"(a|a)+$", "a" * 60 + "b")


def sleeping(*_: Any) -> Any:
    time.sleep(600)


def hoarding(line: Line, memory: dict[str, object]) -> Any:
    memory["all"] = line.text * 10_000


def odd(_: Line, memory: dict[str, object]) -> Any:
    memory["odd"] = {1, 2}


def row(**more: Any) -> Any:
    return lambda *_: Row("x", [Pair("loss", 0.5)], **more)


NONSENSE = {
    "a-text": lambda *_: "loss 0.5",
    "no-pairs": lambda *_: Row("x", None),  # type: ignore[arg-type]
    "no-number": lambda *_: Row("x", [Pair("loss", "high")]),  # type: ignore[arg-type]
    "no-name": lambda *_: Row("x", [Pair(None, 1.0)]),  # type: ignore[arg-type]
    "far-off": lambda *_: Row("x", [Pair("loss", 1.0, span=(5, 10**9))]),
    "phase": row(phase="dreaming"),
    "kind": row(kind="other"),
    "rank": row(rank="first"),
    "loose": row(loose=[("a", "b")]),
    "endless": lambda *_: Row("x", [Pair(f"n{i}", 1.0) for i in range(9999)]),
}


class Asking:
    @hookimpl
    def trainwarden_log_formats(self) -> list[Any]:
        raise RuntimeError("broken when asked")


class Parsing:
    @hookimpl
    def trainwarden_log_formats(self) -> list[Any]:
        ways = [raising, leaving, dying, backtracking, sleeping, hoarding, odd]
        named = {way.__name__: way for way in ways} | NONSENSE
        return [Faceless(), *(Format(name, way) for name, way in named.items())]


asking, parsing = Asking(), Parsing()
