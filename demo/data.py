"""The text that the demo learns: the source of the standard library, on every machine alike."""

from __future__ import annotations

import collections
import os
from pathlib import Path

import numpy as np
from model import Ints

CHARACTERS = 1_000_000


def library_text() -> str:
    """The first million characters of the library's top-level modules, in order of name."""
    parts: list[str] = []
    size = 0
    for path in sorted(Path(os.__file__).parent.glob("*.py")):
        parts.append(path.read_text(encoding="utf-8", errors="replace"))
        size += len(parts[-1])
        if size >= CHARACTERS:
            break
    return "".join(parts)[:CHARACTERS]


class Loader:
    """Random training batches, and fixed held-out ones from the last tenth of the text."""

    def __init__(self, vocab_size: int, context: int, length: int, batch: int, seed: int) -> None:
        self.text = library_text()
        common = collections.Counter(self.text).most_common(vocab_size - 1)
        self.codes = {character: code for code, (character, _) in enumerate(common, start=1)}
        self.tokens = self.tokenise(self.text)
        self.context, self.length, self.batch = context, length, batch
        self.split = len(self.tokens) * 9 // 10
        self.rng = np.random.default_rng(seed)

    def tokenise(self, text: str) -> Ints:
        """Codes of the characters; 0 stands for the rare ones."""
        return np.array([self.codes.get(character, 0) for character in text], dtype=np.int64)

    def windows(self, starts: Ints) -> tuple[Ints, Ints]:
        """The windows (n, context) before each of `length` characters, and those characters."""
        targets = (starts[:, None] + np.arange(self.length)).reshape(-1)
        before = targets[:, None] + np.arange(-self.context, 0)
        return self.tokens[before], self.tokens[targets]

    def next(self) -> tuple[Ints, Ints]:
        """A training batch of `batch` sequences."""
        return self.windows(self.rng.integers(self.context, self.split - self.length, self.batch))

    def held_out(self, batches: int = 8) -> list[tuple[Ints, Ints]]:
        """The same evaluation batches every time."""
        starts = np.linspace(
            self.split + self.context,
            len(self.tokens) - self.length - 1,
            batches * self.batch,
            dtype=np.int64,
        )
        return [self.windows(part) for part in np.split(starts, batches)]
