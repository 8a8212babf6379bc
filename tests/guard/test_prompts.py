from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainwarden.guard import prompts


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("train.log", "a b.log", "config.yaml", "sub/x.log"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link").symlink_to(tmp_path / "train.log")
    return tmp_path


@pytest.mark.parametrize(
    ("prompt", "names"),
    [
        ("@train.log", ["train.log"]),
        ("Is (@train.log) fine?", ["train.log"]),
        ("look at @train.log, @sub/x.log.", ["train.log", "sub/x.log"]),
        ('see @"a b.log" now', ["a b.log"]),
        ("@train.log#L10-20 and again @train.log#5", ["train.log"]),
        ("@link", ["train.log"]),
        ("@sub/", ["sub"]),
        ("@./sub/../train.log", ["train.log"]),
        ("/trainwarden:monitor\n@train.log", ["train.log"]),
        ("me@train.log or @nobody or @agent-trainwarden:quality-reviewer", []),
    ],
)
def test_mentions_are_read_as_the_client_reads_them(
    folder: Path, prompt: str, names: list[str]
) -> None:
    found = prompts.mentions(prompt, ["/nowhere", str(folder)])
    assert found == [os.path.realpath(folder / name) for name in names]


def test_what_a_server_holds_can_be_mentioned_too(folder: Path) -> None:
    assert prompts.mentions("@wandb:run://team/x", [str(folder)]) == ["wandb:run://team/x"]


@given(st.text())
def test_any_prompt_can_be_looked_at(text: str) -> None:
    prompts.mentions(text, ["/"])
    prompts.mentions("@" + text, ["/nowhere"])
    assert prompts.readings(text) >= 0


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"))))
def test_lines_are_the_same_whatever_stands_before_them(texts: list[str]) -> None:
    plain = prompts.lines("\n".join(texts))
    quoted = prompts.lines("\r\n".join(f"> {text}" for text in texts))
    assert [line for line in plain if line] == [line for line in quoted if line]


@pytest.mark.parametrize("before", ["", "  ", "> ", "12\t", "   345→", "7:", "> > 3\t"])
def test_numbering_of_any_reader_is_taken_away(before: str) -> None:
    line = "step 10 | loss 2.31"
    assert prompts.lines(before + line) == [line]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("{'loss': 2.31, 'grad_norm': 0.8, 'epoch': 0.1}", 1),
        ("train/loss: 2.3 train/lr: 0.1\nval_loss=3 step=2", 2),
        ("| step 5 | loss nan | lr 1e-4 |", 1),
        ("loss is 2.3", 0),
        ("use lr 3e-4 and 2 epochs", 0),
        ("I expect loss 2.5 at step 1000", 0),
        ("", 0),
    ],
)
def test_what_looks_like_readings(text: str, count: int) -> None:
    assert prompts.readings(text) == count


def test_old_prompts_are_forgotten(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = folder / "data"
    monkeypatch.setenv("CLAUDE_PLUGIN_DATA", str(data))
    prompts.forget_old()
    prompts.remember("nothing of note", "c0", [str(folder)])
    assert not data.exists()
    for client in ("c1", "c2"):
        prompts.remember("@train.log", client, [str(folder)])
    old = time.time() - prompts.KEPT - 1
    os.utime(data / "prompts/c1.jsonl", (old, old))
    prompts.forget_old()
    assert prompts.recalled("c1") == []
    assert prompts.recalled("c2")[0]["mentions"] == [str(folder / "train.log")]
