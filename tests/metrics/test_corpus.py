"""The reader against real logs of many frameworks, where the corpus lies beside the repository."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import pytest

from support.accuracy import Table, entries, measure, score
from trainwarden.evidence.log_readings import read_log
from trainwarden.metrics.reading import Reading

CORPUS = Path(__file__).parents[2] / ".." / "shared" / "corpus"
pytestmark = pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus is not here")

COMPLETE = (
    *("hf-trainer", "trl", "torchtitan", "verl", "verl-sft", "lightning", "llm.c", "jax-openpi"),
    *("mmseg", "megatron-deepspeed", "stable-baselines3", "ultralytics", "catboost", "coqui-tts"),
    *("mmengine", "bigdl", "deepspeed-chat", "nanogpt", "rllib", "paddle"),
)
"""Frameworks whose every labelled metric of progress is expected, but for the listed gaps."""
GAPS = {
    # Not told by the file, or in a format of its own that is not read yet.
    ("deepspeed-chat/step1-sft-opt1.3b.log", "total_steps"),
    ("llm.c/gpt2-124m-misaligned-address.log", "last_step"),
    ("llm.c/gpt2-124m-misaligned-address.log", "not_empty"),
    ("llm.c/gpt2-124m-valnan-cublas-error.log", "last_step"),
    ("nanogpt/enwik-overfit-finished-kt2awly2.log", "total_steps"),
    ("paddle/ctrdnn-ps-dataset.log", "last_train_loss"),
    ("paddle/ctrdnn-ps-dataset.log", "n_train_loss_points"),
}


def rows() -> list[dict[str, Any]]:
    return entries(CORPUS, ("text", "csv")) if CORPUS.is_dir() else []


@cache
def read(file: str) -> Reading:
    return read_log(CORPUS / file)


@cache
def table() -> Table:
    return measure(CORPUS, rows())


@pytest.mark.parametrize(
    "row", [row for row in rows() if row["framework"] in COMPLETE], ids=lambda row: row["file"]
)
def test_progress_is_read_right(row: dict[str, Any]) -> None:
    fields = score(read(row["file"]), row["labels"])
    wrong = {one.name for one in fields if not one.right and one.name != "ended"}
    assert {name for name in wrong if (row["file"], name) not in GAPS} == set()


def test_most_of_all_fields_of_all_frameworks() -> None:
    share = {name: one.share for name, one in table().by_field.items()}
    assert share["last_step"] >= 0.9, share
    assert share["last_train_loss"] >= 0.85, share
    assert share["n_train_loss_points"] >= 0.85, share
    assert share["last_lr"] == share["last_grad_norm"] == share["rl"] == 1.0, share
    assert share["ended"] >= 0.8, share
    assert table().overall.share >= 0.91, share


def test_crashes_and_interruptions_are_told_from_regular_ends() -> None:
    for row in rows():
        if row["labels"]["ended"] == "crashed" and row["format"] == "text":
            assert read(row["file"]).ended in {"crashed", "interrupted"}, row["file"]
        if row["labels"]["fault"] == "interrupted":
            assert read(row["file"]).ended == "interrupted", row["file"]
