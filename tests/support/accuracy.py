"""Whether a log is read right: a corpus with an answer key, and the score of each labelled field.

A corpus is a folder with `manifest.jsonl`, a file a line: `file` (path below the folder),
`framework`, `format`, and `labels`: what a person read off the file, where null is not scored.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trainwarden.evidence.log_readings import read_log
from trainwarden.metrics.reading import Reading

FIELDS = (
    *("last_step", "total_steps", "n_train_loss_points", "last_train_loss", "last_lr"),
    *("last_grad_norm", "last_eval", "rl", "ended", "not_empty"),
)
"""In the order in which they are shown. `not_empty` is a run that came out as anything at all."""


@dataclass(frozen=True)
class Field:
    """One labelled field of one file: what was read against what was wanted."""

    name: str
    right: bool
    found: object
    wanted: object


@dataclass
class Score:
    """How many fields are right, of how many."""

    right: int = 0
    total: int = 0

    def add(self, right: bool) -> None:
        """Count one field."""
        self.right += right
        self.total += 1

    @property
    def share(self) -> float:
        """From 0 to 1; 1 where nothing was scored."""
        return self.right / self.total if self.total else 1.0


@dataclass
class Table:
    """Scores over a corpus by field and by framework, and what was missed."""

    by_field: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    by_framework: dict[str, Score] = field(default_factory=lambda: defaultdict(Score))
    overall: Score = field(default_factory=Score)
    misses: list[tuple[str, Field]] = field(default_factory=list)


def entries(corpus: Path, formats: Iterable[str] | None = None) -> list[dict[str, Any]]:
    """The files of a corpus, of some formats or all. Raises OSError, ValueError."""
    rows = [json.loads(line) for line in (corpus / "manifest.jsonl").read_text().splitlines()]
    wanted = None if formats is None else set(formats)
    return [row for row in rows if wanted is None or row["format"] in wanted]


def near(found: float | None, wanted: float) -> bool:
    """Whether a value is the one wanted, to a thousandth; nan is nan."""
    if found is None:
        return False
    if wanted != wanted:
        return found != found
    return abs(found - wanted) <= 1e-3 * abs(wanted) + 1e-12


def score(reading: Reading, labels: dict[str, Any]) -> list[Field]:
    """Each labelled field of a file."""

    def last(name: str) -> float | None:
        series = reading.series.get(name)
        return series.last.value if series and series.last else None

    loss = reading.series.get("loss")
    found: dict[str, float | None] = {
        "last_step": reading.last_step,
        "total_steps": reading.total_steps,
        "n_train_loss_points": loss.count if loss else 0,
        "last_train_loss": last("loss"),
        "last_lr": last("learning_rate"),
        "last_grad_norm": last("grad_norm"),
    }
    wanted = {name: labels[name] for name in found if labels.get(name) is not None}
    if labels.get("last_train_loss_raw") == "nan":
        wanted["last_train_loss"] = float("nan")
    fields = [Field(name, near(found[name], wanted[name]), found[name], wanted[name])
              for name in wanted]  # fmt: skip
    evaluated = {
        name: value
        for name, value in (labels.get("last_eval") or {}).items()
        if name not in {"step", "epoch"} and value is not None
    }
    if evaluated:
        seen = {name: last(name) for name in reading.series}
        right = all(any(near(v, value) for v in seen.values()) for value in evaluated.values())
        told = {name: value for name, value in seen.items() if name.startswith(("eval", "val"))}
        fields.append(Field("last_eval", right, told, evaluated))
    rewards = {k: v for k, v in (labels.get("rl") or {}).items() if v is not None}
    if rewards:
        had = {name: last(name) for name in rewards}
        right = all(near(had[name], value) for name, value in rewards.items())
        fields.append(Field("rl", right, had, rewards))
    if labels.get("ended") is not None:
        # A label says no more than that the run was stopped before its end.
        ended = "crashed" if reading.ended == "interrupted" else reading.ended
        fields.append(Field("ended", ended == labels["ended"], reading.ended, labels["ended"]))
    if any(name in wanted for name in ("last_step", "last_train_loss")) or evaluated or rewards:
        empty = not reading.series and reading.last_step is None
        fields.append(Field("not_empty", not empty, sorted(reading.series), "a run"))
    return fields


def measure(corpus: Path, rows: Sequence[dict[str, Any]]) -> Table:
    """Read and score all files. A file that cannot be read has all its fields wrong."""
    table = Table()
    for row in rows:
        try:
            reading = read_log(corpus / row["file"])
        except (OSError, ValueError) as failure:
            reading = Reading(row["file"], notes=[str(failure)])
        for one in score(reading, row["labels"]):
            for tally in (
                table.by_field[one.name],
                table.by_framework[row["framework"]],
                table.overall,
            ):
                tally.add(one.right)
            if not one.right:
                table.misses.append((row["file"], one))
    return table
