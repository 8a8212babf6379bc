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


TRAINING = {
    "text": "step {i} | loss {a:.4f} | lr 3e-4\n",
    "nanogpt": "iter {i}: loss {a:.4f}, time 90.51ms, mfu 30.2%\n",
    "jsonl": '{{"step": {i}, "loss": {a}, "lr": 3e-4}}\n',
    "bars": "\r {p:2d}%|   | {i}/600 [00:{s:02d}<09:31, 1.{s:02d}it/s, loss={a:.3f}]",
    "dicts": "{{'loss': {a:.4f}, 'grad_norm': 1.5, 'learning_rate': 3e-4, 'epoch': {e}}}\n",
}
BETWEEN = [
    "saving checkpoint to out",
    "step {i}: train loss 2.5, val loss {a}",
    'Traceback (most recent call last):\n  File "train.py", line 3\nValueError: no {i}',
    "Resuming from checkpoint {i}",
    "***** Running Evaluation *****",
    "{{'eval_loss': {a}, 'epoch': 0.5}}",
    '{{"step": {i}, "eval_loss": {a}}}',
    '{{"step": {i}, "loss": {a}}}',
    "loss: {a}",
    "Epoch {s}",
    "epoch {s} step {p} loss {a}",
    "iter {i}: loss {a}, time 3.00ms",
    "Training done",
    "val: 100%|███| 10/10 [00:01<00:00, 3.1it/s]",
]


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("kind", TRAINING)
def test_what_stands_between_them_counts_in_its_place(kind: str, seed: int) -> None:
    noise = random.Random(f"{kind}{seed}")
    some, share = noise.sample(BETWEEN, 3), noise.choice([0.01, 0.03, 0.1])
    text = ""
    for i in [*range(1, 500), *range(300, 600)][: noise.choice([500, 800])]:
        told = {"i": i, "a": noise.random(), "s": i % 60, "p": i // 6, "e": i / 100}
        text += TRAINING[kind].format(**told)
        if noise.random() < share:
            text += "\n" * (kind == "bars") + noise.choice(some).format(**told) + "\n"
    assert outcome(text, True) == outcome(text, False)
