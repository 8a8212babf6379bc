"""Lines read many at once, whatever stands where numbers should: the same as one by one."""

from __future__ import annotations

import random

import pytest

from trainwarden.metrics.reader import LogReader

ODD = [
    "nan",
    "-inf",
    "inf",
    "-0",
    "-0.0",
    "1.",
    ".5",
    "-.5",
    "+0.25",
    "5e-7",
    "1E5",
    "1e400",
    "0004",
    "-007",
    "1,234",
    "12,345.6",
    "1.2.3",
    "1e",
    "0x1f",
    "--3",
    "3-4",
]
ODD_JSON = (
    'NaN -Infinity null true "0.5" "007" "1/2" "12:30" "3e5x" -0 -0.0 1e-5 1E400 007 .5 +1 [1.5] '
    '[1,2] {"a":1} 12345678901234567890 ' + "1" + 301 * "0"
).split()
SHAPES = {
    "pairs": ("step {i} | loss {a} | lr {b} | {c} tok/s", ODD),
    "logger": (
        "2026-01-02 03:{m:02d}:{s:02d},{i:03d} - INFO - step {i} loss: {a} (mean {b}), kl: {c}",
        ODD,
    ),
    "dict": ("{{'loss': {a}, 'grad_norm': {b}, 'learning_rate': {c}, 'epoch': {e}}}", ODD),
    "sentence": ("Epoch {m}. Iter {i}. Loss {a}. Accuracy {b}%. id a{s}b{i}", ODD),
    "jsonl": ('{{"step": {i}, "loss": {a}, "top5": {b}, "lr": {c}, "on": "01-{s:02d}"}}', ODD_JSON),
    "csv": ("{i},{a},{b},{c}", ODD),
}


def outcome(text: str, use_templates: bool) -> str:
    reader = LogReader("log", use_templates=use_templates)
    reader.feed(text.encode())
    reader.finish()
    return repr(reader.reading)


@pytest.mark.parametrize("share", [0, 0.02, 0.3])
@pytest.mark.parametrize("kind", SHAPES)
def test_odd_numbers_are_read_as_line_by_line(kind: str, share: float) -> None:
    noise = random.Random(f"{kind}{share}")
    line, odd = SHAPES[kind]

    def number() -> str:
        usual = (f"{noise.gauss(0, 9):.3f}", f"{noise.gauss(0, 1e-3):.2e}", repr(noise.random()))
        return noise.choice(odd if noise.random() < share else usual)

    lines = ["step,loss,accuracy,lr"] if kind == "csv" else []
    for i in range(600):
        some = {"a": number(), "b": number(), "c": number()}
        lines.append(line.format(i=i, m=i // 60, s=i % 60, e=i / 100, **some))
        if noise.random() < share:
            lines.append(noise.choice(["", "saved step 5", "\x1b[32mstep 5\x1b[0m", "no words"]))
    text = "\n".join(lines) + "\n"
    assert outcome(text, True) == outcome(text, False)
    assert "loss" in outcome(text, True)
