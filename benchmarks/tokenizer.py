"""Counts tokens without a network, with the vocabulary that Anthropic published.

The npm package `@anthropic-ai/tokenizer` (MIT) has the byte-pair vocabulary of early Claude models;
that of the present ones is not public. Anthropic's documentation says of the newest that they need
about 30 % more tokens for the same text than those before; counts are to be multiplied by `MARGIN`.
"""

from __future__ import annotations

import base64
import json
import re
import shutil
import subprocess
import unicodedata
from functools import lru_cache
from itertools import pairwise
from pathlib import Path

PACKAGE = "@anthropic-ai/tokenizer@0.0.4"
FOLDER = Path(__file__).resolve().parents[1] / ".client" / "tokenizer"
MARGIN = 1.35
_PIECES = re.compile(
    r"'s|'t|'re|'ve|'m|'ll|'d| ?[^\W\d_]+| ?\d+| ?(?:[^\s\w]|_)+|\s+(?!\S)|\s+", re.UNICODE
)
"""The package's `pat_str`, with letters and digits as Python's `re` knows them."""


def install() -> Path | None:
    """The vocabulary's file, fetched once with npm; None where npm is missing or cannot get it."""
    file = FOLDER / "node_modules/@anthropic-ai/tokenizer/claude.json"
    if not file.exists():
        npm = shutil.which("npm")
        if npm is None:
            return None
        FOLDER.mkdir(parents=True, exist_ok=True)
        command = [npm, "install", "--prefix", str(FOLDER), "--no-save", "--no-package-lock"]
        quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error", PACKAGE]
        subprocess.run([*command, *quiet], check=False, timeout=300)
    return file if file.exists() else None


@lru_cache(maxsize=1)
def _ranks() -> dict[bytes, int]:
    file = install()
    if file is None:
        raise SystemExit(f"tokens are counted with {PACKAGE}, which needs npm and its registry")
    _, first, *words = json.loads(file.read_text(encoding="utf-8"))["bpe_ranks"].split(" ")
    return {base64.b64decode(word): rank for rank, word in enumerate(words, int(first))}


@lru_cache(maxsize=65_536)
def _tokens_of(piece: str) -> int:
    """Merge the neighbours of the lowest rank until none can be merged."""
    ranks = _ranks()
    parts = [bytes([byte]) for byte in piece.encode()]
    while len(parts) > 1:
        pairs = [ranks.get(a + b, len(ranks) + 256) for a, b in pairwise(parts)]
        lowest = min(pairs)
        if lowest >= len(ranks) + 256:
            break
        at = pairs.index(lowest)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return len(parts)


def count(text: str) -> int:
    """Tokens of a text by the published vocabulary, without the margin."""
    return sum(_tokens_of(piece) for piece in _PIECES.findall(unicodedata.normalize("NFKC", text)))
